#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of stopping the daemon when Kafka fails: topics are deleted, or the broker hangs or is gone.

A stop takes 20 s at most, even if Kafka does not respond. The daemon first commits the offsets of answered queries.
"""

import signal
import time

from confluent_kafka import Consumer, TopicPartition

import data
import models
import real_broker
from harness import QUIET, SLOWNESS, Case, System, eventually


# The daemon's time limit for a stop, and extra time for a busy machine.
STOP_S, MARGIN_S = 20, 5


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    paths = {"movies": data.golden_dir() / "small_uid" / "weights.safetensors"}
    spaces = {name: models.load(path) for name, path in paths.items()}


class Stop(Case):
    def open(self, name, n_items=50):
        self.system = system = System(paths, spaces, None, broker.bootstrap, name, name)
        self.addCleanup(system.close)
        for kind, partitions in (("catalogue", 2), ("queries", 3), ("answers", 3), ("replies", 3), ("dead-letters", 1)):
            broker.create_topic(system.topic(kind), partitions)
        system.open()
        for i in range(n_items):
            system.put(b"item-%d" % i)
        system.sync()
        system.ask([system.queries.draw("movies", at_least=system.positions()) for _ in range(5)])
        return system

    def delete(self, *kinds):
        """Delete topics. Close the test's client first: it would hang on close after its topics are deleted."""
        self.system.client.close()
        self.system.client.close = lambda: None
        for kind in kinds:
            broker.delete_topic(self.system.topic(kind))

    def stop(self, signals=1, within_s=STOP_S, codes=(0,)):
        """Send SIGTERM, and check the exit status, the time taken and the log."""
        process, began = self.system.daemon.process, time.monotonic()
        process.send_signal(signal.SIGTERM)
        for _ in range(signals - 1):
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
        code = self.system.daemon.wait_exit(120)
        took = time.monotonic() - began
        print(f" [{took:.1f} s] ", end="", flush=True)
        self.assertIn(code, codes, self.system.daemon.log_tail())
        self.assertLess(took, (within_s + MARGIN_S) * SLOWNESS)
        self.system.daemon.check_log()

    def committed(self):
        """Return the query group's committed offsets, {partition: offset}."""
        consumer = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": f"{self.system.prefix}.group"})
        topic = self.system.topic("queries")
        try:
            return {p.partition: p.offset for p in consumer.committed([TopicPartition(topic, i) for i in range(3)], 60)
                    if p.offset >= 0}
        finally:
            consumer.close()

    def in_flight(self, n=200):
        """Send n queries without waiting for their answers, and return them."""
        queries = [self.system.send(self.system.queries.draw("movies")) for _ in range(n)]
        self.system.client.flush()
        return queries

    def test_the_catalogue_topic_was_deleted(self):
        system = self.open("no-catalogue")
        broker.delete_topic(system.topic("catalogue"))
        time.sleep(3)
        system.client.wait([q.id for q in self.in_flight(20)])
        self.stop()
        self.assertEqual(sum(self.committed().values()), 25)

    def test_the_query_topic_was_deleted(self):
        self.open("no-queries")
        self.delete("queries")
        time.sleep(3)
        self.stop()

    def test_the_answer_topic_was_deleted(self):
        self.open("no-answers")
        self.delete("answers")
        self.in_flight()
        eventually(lambda: "event=delivery_waiting outlet=answers" in self.system.daemon.log(),
                   "event=delivery_waiting")
        time.sleep(2)
        self.assertNotIn("event=delivery_resumed", self.system.daemon.log())
        self.stop(codes=(0, 1))  # undeliverable answers may have stopped it with an error already

    def test_all_topics_were_deleted(self):
        self.open("nothing")
        self.delete("answers", "queries", "catalogue", "dead-letters")
        time.sleep(3)
        self.stop()

    def pause(self):
        self.addCleanup(broker.process.send_signal, signal.SIGCONT)
        broker.process.send_signal(signal.SIGSTOP)

    def test_the_broker_hangs(self):
        system = self.open("hung")
        queries = self.in_flight(50)
        self.pause()
        time.sleep(1)
        self.stop()
        broker.process.send_signal(signal.SIGCONT)
        # No query is lost: the next start answers those whose offsets were not committed.
        system.daemon.start()
        system.daemon.wait_ready()
        system.client.wait([q.id for q in queries], 60)
        self.stop()

    def test_a_second_signal_hurries(self):
        self.open("hurried")
        self.in_flight(50)
        self.pause()
        time.sleep(1)
        self.stop(signals=2, within_s=6)
        broker.process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    data.main()
