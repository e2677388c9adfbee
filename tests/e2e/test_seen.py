#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what users have seen: impressions go through Kafka, and queries leave them out, exactly."""

import json
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import data
import models
import real_broker
import wire
from harness import SLOWNESS, Case, System, build_dir, eventually
from oracle import check_epochs
from wire import pb

N_ITEMS = 1000
USERS = [b"7", b"user-7", b"\xff\xfe\x00raw", "\u00fcml\u00e4ut".encode(), b"u" * 256]
FOR_EVER = {"max_per_user": 100000, "ttl_s": 0}


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models of what users have seen")
    names = ("dot", "mol", "recjpq")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in names}
    models.random_vectors(rng, paths["dot"], "dot")
    models.random_mol(rng, paths["mol"])
    models.random_recjpq(rng, paths["recjpq"], b=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class SeenCase(Case):
    """Tests that each have a daemon with a seen topic, and a catalogue."""

    def open(self, seen=None, prefix="sluice", query=None, **where):
        seen = {"topic": f"{prefix}.seen", **FOR_EVER, **(seen or {})}
        self.system = System(paths, spaces, {"seen": seen, "query": query or {}}, name=self.id(), prefix=prefix, **where)
        self.addCleanup(self.system.close)
        self.seen = {}  # user -> set of items
        self.ends = {}  # partition of the seen topic -> next offset
        return self.system

    def fill(self):
        self.keys = [b"item-%04d" % i for i in range(N_ITEMS)]
        for key in self.keys:
            self.system.put(key, self.system.items.item(list(spaces)))
        self.system.sync()

    # ------------------------------------------------------------------------------------------------- impressions

    def note_end(self, error, message):
        assert error is None, error
        self.ends[message.partition()] = max(self.ends.get(message.partition(), 0), message.offset() + 1)

    def write(self, user, value, headers=(), **where):
        self.system.producer.produce(self.system.topic("seen"), value, user, headers=list(headers),
                                     on_delivery=self.note_end, **where)
        self.system.producer.poll(0)

    def see(self, user, items, time_ms=None):
        """Record that a user has seen items, in a random one of the formats."""
        self.seen.setdefault(user, set()).update(items)
        if self.system.rng.integers(2):
            record = pb.Seen(items=items)
            if time_ms is not None:
                record.time_unix_ms = time_ms
            self.write(user, record.SerializeToString(), [("content-type", wire.PROTOBUF.encode())])
        else:
            record = {"items": [wire.key_json(key) for key in items]}
            if time_ms is not None:
                record["time_unix_ms"] = time_ms
            self.write(user, wire.dumps(record))

    def forget(self, user):
        self.seen.pop(user, None)
        self.write(user, None)

    def positions(self):
        assert self.system.producer.flush(60 * SLOWNESS) == 0
        return [pb.Position(partition=p, next=n) for p, n in self.ends.items()]

    # ----------------------------------------------------------------------------------------------------- queries

    def query(self, user, space=None, **fields):
        space = space or data.pick(self.system.rng, list(spaces))
        fields.setdefault("k", data.pick(self.system.rng, [1, 10, 100, N_ITEMS + 1]))
        return self.system.queries.draw(space, exclude_seen_by=user, at_least=self.system.positions(), **fields)

    def send(self, query):
        """Send a query. Users that are not text cannot be in JSON."""
        try:
            query.exclude_seen_by.decode()
        except UnicodeDecodeError:
            return self.system.send(query, "protobuf")
        return self.system.send(query)

    def ask(self, queries):
        for query in queries:
            self.send(query)
        self.check(queries)

    def check(self, queries):
        """Check the answers against the oracle: as if each query had excluded what its user has seen."""
        system = self.system
        answers = system.client.wait([query.id for query in queries], 60)
        system.sync()
        for query in sorted(queries, key=lambda q: sum(p.next for p in answers[q.id].watermark)):
            plain = pb.Query()
            plain.CopyFrom(query)
            plain.exclude.extend(sorted(self.seen.get(query.exclude_seen_by, ())))
            system.oracle.check(plain, answers[query.id])
            system.answers.append(answers[query.id])

    def ask_all_users(self, n=4):
        self.ask([self.query(user, at_least_seen=self.positions()) for user in [*USERS, b"nobody"] for _ in range(n)])

    def keys_of(self, user, space="dot", **fields):
        """Return all items that the user gets."""
        query = self.send(self.query(user, space, k=N_ITEMS + 1, method="exact", at_least_seen=self.positions(), **fields))
        answer = self.system.client.wait([query.id], 60)[query.id]
        assert not answer.HasField("error"), answer.error
        return {hit.key for hit in answer.hits}

    def pick_items(self, n):
        return [data.pick(self.system.rng, self.keys) for _ in range(n)]

    def see_random(self, n=30):
        """Write random impressions. Now and then a user is forgotten, or has seen what is no item."""
        rng = self.system.rng
        for _ in range(n):
            user = data.pick(rng, USERS)
            if rng.random() < 0.05:
                self.forget(user)
            else:
                self.see(user, self.pick_items(1 + rng.integers(60)) + [b"no such item"] * int(rng.integers(2)))

    def finish(self):
        check_epochs(self.system.answers)
        self.system.answers.clear()
        print(f"\n{self.system.oracle.checked} answers checked", flush=True)

    def assert_error(self, query, code, words):
        self.send(query)
        answer = self.system.client.wait([query.id])[query.id]
        self.system.oracle.check_error(query, answer, code)
        self.assertRegex(answer.error.message, words)


class Embedded(SeenCase):
    def test_a_user_never_gets_what_the_user_has_seen(self):
        self.open().open()
        self.fill()
        self.ask_all_users()
        for _ in range(4):
            self.see_random()
            self.ask_all_users()
        self.see(USERS[0], self.keys)  # everything: there are no hits
        self.ask_all_users()
        self.forget(USERS[0])
        self.ask_all_users()
        status = self.system.daemon.status()
        self.assertTrue(status["seen"]["caught_up"])
        self.assertEqual(status["seen"]["users"], len(self.seen))
        self.assertEqual(status["counters"]["seen_queries"], len(self.system.answers))
        self.finish()
        self.system.daemon.stop()


class RealBroker(SeenCase):
    """One broker for all of these tests, with topics of its own for each."""

    @classmethod
    def setUpClass(cls):
        cls.broker = real_broker.open_for(cls.addClassCleanup, real_broker.RESTARTS_SOON)

    def open_with_broker(self, prefix, query=None, **seen):
        system = self.open(seen, prefix=prefix, query=query, bootstrap=self.broker.bootstrap)
        self.broker.create_topic(system.topic("catalogue"), 2, {"cleanup.policy": "compact"})
        self.broker.create_topic(system.topic("seen"), 3)
        for kind in ("queries", "answers", "dead-letters"):
            self.broker.create_topic(system.topic(kind), 1)
        system.open()
        self.fill()
        return system

    def test_the_newest_items_are_remembered_and_an_eighth_more(self):
        self.open_with_broker("newest", max_per_user=100)
        for i in range(0, 600, 7):
            self.see(b"7", self.keys[i:i + 7])
        got = self.keys_of(b"7")
        newest = self.keys[502:602]
        self.assertFalse(got & set(newest))
        self.assertGreaterEqual(len(got), N_ITEMS - 112)
        for _ in range(300):
            self.see(b"7", self.keys[601:602])  # again and again: it pushes nothing out
        self.assertFalse(self.keys_of(b"7") & set(newest))

    def test_old_items_are_no_longer_remembered(self):
        self.open_with_broker("old", ttl_s=3600)
        now_ms = int(time.time() * 1000)
        self.see(b"7", self.keys[:10], now_ms - 3600_000 - 1000)
        self.see(b"7", self.keys[10:20], now_ms - 1800_000)
        self.see(b"7", self.keys[20:30], now_ms + 86400_000)  # a clock that is ahead
        soon_ms = int(2500 * SLOWNESS)
        self.see(b"7", self.keys[30:40], now_ms - 3600_000 + soon_ms)
        if time.time() * 1000 < now_ms + soon_ms / 2:
            self.assertEqual(set(self.keys) - self.keys_of(b"7"), set(self.keys[10:40]))
        eventually(lambda: set(self.keys) - self.keys_of(b"7") == set(self.keys[10:30]), "items to expire")

    def test_bad_records_are_dead_letters_and_good_ones_beside_them_count(self):
        system = self.open_with_broker("bad")
        bad = [(b"7", b'{"items": []}'), (b"7", b'{"items": [""]}'), (b"7", b'{"itms": ["a"]}'), (b"7", b"{"), (b"7", b""),
               (None, b'{"items": ["a"]}'), (b"", b'{"items": ["a"]}'), (b"u" * 257, b'{"items": ["a"]}'), (None, None),
               (b"7", b'{"items": ["a"], "time_unix_ms": -1}'), (b"7", b'{"items": ["%s"]}' % (b"k" * 257)),
               (b"7", wire.dumps({"items": ["a"] * 10001}))]
        for user, value in bad:
            self.see(b"7", self.pick_items(3))
            self.write(user, value, partition=0)
        self.ask_all_users()
        letters = eventually(lambda: (found := self.seen_letters()) and len(found) == len(bad) and found, "dead letters")
        self.assertEqual({(record.key, record.value) for record in letters},
                         {(user, value) for user, value in bad})
        self.assertEqual(system.daemon.status()["counters"]["dead_letters"], len(bad))
        unreadable = sum(value == b"{" for _, value in bad)
        metrics = system.daemon.get("/metrics")[1]
        self.assertRegex(metrics, rf'sluice_dead_letters_total{{reason="unreadable"}} {unreadable}\n')

    def seen_letters(self):
        letters = self.system.wait_dead_letters(set())
        return [record for (topic, _, _), record in letters.items() if topic == self.system.topic("seen")]

    def test_wrong_queries_are_errors(self):
        self.open_with_broker("wrong")
        self.assert_error(self.query(b"u" * 257), "BAD_QUERY", "exclude_seen_by: a user has at most 256 bytes")
        position = pb.Position(partition=0, next=1)
        self.assert_error(self.query(b"", at_least_seen=[position]), "BAD_QUERY", "no exclude_seen_by")
        self.assert_error(self.query(b"7", at_least_seen=[pb.Position(partition=-1)]), "BAD_QUERY", "negative")
        far = pb.Position(partition=0, next=10 ** 9)
        self.assert_error(self.query(b"7", at_least_seen=[far], no_wait=True), "NOT_SEEN", "and it is at 0")
        none = pb.Position(partition=99, next=1)
        self.assert_error(self.query(b"7", at_least_seen=[none], no_wait=True), "NOT_SEEN", "no such partition")
        deadline = int(time.time() * 1000 + 1000 * SLOWNESS)
        self.assert_error(self.query(b"7", at_least_seen=[far], deadline_unix_ms=deadline), "DEADLINE_PASSED", "seen topic")
        self.assert_error(self.query(b"7", reply_topic=self.system.topic("seen")), "BAD_QUERY", "reply_topic")

    def test_impressions_that_never_come_are_an_error_in_time_and_hold_up_nobody(self):
        limit_s = 2 * SLOWNESS
        self.open_with_broker("never", {"at_least_timeout_ms": int(limit_s * 1000)})
        self.see(b"7", self.keys[:500])
        self.ask([self.query(b"7", at_least_seen=self.positions())])
        (partition, end), *_ = self.ends.items()
        never = [pb.Position(partition=partition, next=end + 1)]
        waiting = self.query(b"7", at_least_seen=never)
        beside = [self.query(b"7"), self.query(b"7", at_least_seen=self.positions()), self.query(b""),
                  self.system.queries.draw("dot", at_least=self.system.positions())]
        replies, started = self.system.client.replies, time.monotonic()
        for query in (waiting, *beside):
            # One key puts all queries in one partition, where the others are behind the one that waits.
            self.system.send(query, key=b"one partition")
        self.check(beside)
        answer = self.system.client.wait([waiting.id], 15)[waiting.id]
        self.assertLess(max(replies[query.id][0].arrived for query in beside), replies[waiting.id][0].arrived)
        self.system.oracle.check_error(waiting, answer, "NOT_SEEN")
        self.assertRegex(answer.error.message, "within query.at_least_timeout_ms: .* wants partition "
                         f"{partition} at offset {end + 1}, and it is at {end}$")
        self.assertGreater(replies[waiting.id][0].arrived - started, 0.9 * limit_s)
        self.see(b"7", self.keys[500:510])  # it comes after all, and the same wait has an end
        self.positions()
        self.ask([self.query(b"7", at_least_seen=never)])
        self.finish()

    def test_no_wait_is_for_the_catalogue_too(self):
        self.open_with_broker("no-wait")
        query = self.system.queries.draw("dot", at_least=[pb.Position(partition=0, next=10 ** 9)], no_wait=True)
        self.assert_error(query, "NOT_SEEN", "no_wait")

    def test_without_a_seen_topic_such_a_query_is_an_error(self):
        self.open_with_broker("unseen", topic="")
        self.assert_error(self.query(b"7"), "BAD_QUERY", "configure seen.topic")
        self.assertIsNone(self.system.daemon.status()["seen"])
        self.system.ask([self.system.queries.draw("dot", at_least=self.system.positions())])

    def test_sluicectl_asks_for_what_a_user_has_not_seen(self):
        system = self.open_with_broker("ctl")
        self.see(b"7", self.keys[:900])
        self.ask([self.query(b"7", at_least_seen=self.positions())])
        query = system.queries.draw("dot", "exact", k=N_ITEMS)
        empty = self.ctl_query(query, "")
        self.assertNotEqual(empty.returncode, 0)
        self.assertIn("--exclude-seen-by is empty", empty.stderr)
        done = self.ctl_query(query, "7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({hit["key"].encode() for hit in json.loads(done.stdout)["hits"]}, set(self.keys[900:]))

    def ctl_query(self, query, user):
        return subprocess.run([build_dir() / "sluicectl", "--config", self.system.daemon.config_path, "query", "--json",
                               wire.dumps(wire.query_json(query)), "--exclude-seen-by", user, "--format", "json"],
                              capture_output=True, text=True, timeout=60 * SLOWNESS)

    def test_after_stops_and_kills_it_goes_on_exactly(self):
        system = self.open_with_broker("seen")
        self.see_random()
        self.ask_all_users(2)
        for end in (system.daemon.kill, system.daemon.stop, system.daemon.kill):
            self.see_random(100)  # the daemon is amid these when it ends
            if end == system.daemon.kill:
                self.system.producer.flush(60 * SLOWNESS)
            self.finish()
            end()
            self.see_random(20)  # it is away
            self.positions()
            system.daemon.start()
            # Before it is ready. It must read to where the topic ended at its start, and what the query names.
            queries = [self.query(user, at_least_seen=self.positions() * n) for user in USERS for n in (0, 1)]
            self.ask(queries)
            system.daemon.wait_ready()
            self.see_random(20)
            self.ask_all_users(2)
        self.finish()
        system.daemon.stop()

    def test_queries_wait_while_records_are_applied_again(self):
        system = self.open_with_broker("again")
        self.broker.delete_topic(system.topic("dead-letters"))
        self.write(b"7", b"{")  # its dead letter stays open, and holds the stored position back
        self.see(b"7", self.keys[:300])
        self.forget(b"7")  # applied again, this forgets what follows
        self.see(b"7", self.keys[:500])
        self.ask([self.query(b"7", at_least_seen=self.positions())])
        self.broker.stop()
        eventually(lambda: system.daemon.status()["seen"]["problem"], "the broker to be missed")
        self.assertEqual(system.daemon.log().count("event=seen_caught_up"), 1)
        self.assertTrue(system.daemon.status()["seen"]["caught_up"])  # what was read is still there
        self.broker.start()
        eventually(lambda: system.daemon.log().count("event=seen_caught_up") > 1, "the records to be applied again")
        eventually(lambda: not system.daemon.status()["seen"]["problem"], "the end of the problem")
        self.ask([self.query(b"7", at_least_seen=self.positions())])
        self.finish()

    def test_another_topic_keeps_what_users_have_seen(self):
        system = self.open_with_broker("other")
        self.see_random()
        self.ask_all_users(1)
        self.finish()
        system.daemon.stop()
        self.broker.delete_topic(system.topic("seen"))
        self.broker.create_topic(system.topic("seen"), 3)
        self.ends = {}
        for _ in range(30):
            self.see_random(1)
            self.positions()  # else the producer may send what a new topic did not take at once after later records
        system.daemon.start().wait_ready()
        self.assertIn("seen_discontinuity", system.daemon.log())
        self.ask_all_users(1)
        self.finish()
        system.daemon.stop()

    def test_a_topic_that_keeps_too_little_is_told(self):
        system = self.open({"ttl_s": 864000}, prefix="short", bootstrap=self.broker.bootstrap)
        topic = system.topic("seen")
        system.daemon.ctl("topics", "create", "--partitions", "1")
        self.assertEqual(self.broker.topic_config(topic)["retention.ms"], "864000000")
        system.open()
        eventually(lambda: system.daemon.status()["seen"]["caught_up"], "the seen topic to be read")
        self.assertNotIn("seen_topic_", system.daemon.log())
        system.daemon.stop()
        self.broker.delete_topic(topic)
        self.broker.create_topic(topic, 1, {"cleanup.policy": "compact,delete", "retention.ms": "863999999"})
        system.daemon.start()
        eventually(lambda: "event=seen_topic_compacted" in system.daemon.log(), "the warning of compaction")
        self.assertRegex(system.daemon.log(), "event=seen_topic_short .*retention_s=863999 ttl_s=864000")
        system.daemon.stop()


if __name__ == "__main__":
    data.main()
