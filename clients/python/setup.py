# SPDX-License-Identifier: Apache-2.0
"""Builds the package: compiles proto/sluice.proto of this repository into the module sluice_client.sluice_pb2.

It runs protoc, or grpc_tools if there is no protoc.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROTO = Path(__file__).resolve().parents[2] / "proto"


class BuildWithMessages(build_py):
    def run(self):
        super().run()
        protoc = [shutil.which("protoc")] if shutil.which("protoc") else [sys.executable, "-m", "grpc_tools.protoc"]
        into = Path(self.build_lib) / "sluice_client"
        done = subprocess.run([*protoc, f"-I{PROTO}", f"--python_out={into}", f"--pyi_out={into}", "sluice.proto"])
        if done.returncode:
            raise SystemExit("sluice-client needs protoc (Debian: protobuf-compiler) or grpcio-tools")


setup(cmdclass={"build_py": BuildWithMessages})
