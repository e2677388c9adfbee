#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that docs/getting-started.md is correct: runs its steps in their order, with a real Kafka broker."""

import os
import re
import subprocess
import sys

import data
import harness
import pages
import real_broker

sys.path.insert(0, str(data.ROOT / "tests" / "clients"))
import installed  # noqa: E402

PAGE = "docs/getting-started.md"
PATIENT = f"""import sluice_client
for function in (sluice_client.Queries.ask, sluice_client.wait_visible):
    function.__defaults__ = ({60 * harness.SLOWNESS},)
"""


def setUpModule():
    global broker
    broker = real_broker.open_for()


class GettingStarted(pages.Commands):
    """A reader's ten minutes. The broker, the port of the daemon and the environment of Python are the test's own."""

    def setUp(self):
        super().setUp()
        self.http = f"127.0.0.1:{harness.free_port()}"

    def blocks(self, language, section):
        shown = pages.blocks(PAGE, language, f"## {section}")
        return [text.replace("127.0.0.1:9092", broker.bootstrap).replace("127.0.0.1:8321", self.http) for text in shown]

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def run_program(self, name, text):
        """Run a program. The client has patience with a slow machine."""
        self.write(name, PATIENT + text)
        return self.run_shell(f"PYTHONPATH={installed.SITE} /usr/bin/python3 {name}")

    def test_what_the_page_shows_is_what_happens(self):
        (make,), (config,) = self.blocks("python", "Start"), self.blocks("yaml", "Start")
        _, _, start, wait = self.blocks("sh", "Start")
        self.run_program("make.py", make)
        self.write("sluice.yaml", f"{config}http:\n  listen: {self.http}\n")
        create, run = start.splitlines()
        self.run_shell(create)
        self.start(run)
        self.run_shell(wait)
        for section, name, steady in (("Load vectors", "load.py", r"(\d+ items are visible)"),
                                      ("Query and filter", "query.py", "(?s)(.*)"),
                                      ("Change items while queries run", "live.py", "(asked and answered)")):
            (program,), (shown,) = self.blocks("python", section), self.blocks("", section)
            said = self.run_program(name, program)
            self.assertEqual(re.match(steady, said)[1], re.match(steady, shown)[1], f"{name} said:\n{said}")
        self.assertRegex(self.run_shell("sluicectl --config sluice.yaml status"), r"\n  visible +[\d.]+ ")

    def test_the_commands_of_the_installation_exist(self):
        setup, configure, environment, pip = pages.blocks(PAGE, "sh", "## Install")[0].splitlines()
        self.assertTrue(os.access(data.ROOT / setup, os.X_OK))
        self.assertIn('"release"', pages.read("CMakePresets.json"))
        self.assertIn("--target sluiced sluicectl", configure)
        self.run_shell(f"mkdir -p build\n{environment}\n"
                       f"cp -r {data.ROOT}/clients {data.ROOT}/proto .\n{pip} -q --disable-pip-version-check\n"
                       "build/venv/bin/python3 -c 'from sluice_client import Queries, sluice_pb2'")

    def test_the_broker_is_started_and_stopped_by_commands_that_exist(self):
        for section in ("Start", "Stop"):
            program, command = self.blocks("sh", section)[0].split()
            done = subprocess.run([data.ROOT / program, "--help"], capture_output=True, text=True)
            self.assertIn(f"{program} {command}", done.stdout)


if __name__ == "__main__":
    data.main()
