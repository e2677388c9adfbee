#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the catalogue's lag with a real broker: in Kafka's tools, in seconds, and while the broker is away."""

import sys
import tempfile
import time
import unittest
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

import data
import models
import real_broker
from harness import PATIENT, QUIET, Case, System, eventually

sys.path.insert(0, str(data.ROOT / "tests" / "broker"))
import kafka_faults  # noqa: E402

HOUR_S = 3600
GROUP = "positions"


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for(properties=real_broker.RESTARTS_SOON)
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"codes": Path(folder.name) / "codes.safetensors"}
    models.random_recjpq(data.generator("lag models"), paths["codes"], m=8, b=256, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class Lag(Case):
    tool = None

    def open(self, name, partitions=1, **catalogue):
        config = {"catalogue": {"group": GROUP, "commit_interval_ms": 100, **catalogue}}
        self.system = System(paths, spaces, config, broker.bootstrap, name, name)
        self.addCleanup(self.system.close)
        self.topic = self.system.topic("catalogue")
        broker.create_topic(self.topic, partitions, {"cleanup.policy": "compact"})
        for kind in ("queries", "answers", "dead-letters"):
            broker.create_topic(self.system.topic(kind))
        return self.system.open()

    def write(self, prefix, count, partition=0, age_s=0):
        at_ms = int((time.time() - age_s) * 1000)
        kafka_faults.write(broker, self.topic, [(b"%s-%04d" % (prefix, i),
                                                 self.system.items.item().SerializeToString(), at_ms)
                                                for i in range(count)], partition=partition)

    def row(self, partition=0):
        return self.system.daemon.status()["catalogue_log"][partition]

    def committed(self, partitions):
        """Return what Kafka's tools show of the group: the offset of each partition."""
        if not self.tool:
            self.tool = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": GROUP})
            self.addCleanup(self.tool.close)
        asked = [TopicPartition(self.topic, p) for p in range(partitions)]
        return [p.offset for p in self.tool.committed(asked, timeout=30)]

    def test_kafkas_tools_show_the_positions(self):
        system = self.open("tools", partitions=3)
        self.write(b"zero", 20, 0)
        self.write(b"two", 5, 2)
        eventually(lambda: self.committed(3)[0::2] == [20, 5], "the positions to be committed")
        self.write(b"more", 7, 2)
        eventually(lambda: self.committed(3)[0::2] == [20, 12], "the next positions to be committed")
        (group,) = broker.admin().list_groups(GROUP, timeout=30)
        self.assertEqual((group.state, group.members), ("Empty", []))  # no members: nothing can be rebalanced
        self.assertNotIn("positions_not_committed", system.daemon.log())
        system.daemon.stop()

    def test_the_last_positions_are_committed_though_commits_take_long(self):
        """Nearly always the broker has not answered the last commit when records come, the last of all too."""
        system = self.open("fast", commit_interval_ms=1)
        for round_ in range(20):
            for i in range(10):
                self.write(b"%d-%d" % (round_, i), 1)
            expected = [10 * round_ + 10]
            eventually(lambda: self.committed(1) == expected, f"{expected} to be committed", 20)
        system.daemon.stop()

    def test_a_start_waits_until_the_lag_is_small(self):
        """A transaction that is open at the start holds records back, so the topic seems to be read to its end."""
        system = self.open("near", ready_max_lag=10)
        self.write(b"first", 50)
        eventually(lambda: self.row()["next"] == 50, "the first items")
        system.daemon.stop()
        writer = Producer({**QUIET, **PATIENT, "bootstrap.servers": broker.bootstrap, "transactional.id": "near"})
        writer.init_transactions()
        writer.begin_transaction()
        for i in range(11):
            writer.produce(self.topic, system.items.item().SerializeToString(), b"second-%04d" % i, 0)
        writer.flush()
        system.daemon.start()
        eventually(lambda: "ready_max_lag" in (system.daemon.get("/readyz") or [0, ""])[1], "the daemon to wait")
        query = system.send(system.queries.draw("codes", "exact", k=100))
        system.client.flush()
        (group,) = broker.admin().list_groups("near.group", timeout=30)
        self.assertEqual(group.members, [])
        writer.commit_transaction()
        answer = system.client.wait([query.id])[query.id]
        self.assertEqual(len(answer.hits), 61)  # the first answer has seen all
        system.daemon.wait_ready()
        system.daemon.stop()

    def test_committed_positions_are_never_read(self):
        system = self.open("never")
        self.write(b"first", 30)
        eventually(lambda: self.committed(1) == [30], "the positions to be committed")
        system.daemon.stop()
        self.write(b"second", 10)
        consumer = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": GROUP})
        self.addCleanup(consumer.close)
        consumer.commit(offsets=[TopicPartition(self.topic, 0, 40)], asynchronous=False)
        system.daemon.start()
        system.check_catalogue()
        self.assertEqual(system.daemon.status()["counters"]["applied"], 10)
        consumer.commit(offsets=[TopicPartition(self.topic, 0, 3)], asynchronous=False)
        self.write(b"third", 1)
        eventually(lambda: self.committed(1) == [41], "the daemon to overwrite the offset")
        system.daemon.stop()

    def test_a_commit_that_is_refused_harms_nobody(self):
        system = self.open("refused")
        member = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": GROUP})
        self.addCleanup(member.close)
        member.subscribe([self.topic])
        eventually(lambda: member.poll(0.1) or member.assignment(), "a member of the group")
        self.write(b"some", 10)
        eventually(lambda: "event=positions_not_committed" in system.daemon.log(), "the event")
        system.check_catalogue()
        self.assertEqual(self.row()["lag"], 0)
        member.close()
        eventually(lambda: self.committed(1) == [10], "the same positions to be committed when the group is empty")
        system.daemon.stop()

    def test_nothing_is_committed_if_it_is_turned_off(self):
        system = self.open("off", commit_interval_ms=0)
        self.write(b"some", 10)
        system.check_catalogue()
        self.assertLess(self.committed(1)[0], 0)
        system.daemon.stop()

    def test_the_age_of_the_oldest_record_after_a_downtime(self):
        system = self.open("downtime")
        self.write(b"old", 10, age_s=2 * HOUR_S)
        system.check_catalogue()
        self.assertEqual(self.row()["age_s"], 0)
        records = [(b"held-%d" % i, system.items.item().SerializeToString()) for i in range(5)]
        with kafka_faults.open_transaction(broker, self.topic, records) as producer:
            eventually(lambda: self.row()["lag"] == 5, "the records to be seen")
            self.assertLess(self.row()["age_s"], HOUR_S)  # the topic was read to its end a moment ago
            system.daemon.stop()
            system.daemon.start().wait_ready()
            # Now all that is known is that the records came after the last one that was applied.
            eventually(lambda: self.row()["lag"] == 5 and 2 * HOUR_S < self.row()["age_s"] < 3 * HOUR_S, "their age")
            producer.commit_transaction(30)
        eventually(lambda: (self.row()["lag"], self.row()["age_s"]) == (0, 0), "the lag to end")
        system.daemon.stop()

    def test_lag_while_the_broker_is_away(self):
        system = self.open("away")
        self.write(b"some", 10)
        system.check_catalogue()
        self.assertEqual(self.row()["age_s"], 0)
        broker.stop()
        try:
            eventually(lambda: self.row()["age_s"] > 1, "the age to rise")
            self.assertEqual((self.row()["lag"], self.row()["next"]), (0, 10))
            system.daemon.stop()  # does not wait for the broker: a stop takes at most 20 s
            system.daemon.start()
            row = eventually(lambda: system.daemon.get("/status") and system.daemon.status()["catalogue_log"],
                             "the positions of the store")[0]
            self.assertEqual((row["next"], row["end"]), (10, None))
            eventually(lambda: self.row()["age_s"] > 1, "the age since the last store")
        finally:
            broker.start()
        eventually(lambda: (self.row()["lag"], self.row()["age_s"]) == (0, 0), "the lag to end", 60)
        self.write(b"more", 1)
        eventually(lambda: self.committed(1) == [11], "the next position to be committed", 60)
        system.daemon.stop()


if __name__ == "__main__":
    data.main()
