#!/usr/bin/python3
"""What the documents show is what happens: the worked messages, the Python example, the commands."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import data
import harness
import safetensors_io
from harness import Daemon

# docs/protocol.md, "An example"
CENTROIDS = np.array([[[1, 0], [0, 1], [1, 1]], [[2, 0], [0, 2], [-1, 0]]], np.float32)


def blocks(path, language):
    """The fenced blocks of a document."""
    text = (data.ROOT / path).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice-docs-")
        cls.addClassCleanup(cls.folder.cleanup)
        model = Path(cls.folder.name) / "films.safetensors"
        safetensors_io.write(model, {"centroids": CENTROIDS}, {"sluice.similarity": "recjpq"})
        cls.daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                             "spaces": {"films": {"model": str(model)}}}, cls.folder.name)
        cls.addClassCleanup(cls.daemon.kill)
        cls.daemon.start()
        cls.daemon.wait_ready()

    def ctl(self, *arguments):
        done = subprocess.run([harness.build_dir() / "sluicectl", "--config", self.daemon.config_path, *arguments],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def put_films(self):
        listed = re.findall(r"^key (\w+) +(\{.*\})$", "\n".join(blocks("docs/protocol.md", "")), re.MULTILINE)
        self.assertEqual([key for key, _ in listed], ["alien", "heat", "ran"])
        for key, value in listed:
            self.ctl("put", key, value)

    def assert_answers(self, path, query, answer):
        printed = json.loads(self.ctl("query", "--format", "json", "--json", query))
        shown = json.loads(answer)
        for field in ("id", "space", "method", "hits", "receipt", "counts"):
            self.assertEqual(printed.get(field), shown.get(field), f"{path}: {field}")
        self.assertEqual(set(printed), set(shown), path)

    def test_the_worked_messages(self):
        self.put_films()
        item, query, answer = blocks("README.md", "json")
        self.ctl("put", "alien", item)
        self.assert_answers("README.md", query, answer)
        query, answer = blocks("docs/protocol.md", "json")[:2]
        self.assert_answers("docs/protocol.md", query, answer)

    def test_the_python_example(self):
        (example,) = blocks("docs/protocol.md", "python")
        example = example.replace("127.0.0.1:9092", self.daemon.status()["kafka"]["bootstrap"])
        # The example's query is sent at once: it may come before the items, which is as the document says.
        self.put_films()
        (command,) = re.findall(r"`(protoc [^`]+)`", (data.ROOT / "docs/protocol.md").read_text(encoding="utf-8"))
        subprocess.run(command.replace("--python_out=.", f"--python_out={self.folder.name}").split(), cwd=data.ROOT,
                       check=True)
        program = Path(self.folder.name) / "example.py"
        program.write_text(example, encoding="utf-8")
        done = subprocess.run(["/usr/bin/python3", program], capture_output=True, text=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[(b'alien', 3.0), (b'heat', 1.0)]", done.stdout)

    def test_the_commands_of_the_readme(self):
        commands = [line for block in blocks("README.md", "sh") for line in block.splitlines()
                    if line.startswith("build/release/")]
        self.assertEqual(len(commands), 3)
        for line in commands:
            words = line.replace("build/release/", f"{harness.build_dir()}/").replace(
                "sluice.yaml", str(self.daemon.config_path)).split()
            if "--check-config" in words or "sluicectl" in words[0]:
                done = subprocess.run(words, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, line + done.stderr)
            else:  # the daemon itself runs already: its second self is told so
                done = subprocess.run(words, capture_output=True, text=True, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("another process", done.stderr)

    def test_every_link_leads_somewhere(self):
        for path in ("README.md", "docs/architecture.md", "docs/protocol.md", "docs/configuration.md",
                     "examples/debian-packages/README.md"):
            document = data.ROOT / path
            for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
                self.assertTrue((document.parent / target).exists(), f"{path}: {target}")

    def test_every_file_that_the_architecture_names_is_there(self):
        text = (data.ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        named = re.findall(r"`((?:base|kernels|engine|store|ingest|daemon|tests)/[\w./]+)`", text)
        self.assertGreater(len(named), 10)
        for path in named:
            self.assertTrue((data.ROOT / path).exists(), path)


if __name__ == "__main__":
    data.main()
