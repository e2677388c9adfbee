# SPDX-License-Identifier: Apache-2.0
"""Run Prometheus's promtool, which ops/setup fetches. If it is missing, tests are skipped; in CI they fail."""

import shutil
import subprocess
import sys
import unittest

import data


def find():
    fetched = data.ROOT / "build" / "deps" / "promtool"
    found = str(fetched) if fetched.exists() else shutil.which("promtool")
    if found:
        return found
    if data.CI:
        raise AssertionError("promtool is required in CI: run ops/setup")
    print("SKIPPED: PROMTOOL IS MISSING: RUN OPS/SETUP", file=sys.stderr, flush=True)
    raise unittest.SkipTest("promtool is missing: run ops/setup")


def run(*words, text=""):
    """Return (exit status, output)."""
    done = subprocess.run([find(), *map(str, words)], input=text, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr
