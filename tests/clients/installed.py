# SPDX-License-Identifier: Apache-2.0
"""Installs the Python client with pip, as a user does, and makes this process import what was installed."""

import atexit
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def install():
    """Install from a copy of the tree: pip leaves files in the folder that it builds in."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-client-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("clients/python", "proto"):
        shutil.copytree(ROOT / name, folder / "tree" / name, ignore=shutil.ignore_patterns("__pycache__", "build"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--root-user-action=ignore", "--no-index", "--no-build-isolation", "--no-deps",
                    "--target", folder / "site", folder / "tree" / "clients" / "python"], check=True)
    return folder / "site"


SITE = str(install())
sys.path.insert(0, SITE)
