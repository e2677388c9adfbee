#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of wall-clock steps, an hour back or forward, under a running daemon: no wait may become longer."""

import re
import time

from confluent_kafka import Consumer, TopicPartition

import data
import models
import real_broker
from clocks import SteppedClock
from harness import QUIET, SLOWNESS, Case, System, eventually
from wire import pb

HOUR_S = 3600


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    paths = {"movies": data.golden_dir() / "small_uid" / "weights.safetensors"}
    spaces = {name: models.load(path) for name, path in paths.items()}


class Clock(Case):
    def setUp(self):
        name = self.id().rsplit(".", 1)[1].replace("_", "-")
        self.system = system = System(paths, spaces, {"query": {"at_least_timeout_ms": int(5000 * SLOWNESS)}},
                                      broker.bootstrap, name, name)
        self.addCleanup(system.close)
        self.clock = SteppedClock(system.daemon)
        for kind, partitions in (("catalogue", 2), ("queries", 3), ("answers", 3), ("dead-letters", 1)):
            broker.create_topic(system.topic(kind), partitions)
        system.open()
        self.write(20)

    def write(self, n):
        for i in range(n):
            self.system.put(b"item-%d" % i)
        self.system.sync()
        self.system.ask([self.system.queries.draw("movies", at_least=self.system.positions()) for _ in range(5)])

    def ask_too_much(self):
        """Send a query that waits for records nobody writes. It gets an error when its wait times out."""
        query = self.system.queries.draw("movies", at_least=[pb.Position(partition=0, next=1 << 40)])
        return self.system.send(query)

    def is_committed(self):
        consumer = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": f"{self.system.prefix}.group"})
        topic = self.system.topic("queries")
        try:
            wanted = [TopicPartition(topic, p) for p in range(3)]
            ends = [consumer.get_watermark_offsets(p, 60)[1] for p in wanted]
            committed = [max(0, p.offset) for p in consumer.committed(wanted, 60)]
        finally:
            consumer.close()
        return committed == ends

    def check_all_goes_on(self):
        """Check that at_least times out in time, answers arrive, offsets are committed, and the daemon is ready."""
        waiting, began = self.ask_too_much(), time.monotonic()
        self.write(10)
        answer = self.system.client.wait([waiting.id], 15)[waiting.id]
        self.assertEqual(answer.error.code, pb.Error.NOT_SEEN)
        self.assertGreater(time.monotonic() - began, 4)
        eventually(self.is_committed, "the commits", 10)
        self.assertEqual(self.system.daemon.get("/readyz")[0], 200)

    def check_step(self, seconds):
        before = self.ask_too_much()
        self.system.client.flush()
        time.sleep(0.5)
        self.system.put(b"item-on-its-way")
        self.clock.step(1000 * seconds)
        self.system.client.wait([before.id], 15)
        self.check_all_goes_on()
        found = re.search(r"event=clock_stepped by_ms=(-?\d+) .*", self.system.daemon.log())
        self.assertTrue(found, "no event reports the step")
        self.assertAlmostEqual(int(found[1]), seconds * 1000, delta=1000)
        self.assertIn("waits=steady", found[0])

    def stop(self):
        began = time.monotonic()
        self.system.daemon.stop(15)
        print(f" [stopped in {time.monotonic() - began:.1f} s] ", end="", flush=True)

    def test_an_hour_back(self):
        self.check_step(-HOUR_S)
        self.stop()

    def test_an_hour_forward(self):
        self.check_step(HOUR_S)
        # A record written before the step must not count as an hour old.
        total = re.search(r"^sluice_visible_seconds_sum (\S+)", self.system.daemon.get("/metrics")[1], re.M)
        self.assertLess(float(total[1]), HOUR_S)
        self.stop()

    def test_a_step_back_right_before_the_stop(self):
        self.clock.step(-1000 * HOUR_S)
        self.stop()


if __name__ == "__main__":
    data.main()
