#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the manual pages and the completion for bash have every setting, every command and every option."""

import os
import re
import shlex
import subprocess
import unittest

import data
import harness

PAGES = ("sluiced.8", "sluicectl.1", "sluice.yaml.5")


def output_of(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


def help_of(program, *words):
    return output_of(harness.build_dir() / program, *words)


def rendered(page):
    """Return the page as plain text, with every run of white space as one space."""
    text = output_of("mandoc", "-T", "ascii", "-O", "width=1000", harness.build_dir() / "man" / page)
    return " ".join(re.sub(".\b", "", text).split())  # bold is a character, a backspace and the character again


class ManualPages(unittest.TestCase):
    def test_they_render_without_a_warning(self):
        for page in PAGES:
            path = harness.build_dir() / "man" / page
            for words in (["mandoc", "-T", "lint", "-W", "warning"], ["groff", "-ww", "-z", "-mandoc", "-Tutf8"]):
                done = subprocess.run([*words, path], capture_output=True, text=True)
                self.assertEqual((done.stdout + done.stderr, done.returncode), ("", 0), page)

    def assert_shows(self, page, lines):
        text = rendered(page)
        self.assertTrue(lines)
        for line in lines:
            self.assertIn(" ".join(line.replace("`", "").split()), text, page)

    def test_every_setting_has_its_meaning(self):
        rows = help_of("sluicectl", "settings").splitlines()[2:]
        cells = [row.strip("| ").split(" | ", 3) for row in rows]
        self.assertGreater(len(cells), 30)
        self.assert_shows("sluice.yaml.5", [f"{name} {meaning} Values: {values}." for name, values, _, meaning in cells])

    def test_every_command_has_every_line_of_its_help(self):
        usages = re.findall(r"^  (\S.*)\n      \S", help_of("sluicectl", "--help"), re.MULTILINE)
        self.assert_shows("sluicectl.1", usages)
        for usage in usages:
            lines = help_of("sluicectl", usage.split()[0], "--help").split("\n\n", 1)[1].splitlines()
            self.assert_shows("sluicectl.1", filter(None, lines))

    def test_the_daemon_has_every_line_of_its_help(self):
        lines = help_of("sluiced", "--help").split("\n\n", 2)[2].splitlines()
        headings = [line for line in lines if re.fullmatch(r"[A-Z][a-z]+( [a-z]+)?:", line)]
        self.assert_shows("sluiced.8", [line for line in lines if line and line not in headings])
        self.assert_shows("sluiced.8", [heading[:-1].upper() for heading in headings])


class Completion(unittest.TestCase):
    def complete(self, *words):
        """Return what the completion offers for the last of these words of a command line."""
        script = (f"source {data.ROOT}/daemon/ctl/completion.bash; COMP_WORDS=({shlex.join(words)}); "
                  f"COMP_CWORD={len(words) - 1}; _sluicectl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        path = os.pathsep.join((str(harness.build_dir()), os.environ["PATH"]))
        return output_of("bash", "-c", script, cwd=data.ROOT, env={**os.environ, "PATH": path}).split()

    def test_commands(self):
        listed = re.findall(r"^  ([\w-]+).*\n      \S", help_of("sluicectl", "--help"), re.MULTILINE)
        self.assertEqual(self.complete("sluicectl", ""), listed)
        self.assertEqual(self.complete("sluicectl", "--config", "a.yaml", "sta"), ["status"])

    def test_options(self):
        self.assertEqual(self.complete("sluicectl", "topics", "--p"), ["--partitions"])
        self.assertEqual(self.complete("sluicectl", "query", "--fi"), ["--file", "--filter"])

    def test_words(self):
        for words, offered in {"dead-letters": ["list", "retry", "show"], "topics": ["create"], "rebuild": ["accept"],
                               "dead-letters re": ["retry"], "dead-letters --newest 5 l": ["list"],
                               "tail": ["answers", "items", "queries", "seen"], "dead-letters show": [],
                               "dead-letters --json show": []}.items():
            last = [] if words.split()[-1] in ("re", "l") else [""]
            self.assertEqual(self.complete("sluicectl", *words.split(), *last), offered, words)

    def test_files(self):
        self.assertEqual(self.complete("sluicectl", "--config", "READ"), ["README.md"])
        self.assertEqual(self.complete("sluicectl", "load", "READ"), ["README.md"])


if __name__ == "__main__":
    data.main()
