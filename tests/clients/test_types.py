# SPDX-License-Identifier: Apache-2.0
"""Tests that the types of the Python client are right, and that programs which use it are checked with them."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import installed

MYPY = shutil.which("mypy", path="/usr/bin")


class Types(unittest.TestCase):
    def setUp(self):
        if not MYPY and os.environ.get("CI") == "true":
            self.fail("there is no mypy; ops/setup installs it")
        if not MYPY:
            self.skipTest("there is no mypy; ops/setup installs it")
        folder = tempfile.TemporaryDirectory(prefix="sluice-types-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def check(self, *words):
        done = subprocess.run([MYPY, "--config-file", installed.ROOT / "clients" / "python" / "pyproject.toml",
                               "--cache-dir", self.folder / "cache", *words], capture_output=True, text=True,
                              cwd=self.folder, env={**os.environ, "MYPYPATH": installed.SITE})
        return done.stdout + done.stderr

    def check_program(self, text):
        (self.folder / "program.py").write_text(text)
        return self.check("program.py")

    def test_the_package(self):
        self.assertIn("no issues found", self.check("-p", "sluice_client"))

    def test_programs(self):
        page = (installed.ROOT / "clients" / "python" / "README.md").read_text()
        (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        self.assertIn("no issues found", self.check_program(program))
        wrong = program.replace('Query("films", 2, ', 'Query("films", "2", ')
        self.assertIn('expected "int"', self.check_program(wrong))


if __name__ == "__main__":
    unittest.main()
