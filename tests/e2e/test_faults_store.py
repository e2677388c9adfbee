#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of a key with records in several partitions.

At a given watermark every daemon must have the same items, no matter when it was started.
"""

import tempfile
import time
import unittest
from pathlib import Path

from confluent_kafka import Producer

import models
import real_broker
import safetensors_io
import wire
from harness import QUIET, Case, System, to_yaml
from wire import pb

KEYS = 40


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-store-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"books": Path(folder.name) / "books.safetensors"}
    safetensors_io.write(paths["books"], {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
    spaces = {name: models.load(path) for name, path in paths.items()}


class Partitions(Case):
    def open(self, name, config=None):
        system = System(paths, spaces, config, broker.bootstrap, name, name)
        self.addCleanup(system.close)
        for kind, partitions in (("catalogue", 1), ("queries", 1), ("answers", 1), ("dead-letters", 1)):
            broker.create_topic(system.topic(kind), partitions)
        system.open()
        return system

    def write(self, partition, changes):
        """Write changes to a partition. changes: [(key, number, or None for a tombstone, timestamp in ms)]."""
        producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap, "linger.ms": 5, "acks": "all"})
        for key, number, timestamp in changes:
            item = number and pb.Item(parts={"books": pb.Part(vector=wire.vector([number, 0.0]))}).SerializeToString()
            producer.produce(self.system.topic("catalogue"), item, key, partition, timestamp=timestamp)
        self.assertEqual(0, producer.flush(60))

    def items(self, system, watermark):
        """Query a daemon at the watermark, and return {key: number} of all its items."""
        query = pb.Query(id=f"q{time.monotonic_ns()}", space="books", k=1000, vector=wire.vector([1.0, 0.0]),
                         at_least=[pb.Position(partition=p, next=n) for p, n in watermark.items()])
        system.client.send(query.id, query.SerializeToString(), [])
        answer = system.client.wait([query.id])[query.id]
        self.assertFalse(answer.HasField("error"), answer.error.message)
        return {hit.key: hit.score for hit in answer.hits}

    def test_a_topic_that_grows_gives_every_daemon_the_same_items(self):
        self.system = self.open("grown", {"catalogue": {"partitions_refresh_ms": 300}})
        base = int(time.time() * 1000) - 3600_000

        def keys(kind):
            return [f"{kind}-{i}".encode() for i in range(KEYS)]

        # Before the topic grows, all keys are in partition 0.
        self.write(0, [(key, 1.0, base) for kind in ("moved", "deleted", "kept", "back") for key in keys(kind)])
        self.items(self.system, {0: 4 * KEYS})
        broker.grow_topic(self.system.topic("catalogue"), 2)
        # Partition 1 gets newer records for all but "kept". Then "back" gets an even newer one in partition 0.
        self.write(1, [(key, 2.0, base + 10) for key in keys("moved")] +
                   [(key, None, base + 10) for key in keys("deleted")] +
                   [(key, 2.0, base - 10) for key in keys("kept")] + [(key, 2.0, base + 10) for key in keys("back")])
        self.write(0, [(key, 3.0, base + 20) for key in keys("back")])
        seen = {0: 5 * KEYS, 1: 4 * KEYS}
        want = {**dict.fromkeys(keys("moved"), 2.0), **dict.fromkeys(keys("kept"), 1.0),
                **dict.fromkeys(keys("back"), 3.0)}
        self.assertEqual(want, self.items(self.system, seen), "the daemon that ran throughout")
        self.system.daemon.stop()
        self.system.daemon.start().wait_ready()
        self.assertEqual(want, self.items(self.system, seen), "the same daemon after a restart")
        for i in range(2):
            fresh = self.open(f"fresh-{i}", {"catalogue": {"topic": self.system.topic("catalogue")}})
            self.assertEqual(want, self.items(fresh, seen), "a daemon with an empty store")
            fresh.daemon.stop()

    def test_a_state_aside_that_the_model_can_no_longer_use(self):
        self.system = self.open("remodelled", {"catalogue": {"partitions_refresh_ms": 300}})
        base = int(time.time() * 1000) - 3600_000
        self.write(0, [(b"back", 1.0, base), (b"again", 1.0, base)])
        broker.grow_topic(self.system.topic("catalogue"), 2)
        self.write(1, [(b"back", 2.0, base + 10), (b"again", 2.0, base + 10)])
        self.assertEqual({b"back": 2.0, b"again": 2.0}, self.items(self.system, {0: 2, 1: 2}))
        self.system.daemon.stop()
        path = paths["books"].with_name("larger.safetensors")
        safetensors_io.write(path, {}, {"sluice.similarity": "dot", "sluice.dim": "1000"})
        self.system.daemon.config["spaces"]["books"]["model"] = str(path)
        self.system.daemon.config_path.write_text(to_yaml(self.system.daemon.config) + "\n")
        self.system.daemon.start().wait_ready()
        # This tombstone is older than partition 0's record. That record counts again, but it fits only the old model.
        self.write(1, [(b"back", None, base - 10)])
        query = pb.Query(id="larger", space="books", k=10, vector=wire.vector([1.0] * 1000),
                         at_least=[pb.Position(partition=1, next=3)])
        self.system.client.send(query.id, query.SerializeToString(), [])
        answer = self.system.client.wait([query.id])[query.id]
        self.assertFalse(answer.HasField("error"), answer.error.message)
        self.assertEqual([], list(answer.hits), "parts of the old model are served")
        self.assertEqual(2, self.system.daemon.status()["items"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
