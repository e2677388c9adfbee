#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that examples/pytorch does what its page says: trains two models, exports, streams and queries them."""

import json
import os
import re
import sys
import unittest

import data
import harness
import pages

sys.path.insert(0, str(data.ROOT / "tests" / "clients"))
import installed  # noqa: E402

PAGE = "examples/pytorch/README.md"
CONFIG = "build/pytorch/sluice.yaml"


class PyTorch(pages.Commands):
    def setUp(self):
        super().setUp()
        os.symlink(data.ROOT / "examples", self.folder / "examples")
        self.environment = f"PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={installed.SITE}"

    def test_what_the_page_shows_is_what_happens(self):
        train, start, stream = pages.blocks(PAGE, "sh")
        (config,), (shown,) = pages.blocks(PAGE, "yaml"), pages.blocks(PAGE, "")
        self.run_shell(f"{self.environment} {train}", 300)
        config = config.replace("kafka:\n  bootstrap.servers: 127.0.0.1:9092", "embedded_broker:\n  enabled: true")
        (self.folder / CONFIG).write_text(f"{config}http:\n  listen: 127.0.0.1:{harness.free_port()}\n")
        self.start(start.splitlines()[1].removeprefix("build/release/"), CONFIG)
        status = json.loads(self.run_shell(f"sluicectl --config {CONFIG} status --json"))
        stream = stream.strip().replace("build/venv/bin/python", f"{self.environment} /usr/bin/python3")
        said = self.run_shell(f"{stream} {status['kafka']['bootstrap']}", 300)
        self.assertEqual([line.split()[0] for line in said.splitlines()],
                         [line.split()[0] for line in shown.splitlines()])
        for recall, hit_rate, proven in re.findall(r"torch ([\d.]+), HR@10 ([\d.]+), proven exact ([\d.]+)", said):
            # Items whose scores differ by rounding only may change places with the eleventh.
            self.assertGreaterEqual(float(recall), 0.99, said)
            self.assertGreater(float(hit_rate), 0.5, said)
            self.assertEqual(float(proven), 1, said)


def setUpModule():
    try:
        import torch  # noqa: F401
    except ImportError:
        reason = "there is no PyTorch; ops/setup installs it"
        if data.CI:
            raise AssertionError(reason) from None
        raise unittest.SkipTest(reason) from None


if __name__ == "__main__":
    data.main()
