#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of faults of the catalogue topic, with a real broker.

The topic is recreated, emptied, compacted, held back by an open transaction, or damaged. The daemon must end with
exactly the items of the current topic, and must report what it is waiting for.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import data
import harness
import models
import real_broker
import wire
from harness import SLOWNESS, Case, System, eventually
from wire import pb

sys.path.insert(0, str(data.ROOT / "tests" / "broker"))
import kafka_faults  # noqa: E402

COMPACT = {"cleanup.policy": "compact"}
HOUR_MS = 3600 * 1000


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"codes": Path(folder.name) / "codes.safetensors"}
    models.random_recjpq(data.generator("topic models"), paths["codes"], m=8, b=256, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class TopicCase(Case):
    """Tests that each have their own topics and daemon. The catalogue topic has one partition by default."""

    def open(self, name, config=None, topic_config=None, partitions=1):
        self.system = system = System(paths, spaces, config, broker.bootstrap, name, name)
        self.addCleanup(system.close)
        self.catalogue = system.topic("catalogue")
        broker.create_topic(self.catalogue, partitions, topic_config or COMPACT)
        for kind in ("queries", "answers", "dead-letters"):
            broker.create_topic(system.topic(kind))
        return system.open()

    def records(self, prefix, count):
        """Return `count` random items as [(key, value)]."""
        return [(b"%s-%04d" % (prefix, i), self.system.items.item().SerializeToString()) for i in range(count)]

    def load(self, records, **where):
        """Write records, and check that the daemon serves them all."""
        kafka_faults.write(broker, self.catalogue, records, **where)
        self.system.check_catalogue()

    def status(self):
        return self.system.daemon.status()

    def events(self, word):
        """Return the log lines whose event name contains the word."""
        return [line for line in self.system.daemon.log().splitlines() if re.search(rf"\bevent=\S*{word}", line)]

    def is_ready(self):
        return self.system.daemon.get("/readyz")[0] == 200

    def assert_catalogue(self, n_items):
        """Check that the daemon serves exactly the n_items items of the current topic."""
        self.system.follow_catalogue()
        eventually(lambda: self.is_ready() and self.status()["items"] == n_items,
                   f"{n_items} items; there are {self.status()['items']}", 30)
        self.system.check_catalogue()
        self.assertEqual(len(self.system.oracle.state(self.system.oracle.end()).items), n_items)
        self.assertEqual(self.status()["items"], n_items)


class MadeAnew(TopicCase):
    def make_anew(self, name, delay_s, new=None, is_other=True):
        """Serve 400 items, then delete the topic and recreate it after delay_s with 900 records.

        new: returns the new topic's records, given the old ones; by default all are different
        is_other: must the daemon report a discontinuity?

        If the topic is gone only briefly, the daemon can detect the change only by rereading records. Here it does so
        every second.
        """
        self.open(name, {"catalogue": {"partitions_refresh_ms": 1000}})
        old = self.records(b"old", 400)
        self.load(old)
        broker.delete_topic(self.catalogue)
        deleted = time.monotonic()
        if delay_s >= 2:
            eventually(lambda: not self.is_ready(), "/readyz to say that the topic is missing", delay_s)
            self.assertTrue(self.status()["not_ready"])
        time.sleep(max(0.0, deleted + delay_s - time.monotonic()))
        broker.create_topic(self.catalogue, config=COMPACT)
        kafka_faults.write(broker, self.catalogue, new(old) if new else self.records(b"new", 900))
        if is_other:
            eventually(lambda: self.status()["counters"]["discontinuities"], "the discontinuity", 30)
        self.assert_catalogue(900)

    def assert_one_discontinuity(self):
        self.assertEqual(self.status()["counters"]["discontinuities"], 1)
        self.assertEqual(len(self.events("discontinuity")), 1, self.events("discontinuity"))
        self.system.daemon.stop()
        self.system.daemon.start().wait_ready()
        self.assertEqual(self.status()["counters"]["discontinuities"], 0, "the restart found another one")
        self.assert_catalogue(900)

    def test_at_once(self):
        self.make_anew("anew-at-once", 0)
        self.assert_one_discontinuity()

    def test_after_a_fifth_of_a_second(self):
        self.make_anew("anew-fifth", 0.2)
        self.assert_one_discontinuity()

    def test_after_one_second(self):
        self.make_anew("anew-one", 1)
        self.assert_one_discontinuity()

    def test_after_four_seconds(self):
        self.make_anew("anew-four", 4)
        self.assert_one_discontinuity()

    def test_with_the_same_records_and_more(self):
        # The daemon may not notice that the topic is a new one. Either way it must end with the new topic's items.
        self.make_anew("anew-same", 1, lambda old: old + self.records(b"new", 500), is_other=False)

    def test_with_the_same_record_where_the_daemon_stood(self):
        self.make_anew("anew-trap", 1, lambda old: self.records(b"new", 399) + old[399:] + self.records(b"more", 500))

    def test_while_the_daemon_is_stopped(self):
        self.open("anew-stopped")
        self.load(self.records(b"old", 400))
        self.system.daemon.stop()
        kafka_faults.recreate_topic(broker, self.catalogue, 1, COMPACT, 0, self.records(b"new", 900))
        self.system.daemon.start().wait_ready()
        self.assert_catalogue(900)


    def test_twice_in_a_row(self):
        # The topic is recreated again while the daemon reads the first new one. Both hold the same keys.
        self.open("anew-twice", {"catalogue": {"partitions_refresh_ms": 1000}}, partitions=2)
        for partition in (0, 1):
            self.load(self.records(b"p%d" % partition, 250), partition=partition)
        for count in (250, 350):
            broker.delete_topic(self.catalogue)
            broker.create_topic(self.catalogue, 2, COMPACT)
            for partition in (0, 1):
                kafka_faults.write(broker, self.catalogue, self.records(b"p%d" % partition, count), partition=partition)
        eventually(lambda: self.is_ready() and self.status()["items"] == 700, "700 items")
        time.sleep(3)  # the daemon rereads records every second to detect a change
        self.assert_catalogue(700)


    def test_while_the_position_is_held_back(self):
        # Undeliverable dead letters or a full catalogue hold the position back from the first records on.
        system = self.open("anew-held", {"catalogue": {"max_items": 500}})
        broker.delete_topic(system.topic("dead-letters"))
        bad = [(b"bad-%d" % i, b"\xff\xff\xff") for i in range(5)]
        kafka_faults.write(broker, self.catalogue, bad + self.records(b"old", 400))
        system.check_catalogue()
        self.replace_while_stopped(bad + self.records(b"new", 450))
        self.assert_catalogue(450)
        self.replace_while_stopped(self.records(b"many", 600), waits_for="full")
        self.replace_while_stopped(self.records(b"few", 480))
        self.assert_catalogue(480)

    def replace_while_stopped(self, records, waits_for=None):
        """Restart the daemon with the same topic, then with a new one. Only the latter is a discontinuity."""
        for is_other in (False, True):
            self.system.daemon.stop()
            if is_other:
                kafka_faults.recreate_topic(broker, self.catalogue, 1, COMPACT, 0, records)
            self.system.daemon.start()
            eventually(lambda: (self.system.daemon.get("/status") or [0])[0] == 200 and
                       (self.is_ready() or "full" in (self.status()["not_ready"] or "")), "the topic to be read")
            if waits_for and is_other:
                eventually(lambda: waits_for in (self.status()["not_ready"] or ""), waits_for)
            self.assertEqual(self.status()["counters"]["discontinuities"], int(is_other))


class Emptied(TopicCase):
    """Tests of a recreated topic that is empty or nearly so, which is probably a mistake.

    The old items are served until the topic has enough items again, or an operator accepts the new ones.
    """

    def open_emptied(self, name, is_running):
        self.open(name)
        self.load(self.records(b"old", 400))
        if not is_running:
            self.system.daemon.stop()
        kafka_faults.recreate_topic(broker, self.catalogue, 1, COMPACT, 1)
        if not is_running:
            self.system.daemon.start()
        eventually(lambda: (self.system.daemon.get("/status") or [0])[0] == 200 and self.rebuild().get("waits"),
                   "the rebuild to wait")

    def rebuild(self):
        return self.status().get("rebuild") or {}

    def assert_old_is_served(self):
        query = self.system.queries.draw("codes", "exact", k=1000)
        self.system.send(query)
        answer = self.system.client.wait([query.id])[query.id]
        self.assertEqual({hit.key[:3] for hit in answer.hits}, {b"old"})
        self.assertEqual(len(answer.hits), 400)
        self.assertEqual(self.status()["items"], 400)

    def accept(self):
        done = subprocess.run([harness.build_dir() / "sluicectl", "--config", self.system.daemon.config_path, "rebuild",
                               "accept"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_old_items_are_served_until_there_are_enough_new_ones(self):
        self.open_emptied("emptied-running", True)
        rebuild = self.rebuild()
        self.assertEqual((rebuild["items"], rebuild["live_items"]), (0, 400))
        self.assertTrue(rebuild["reason"])
        self.assertEqual(len(self.events("rebuild_waits")), 1)
        self.assert_old_is_served()
        kafka_faults.write(broker, self.catalogue, self.records(b"new", 100))
        eventually(lambda: self.rebuild().get("items") == 100, "100 new items to be read")
        self.assertTrue(self.rebuild()["waits"])
        self.assert_old_is_served()
        kafka_faults.write(broker, self.catalogue, self.records(b"more", 150))
        self.assert_catalogue(250)

    def test_the_new_items_are_served_once_a_person_accepts_them(self):
        self.open_emptied("emptied-stopped", False)
        self.assert_old_is_served()
        kafka_faults.write(broker, self.catalogue, self.records(b"new", 3))
        eventually(lambda: self.rebuild().get("items") == 3, "3 new items to be read")
        self.accept()
        self.assert_catalogue(3)
        self.assertFalse(self.rebuild())


class Compacted(TopicCase):
    def test_the_last_applied_record_is_gone_and_the_next_is_older(self):
        system = self.open("compacted", topic_config=kafka_faults.compacted_soon())
        some = self.records(b"some", 10)
        for record in some:
            kafka_faults.write(broker, self.catalogue, [record])
        system.check_catalogue()
        system.daemon.stop()
        # A backfill rewrites the last item and adds another one, both with yesterday's timestamp.
        past_ms = int(time.time() * 1000) - 24 * HOUR_MS
        key, value = some[9][0], system.items.item().SerializeToString()
        kafka_faults.write(broker, self.catalogue, [(key, value, past_ms)])
        kafka_faults.write(broker, self.catalogue, [(b"other", value, past_ms)])
        kafka_faults.wait_compacted(broker, self.catalogue, 9)
        system.daemon.start().wait_ready()
        self.assert_catalogue(11)
        self.assertEqual(self.status()["counters"]["discontinuities"], 0)
        self.assertEqual(self.events("discontinuity"), [])


    def test_deletes_that_were_missed_while_the_daemon_was_suspended(self):
        self.open("suspended", topic_config=kafka_faults.compacted_soon() | {"delete.retention.ms": "1000"})
        some = self.records(b"some", 5)
        for record in some:
            kafka_faults.write(broker, self.catalogue, [record])
        self.system.check_catalogue()
        self.system.daemon.process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 6
        (gone,) = kafka_faults.write(broker, self.catalogue, [(some[0][0], None)])

        def is_gone():
            kafka_faults.write(broker, self.catalogue, [some[1]])  # closes the segment for compaction
            return gone not in kafka_faults.offsets_of(broker, self.catalogue)
        eventually(is_gone, "the tombstone to be removed", 60)
        time.sleep(max(0.0, until - time.monotonic()))
        self.system.daemon.process.send_signal(signal.SIGCONT)
        eventually(lambda: self.status()["counters"]["discontinuities"], "the discontinuity")
        self.assertTrue(any("deletes may be missing" in line for line in self.events("discontinuity")))
        self.assert_catalogue(4)


    def test_deletes_that_may_be_missing_because_the_daemon_lagged_when_it_was_killed(self):
        # Each fetch brings one batch of one record, so that reading takes longer than the topic keeps tombstones.
        slowly = {"catalogue": {"kafka": {"fetch.message.max.bytes": 1, "fetch.wait.max.ms": 1,
                                          "queued.min.messages": 1}}}
        kept_s, n_records = 2, 30000  # a restart takes less
        self.open("lagging", slowly, topic_config=COMPACT | {"delete.retention.ms": str(kept_s * 1000)})
        kafka_faults.write(broker, self.catalogue, self.records(b"item", n_records), per_batch=1)
        next_offset = lambda: self.status()["catalogue_log"][0]["next"]
        eventually(next_offset, "the first records to be read")
        time.sleep(kept_s + 0.5)
        read = next_offset()
        self.assertLess(read, n_records, "reading is not slow enough for this test")
        self.system.daemon.kill()
        self.system.daemon.start()
        eventually(lambda: self.events("discontinuity"), "the discontinuity")
        self.assertTrue(any("deletes may be missing" in line for line in self.events("discontinuity")))


    def test_a_catalogue_that_was_full_for_longer_than_tombstones_are_kept(self):
        kept_s, limit = 3, 20  # a restart takes less
        self.open("full-for-long", {"catalogue": {"max_items": limit}},
                  topic_config=COMPACT | {"delete.retention.ms": str(kept_s * 1000)})
        daemon = self.system.daemon
        kafka_faults.write(broker, self.catalogue, self.records(b"item", limit + 5))
        eventually(lambda: self.status()["phase"].startswith("full"), "the catalogue to be full")
        time.sleep(kept_s + 0.5)
        daemon.stop()
        daemon.config = harness.merged(daemon.config, {"catalogue": {"max_items": 100}})
        daemon.config_path.write_text(harness.to_yaml(daemon.config) + "\n")
        daemon.start().wait_ready()
        self.assert_catalogue(limit + 5)
        self.assertEqual(self.events("discontinuity"), [])


class HeldBack(TopicCase):
    def log(self):
        """Return the row of partition 0 in /status."""
        (row,) = self.status()["catalogue_log"]
        return row

    def check_writer(self, producer):
        """Check that sluicectl says what it waits for, and commit the transaction."""
        words = [harness.build_dir() / "sluicectl", "--config", self.system.daemon.config_path, "delete", "nothing"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as writer:
            self.assertIn("the daemon waits: a transaction is open in the topic", writer.stderr.readline())
            producer.commit_transaction(30)
            self.assertEqual(writer.wait(60 * SLOWNESS), 0)

    def test_an_open_transaction_is_said_by_a_daemon_that_starts_behind_it(self):
        self.open("held-start", {"catalogue": {"ready_max_lag": 10}})
        self.system.daemon.stop()
        inside, behind = self.records(b"inside", 5), self.records(b"behind", 50)
        with kafka_faults.open_transaction(broker, self.catalogue, inside, "held.start") as producer:
            kafka_faults.write(broker, self.catalogue, behind)
            self.system.daemon.start()
            eventually(lambda: self.system.daemon.get("/status"), "the daemon to listen")
            eventually(lambda: [row["held_back"] for row in self.status()["catalogue_log"]] == [55],
                       "55 records to be reported as held back")
            self.assertIn("catching up", self.status()["not_ready"])
            self.check_writer(producer)
        self.system.daemon.wait_ready()

    def test_an_open_transaction_is_said(self):
        self.open("held")
        self.load(self.records(b"before", 20))
        inside, behind = self.records(b"inside", 5), self.records(b"behind", 50)
        with kafka_faults.open_transaction(broker, self.catalogue, inside, "held.loader") as producer:
            kafka_faults.write(broker, self.catalogue, behind)
            eventually(lambda: self.log()["held_back"] == 55, "55 records to be reported as held back")
            row = self.log()
            self.assertEqual((row["partition"], row["next"], row["committed_end"], row["end"], row["lag"]),
                             (0, 20, 20, 75, 55))
            eventually(lambda: self.log()["age_s"] > 1, "their age")
            self.assertTrue(self.is_ready())
            self.assertEqual(self.status()["items"], 20)
            self.assertRegex(self.system.daemon.get("/metrics")[1],
                             r'(?m)^sluice_catalogue_held_back_records{partition="0"} 55$')
            eventually(lambda: self.events("held_back"), "the event")
            time.sleep(2)
            self.assertEqual(len(self.events("held_back")), 1, self.events("held_back"))
            self.check_writer(producer)
        eventually(lambda: self.status()["items"] == 75, "the records behind the transaction")
        eventually(lambda: (self.log()["held_back"], self.log()["lag"], self.log()["age_s"]) == (0, 0, 0),
                   "lag and age to end")
        self.system.check_catalogue()


class Damaged(TopicCase):
    """Tests of an unreadable batch. It stops its partition, is reported once, and does not affect other partitions.

    Items are JSON. After a wrong checksum, librdkafka 2.0.2 takes bytes of some record for the head of a batch; if that
    has a negative size and version 0 or 1, it aborts. Protobuf has such bytes, text has none.
    """

    def records(self, prefix, count):
        return [(key, wire.dumps(wire.item_json(pb.Item.FromString(value))))
                for key, value in super().records(prefix, count)]

    def open_damaged(self, name, at):
        """Start a daemon on a topic with a damaged batch.

        Each of two partitions has 20 items. In partition 0 a good batch, a damaged one and a good one follow.
        """
        system = self.open(name, partitions=2)
        for partition in (0, 1):
            self.load(self.records(b"p%d" % partition, 20), partition=partition)
        system.daemon.stop()
        batches = [self.records(b"batch-%d" % i, 5) for i in range(3)]
        for batch in batches:
            kafka_faults.write(broker, self.catalogue, batch, partition=0)
        self.damage = lambda: kafka_faults.damage_batch(broker, self.catalogue, 25, at=at)
        self.damage()
        system.daemon.start()
        eventually(lambda: (system.daemon.get("/status") or [0])[0] == 200 and self.events("damage"),
                   "the damage to be reported")
        self.assertEqual(self.status()["counters"]["discontinuities"], 0)

    def next(self):
        return {p["partition"]: p["next"] for p in self.status()["watermark"]}

    def assert_backs_off(self, line, retries_max):
        """Count the retries since a line of the log. Retries wait 0.5, 1, 2 and 4 s, so few of them fit into 4 s."""
        said = self.system.daemon.log().splitlines()[line:]
        retries = [text for text in said
                   if "paused: the broker's log is damaged" in text and "event=catalogue " in text]
        self.assertLessEqual(len(retries), retries_max, "retries do not back off:\n" + "\n".join(said))

    def assert_waits_and_recovers(self):
        system = self.system
        eventually(lambda: self.next().get(0) == 25, "the batch before the damage")
        kafka_faults.write(broker, self.catalogue, self.records(b"late", 7), partition=1)
        eventually(lambda: self.next().get(1) == 27, "the other partition to go on")
        before = len(system.daemon.log().splitlines())
        time.sleep(4)
        self.assert_backs_off(before, 4)
        self.assertEqual(len(self.events("damage")), 1, self.events("damage"))
        self.assertEqual(self.next()[0], 25)
        counters = self.status()["counters"]
        self.assertEqual((counters["damages"], counters["discontinuities"], counters["rebuilds"]), (1, 0, 0))
        self.damage()  # the same call again repairs the batch
        eventually(lambda: self.next()[0] == 35, "the partition to go on once the batch is whole", 60)
        system.daemon.wait_ready()
        self.assert_catalogue(62)
        system.daemon.stop()

    def test_a_batch_that_cannot_be_taken_apart(self):
        self.open_damaged("damaged-length", kafka_faults.BATCH_RECORDS_FROM)
        self.assert_waits_and_recovers()

    def test_a_value_that_is_not_what_was_written(self):
        self.open_damaged("damaged-value", -3)
        self.assert_waits_and_recovers()

    def test_a_batch_of_no_known_version(self):
        # librdkafka continues after the batch. The daemon must not skip its records silently.
        self.open_damaged("damaged-magic", kafka_faults.BATCH_MAGIC_AT)
        eventually(lambda: self.next().get(0) == 25, "the batch before the damage")
        time.sleep(2)
        self.assertEqual(self.next()[0], 25)

    def test_two_partitions_that_are_damaged(self):
        system = self.open("damaged-twice", partitions=3)
        for partition in (0, 1, 2):
            self.load(self.records(b"p%d" % partition, 20), partition=partition)
        system.daemon.stop()
        for partition in (0, 1):
            for i in range(2):
                kafka_faults.write(broker, self.catalogue, self.records(b"p%d-%d" % (partition, i), 5),
                                   partition=partition)
            kafka_faults.damage_batch(broker, self.catalogue, 20, partition)
        system.daemon.start()
        eventually(lambda: len(self.events("catalogue_damaged")) == 2, "both to be reported")
        query = system.send(system.queries.draw("codes", "exact", k=5))
        system.client.wait([query.id])  # answered from the items that were read
        self.assertFalse(self.is_ready())
        before = len(system.daemon.log().splitlines())
        time.sleep(4)
        self.assert_backs_off(before, 8)
        self.assertEqual(self.status()["counters"]["damages"], 2)
        for partition in (0, 1):
            kafka_faults.damage_batch(broker, self.catalogue, 20, partition)
        eventually(lambda: (self.next().get(0), self.next().get(1)) == (30, 30), "both to go on", 90)
        system.daemon.wait_ready()
        self.assert_catalogue(80)

    def test_a_daemon_that_was_told_to_stops(self):
        system = self.open("damaged-stop", {"catalogue": {"on_damage": "stop"}})
        kafka_faults.write(broker, self.catalogue, self.records(b"batch", 5))
        system.check_catalogue()
        system.daemon.stop()
        kafka_faults.write(broker, self.catalogue, self.records(b"more", 5))
        kafka_faults.damage_batch(broker, self.catalogue, 5)
        system.daemon.start()
        self.assertEqual(system.daemon.wait_exit(30 * SLOWNESS), 3)


class Embedded(Case):
    """A test of a gap: the embedded broker drops all but the last 5 MiB of a partition.

    The daemon must report an error that names the remedy, and must not rebuild.
    """

    def test_a_gap_deletes_nothing(self):
        system = self.system = System(paths, spaces, {"embedded_broker": {"partitions": 1}, "catalogue": {
            "max_items": 500000}}, None, "sluice", "gap")
        self.addCleanup(system.close)
        system.open()
        status, seen, written = system.daemon.status, 0, 0
        while not status()["counters"]["gaps"] and written < 300000:  # at first the daemon may keep up
            for written in range(written + 1, written + 30001):
                system.put_raw(b"key-%d" % written, b'{"parts": {"codes": {"codes": [1,2,3,4,5,6,7,8]}}}' + b" " * 2000)
                if written % 5000 == 0:
                    seen, before = status()["items"], seen
                    self.assertGreaterEqual(seen, before, "the number of items fell")
            self.assertEqual(system.producer.flush(60 * SLOWNESS), 0)
        eventually(lambda: status()["watermark"] and status()["watermark"][0]["next"] == written, "the end of the log")
        system.daemon.wait_ready()
        counters = status()["counters"]
        print(f" [{written} written, {status()['items']} served, {counters['gaps']} gaps] ", end="", flush=True)
        self.assertEqual((counters["discontinuities"], counters["rebuilds"]), (0, 0))
        self.assertEqual(status()["items"], counters["applied"])
        self.assertGreater(counters["gaps"], 0)
        self.assertLess(status()["items"], written)
        lines = [line for line in system.daemon.log().splitlines() if "event=embedded_broker_gap" in line]
        self.assertTrue(lines and all("ops/kafka" in line for line in lines), lines)


if __name__ == "__main__":
    data.main()
