#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of ops/kafka: its broker keeps its data and port, and reports why it cannot start."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from confluent_kafka import Producer

import data
import harness
from harness import QUIET, TopicReader

sys.path.insert(0, str(data.ROOT / "ops"))
import kafka_node  # noqa: E402

TOPICS = ("catalogue", "queries", "answers", "dead-letters")


def setUpModule():
    reason = kafka_node.why_unavailable()
    if reason and data.CI:
        raise AssertionError(f"a real broker is required in CI: {reason}")
    if reason:
        raise unittest.SkipTest(reason)


class OpsKafka(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-ops-kafka-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.data = self.folder / "kafka"
        self.port = harness.free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.addCleanup(self.kafka, "stop", expected=None)

    def kafka(self, *words, expected=0, environment=None):
        done = subprocess.run([data.ROOT / "ops" / "kafka", *words, "--data", self.data], capture_output=True,
                              text=True, timeout=200, env={**os.environ, **(environment or {})})
        if expected is not None:
            self.assertEqual(done.returncode, expected, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def start(self, *words):
        said = self.kafka("start", *words)
        self.assertIn(f"127.0.0.1:{self.port}", said)
        return int(re.search(r"process (\d+)", said)[1])

    def create_topics(self):
        config = {"kafka": {"bootstrap.servers": self.bootstrap}, "store": {"path": "store"},
                  "spaces": {"movies": {"model": str(data.golden_dir() / "small_uid" / "weights.safetensors")}}}
        path = self.folder / "sluice.yaml"
        path.write_text(harness.to_yaml(config) + "\n")
        done = subprocess.run([harness.build_dir() / "sluicectl", "--config", path, "topics", "create"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("created"), len(TOPICS))

    def write(self, keys):
        producer = Producer({**QUIET, "bootstrap.servers": self.bootstrap, "acks": "all"})
        for key in keys:
            producer.produce("sluice.catalogue", b"value of " + key, key)
        self.assertEqual(producer.flush(30), 0)

    def read(self):
        return {r.key: r.value for r in TopicReader(self.bootstrap, "sluice.catalogue").read()}

    def test_what_was_written_is_there_after_a_stop_and_after_a_kill(self):
        keys = [b"key-%d" % i for i in range(100)]
        pid = self.start("--port", str(self.port))
        self.assertEqual(os.getsid(pid), pid, "the broker would end with the shell that started it")
        self.create_topics()
        self.write(keys)
        self.assertIn("its data stays", self.kafka("stop"))
        self.assertIn("not running", self.kafka("status", expected=3))
        pid = self.start()  # on the same port as before
        self.assertEqual(self.read(), {key: b"value of " + key for key in keys})
        self.write([b"late"])
        self.assertIn(f"process {pid}", self.kafka("status"))
        self.assertIn("is running already", self.kafka("start"))
        self.assertIn("to change the port", self.kafka("start", "--port", str(harness.free_port()), expected=1))
        os.kill(pid, signal.SIGKILL)
        harness.eventually(lambda: "not running" in self.kafka("status", expected=None), "the end of the broker")
        self.start()
        self.assertEqual(len(self.read()), 101)
        self.assertIn("Kafka Server started", self.kafka("logs"))
        self.kafka("stop")
        self.assertIn("was not running", self.kafka("stop"))

    def test_a_port_that_is_taken_is_said(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", self.port))
            s.listen()
            said = self.kafka("start", "--port", str(self.port), expected=1)
        self.assertIn(f"port {self.port} of 127.0.0.1 is taken", said)
        self.assertIn("--port", said)

    def test_what_is_missing_is_said(self):
        self.assertIn("there is no java; ops/setup installs it",
                      self.kafka("start", expected=1, environment={"PATH": str(self.folder)}))
        self.assertIn("ops/setup fetches them",
                      self.kafka("start", expected=1, environment={"KAFKA_JARS": str(self.folder)}))


if __name__ == "__main__":
    data.main()
