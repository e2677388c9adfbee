#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of models as training leaves them.

--check-config must refuse an ambiguous model with a remedy. A model that loads slowly must extend the service manager's
start timeout.
"""

import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import data
import harness
import models
import safetensors_io

# Rows and columns of W. The decomposition takes seconds with the reference BLAS, and less with others.
LARGE = 900


class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-eval-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "model.safetensors"
        self.rng = data.generator(self.id())
        self.daemon = harness.Daemon(
            {"embedded_broker": {"enabled": True}, "store": {"path": str(self.folder / "store")},
             "catalogue": {"max_items": 100}, "spaces": {"taste": {"model": str(self.model)}}}, self.folder)

    def check(self):
        done = subprocess.run([harness.build_dir() / "sluiced", "--config", self.daemon.config_path, "--check-config"],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def assert_refused(self, tensors, metadata, *words):
        safetensors_io.write(self.model, tensors, metadata)
        code, said = self.check()
        self.assertNotEqual(code, 0)
        for word in (str(self.model), *words):
            self.assertIn(word, said)

    def test_what_leaves_doubts_is_refused_with_the_remedy(self):
        models.random_mol(self.rng, self.model)
        self.assertEqual(self.check()[0], 0)
        tensors, metadata = safetensors_io.read(self.model)
        for key, line in (("mol.dot_product_l2_norm", 'add "mol.dot_product_l2_norm": "1"'),
                          ("mol.gating_combination_type", 'add "mol.gating_combination_type": "glu_silu"'),
                          ("mol.uid_hash", 'add "mol.uid_hash": "[13]"')):
            self.assert_refused(tensors, {name: text for name, text in metadata.items() if name != key}, line)
        self.assert_refused(tensors, {**metadata, "mol.temprature": "0.1"}, '"mol.temprature"',
                            'nearest is "mol.temperature"')
        for prefix in ("module.", "_orig_mod.", "model.similarity_module."):
            self.assert_refused({prefix + name: tensor for name, tensor in tensors.items()}, metadata,
                                f'take the prefix "{prefix}" off', "docs/models.md")

    def start_with_a_slow_model(self):
        """Start the daemon, and return the service manager's socket after the first notice."""
        safetensors_io.write(self.model, {"W": self.rng.standard_normal((LARGE, LARGE)).astype(np.float32)},
                             {"sluice.similarity": "bilinear"})
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(str(self.folder / "notify"))
        manager.settimeout(60 * harness.SLOWNESS)
        self.daemon.environment = {"NOTIFY_SOCKET": str(self.folder / "notify")}
        self.daemon.start()
        self.addCleanup(lambda: self.daemon.is_running() and self.daemon.kill())
        first = manager.recv(4096).decode()
        self.assertIn("EXTEND_TIMEOUT_USEC=", first)
        self.assertIn("opening models", first)
        return manager

    def wait_for_notice(self, manager, text):
        for _ in range(1000):
            if text in manager.recv(4096).decode():
                return
        self.fail(f"the service manager was never told {text}")

    def test_the_service_manager_is_told_before_the_models_are_loaded(self):
        manager = self.start_with_a_slow_model()
        self.assertEqual(self.check()[0], 0)
        self.wait_for_notice(manager, "READY=1")
        self.daemon.stop()

    def test_a_signal_stops_the_daemon_before_its_models_are_loaded(self):
        manager = self.start_with_a_slow_model()
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.process.send_signal(signal.SIGTERM)
        self.wait_for_notice(manager, "STOPPING=1")
        self.assertNotIn("event=started", self.daemon.log())
        self.assertEqual(self.daemon.wait_exit(60), 0)
        self.assertIn("event=stopped", self.daemon.log())


if __name__ == "__main__":
    data.main()
