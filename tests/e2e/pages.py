# SPDX-License-Identifier: Apache-2.0
"""What a page shows, and tests that do it as a reader would."""

import os
import re
import subprocess
import tempfile
import textwrap
import unittest
from pathlib import Path

import data
import harness


def read(path):
    return (data.ROOT / path).read_text(encoding="utf-8")


def blocks(path, language, section=None):
    """Return the fenced blocks of a language in a document, or in one of its sections. Those in lists are indented."""
    text = read(path)
    if section:
        text = text.split(f"\n{section}\n", 1)[1].split("\n## ", 1)[0]
    fenced = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(content) for _, of, content in fenced if of == language]


class Commands(unittest.TestCase):
    """Tests that run commands of a page in a temporary folder, as a reader would."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-readme-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_shell(self, text, timeout_s=60):
        path = os.pathsep.join((str(harness.build_dir()), os.environ["PATH"]))
        done = subprocess.run(["bash", "-ec", text], cwd=self.folder, capture_output=True, text=True,
                              timeout=timeout_s * harness.SLOWNESS, env={**os.environ, "PATH": path})
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stderr}")
        return done.stdout

    def start(self, command, config="sluice.yaml"):
        """Start the daemon, and return it when `sluicectl status` reaches it."""
        path = os.pathsep.join((str(harness.build_dir()), os.environ["PATH"]))
        daemon = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.folder, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "PATH": path})
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        words = [harness.build_dir() / "sluicectl", "--config", self.folder / config, "status"]
        harness.eventually(lambda: subprocess.run(words, capture_output=True).returncode == 0, "the daemon", 60, 0.1)
        return daemon

    @staticmethod
    def without_times(text):
        """Replace what differs between runs: times, and the epoch, which counts the batches that the items came in."""
        return re.sub(r"epoch \d+", "epoch N", re.sub(r"\d+(\.\d+)? (us|ms|s)\b", "TIME", text))
