#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of everything the daemon produces, with a real broker.

Reply topics are missing, have no leader or are not allowed. Keys and answers are too large for their topic. Dead
letters cannot be delivered. Every query must still get an answer, its offset must be committed, and no client may hold
up another one.
"""

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

import data
import models
import real_broker
import wire
from harness import QUIET, Case, System, TopicReader, eventually
from wire import pb

sys.path.insert(0, str(data.ROOT / "tests" / "broker"))
import kafka_faults  # noqa: E402

N_ITEMS = 4000
FLOOD = int(os.environ.get("E2E_FLOOD") or 140000)
PROTOBUF = [("content-type", wire.PROTOBUF.encode())]
SETTINGS = {"reply_topics": ["reply.replies", "reply.missing*", "reply.stuck"], "reply_timeout_ms": 4000}


def setUpModule():
    global broker, folder, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"codes": Path(folder.name) / "codes.safetensors"}
    models.random_recjpq(data.generator("reply models"), paths["codes"], m=8, b=256, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class Commits:
    """The offsets that a daemon's group has committed for its query topic."""

    def __init__(self, system):
        self.topic = system.topic("queries")
        self.consumer = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": system.topic("group")})
        self.partitions = sorted(self.consumer.list_topics(self.topic, timeout=60).topics[self.topic].partitions)

    def lag(self):
        places = self.consumer.committed([TopicPartition(self.topic, p) for p in self.partitions], timeout=60)
        ends = [self.consumer.get_watermark_offsets(place, timeout=60)[1] for place in places]
        return sum(end - max(place.offset, 0) for place, end in zip(places, ends))

    def wait_for_all(self, timeout_s=30):
        eventually(lambda: self.lag() == 0, "the offsets of all queries to be committed", timeout_s)

    def close(self):
        self.consumer.close()


def make(name, settings, answer_config=None, has_letters=True):
    system = System(paths, spaces, {"query": settings}, broker.bootstrap, name, name)
    broker.create_topic(system.topic("catalogue"), 2, {"cleanup.policy": "compact"})
    broker.create_topic(system.topic("queries"), 1)
    broker.create_topic(system.topic("answers"), 1, answer_config)
    if has_letters:
        broker.create_topic(system.topic("dead-letters"), 1)
    return system


class ReplyTopics(Case):
    """Tests that share one daemon. Each leaves it running, with all queries answered and their offsets committed."""

    @classmethod
    def setUpClass(cls):
        system = cls.system = make("reply", SETTINGS)
        cls.addClassCleanup(system.close)
        broker.create_topic(system.topic("replies"), 1)
        broker.create_topic("somebody.s.catalogue", 1, {"cleanup.policy": "compact"})
        system.open([system.topic("replies")])
        for i in range(200):
            system.put(b"item-%d" % i)
        system.check_catalogue()
        cls.commits = Commits(system)
        cls.addClassCleanup(cls.commits.close)
        kafka_faults.create_leaderless(broker, {system.topic("stuck"): [kafka_faults.SECOND]})

    @classmethod
    def tearDownClass(cls):
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()

    def tearDown(self):
        self.commits.wait_for_all()
        self.assertTrue(self.system.daemon.is_running())
        self.assertEqual(self.system.daemon.status()["counters"]["undeliverable"], 0)

    def draw(self, count, kind=None, **fields):
        topic = {"reply_topic": self.system.topic(kind)} if kind else {}
        return [self.system.queries.draw("codes", **topic, **fields) for _ in range(count)]

    def send(self, queries):
        for query in queries:
            self.system.send(query)
        self.system.client.flush()
        return queries

    def assert_errors(self, queries, code="INTERNAL", timeout_s=30):
        """Check that each query got one error, in the configured answer topic. Return the messages."""
        answers = self.system.client.wait([query.id for query in queries], timeout_s)
        for query in queries:
            self.system.oracle.check_error(query, answers[query.id], code)
            self.assertEqual([reply.topic for reply in self.system.client.replies[query.id]],
                             [self.system.topic("answers")])
        return {answers[query.id].error.message for query in queries}

    def test_an_admitted_topic_gets_its_answers(self):
        queries = self.draw(5, "replies")
        self.system.ask(queries)
        self.assertEqual({self.system.client.replies[query.id][0].topic for query in queries},
                         {self.system.topic("replies")})

    def test_every_query_to_a_missing_topic_gets_an_error(self):
        # The first queries wait until the daemon knows that the topic is missing. It refuses later ones at once.
        for _ in range(3):
            messages = self.assert_errors(self.send(self.draw(20, "missing")))
        print(f" [{messages}] ", end="", flush=True)

    def test_an_error_in_place_of_an_answer_has_the_trace_headers_of_its_query(self):
        (query,) = self.draw(1, "missing")
        trace = [("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
        value, headers = self.system.queries.encode(query)
        self.system.client.send(query.id, value, [*headers, *trace])
        self.assert_errors([query])
        (reply,) = self.system.client.replies[query.id]
        self.assertEqual([h for h in reply.headers if h[0] != "content-type"], trace)

    def test_a_topic_without_a_leader_holds_up_no_commits(self):
        stuck = self.send(self.draw(3, "stuck"))
        plain = self.send(self.draw(500))
        self.system.check(plain)
        self.assert_errors(stuck)
        self.commits.wait_for_all()

    def test_a_topic_that_nobody_admitted_gets_nothing(self):
        # An answer with this id would decode as an item: Answer.id and Item.parts have the same field number.
        part = pb.Item(parts={"codes": pb.Part(codes=b"12345678")}).SerializeToString().decode()
        crafted = self.draw(1, reply_topic="somebody.s.catalogue")[0]
        crafted.id = part
        wrong = self.draw(1, reply_topic="somebody.s.catalogue", at_least=[pb.Position(partition=-1)])[0]
        for query in (crafted, wrong):
            self.system.send(query, "protobuf")
        answers = self.system.client.wait([crafted.id, wrong.id])
        for query in (crafted, wrong):
            self.system.oracle.check_error(query, answers[query.id], "BAD_QUERY")
        self.assertIn("query.reply_topics", answers[crafted.id].error.message)
        self.assertEqual(TopicReader(broker.bootstrap, "somebody.s.catalogue").read(), [])

    def test_topics_of_the_daemon_itself_are_never_admitted(self):
        for kind in ("queries", "catalogue", "dead-letters"):
            self.assert_errors(self.send(self.draw(1, kind)), "BAD_QUERY")

    def test_z_a_flood_of_queries_to_a_missing_topic(self):
        producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap, "linger.ms": 20})
        before = self.system.daemon.status()["counters"]
        reader = TopicReader(broker.bootstrap, self.system.topic("answers"))
        reader.read()
        started = time.monotonic()
        for i in range(FLOOD):
            query = pb.Query(id=f"flood-{i}", space="codes", reply_topic="reply.missing.for.good")
            while True:
                try:
                    producer.produce(self.system.topic("queries"), query.SerializeToString(), headers=PROTOBUF)
                    break
                except BufferError:
                    producer.poll(0.1)
        self.assertEqual(producer.flush(60), 0)
        sent = time.monotonic()
        self.commits.wait_for_all(90)
        got = {wire.decode_answer(r.value, r.headers).id for r in reader.read()}
        self.assertEqual(len(got & {f"flood-{i}" for i in range(FLOOD)}), FLOOD)
        after = self.system.daemon.status()["counters"]
        self.assertEqual(after["queries"] - before["queries"], FLOOD)
        print(f" [{FLOOD} sent in {sent - started:.1f} s, all answered {time.monotonic() - sent:.1f} s later] ",
              end="", flush=True)


class Sizes(Case):
    """Tests of answers that are too large for their topic."""

    @classmethod
    def setUpClass(cls):
        system = cls.system = make("sizes", {}, {"max.message.bytes": "100000"})
        cls.addClassCleanup(system.close)
        system.open()
        for i in range(N_ITEMS):
            system.put(b"an item with a key of some length %06d" % i)
        system.sync()
        cls.commits = Commits(system)
        cls.addClassCleanup(cls.commits.close)
        system.ask([system.queries.draw("codes", k=5, at_least=system.positions())])

    @classmethod
    def tearDownClass(cls):
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()

    def tearDown(self):
        self.system.ask([self.system.queries.draw("codes", k=5) for _ in range(5)])
        self.commits.wait_for_all()
        self.assertTrue(self.system.daemon.is_running())
        self.assertEqual(self.system.daemon.status()["counters"]["undeliverable"], 0)

    def find(self, query_id):
        """Wait for the one reply with this id, with any key."""
        def look():
            self.system.client.poll(0.05)
            return self.system.client.replies.get(query_id)
        replies = eventually(look, f"a reply with the id {query_id[:20]!r}")
        self.assertEqual(len(replies), 1)
        return replies[0]

    def send(self, query, key):
        value, headers = self.system.queries.encode(query, "protobuf")
        self.system.client.producer.produce(self.system.topic("queries"), value, key, headers=headers)
        self.system.client.flush()

    def test_a_key_that_no_answer_can_have(self):
        for size in (4097, 200_000):
            query = self.system.queries.draw("codes", k=5)
            self.send(query, b"k" * size)
            reply = self.find(query.id)
            self.assertIsNone(reply.key)
            self.system.oracle.check_error(query, reply.answer, "BAD_QUERY")
            self.assertIn("key", reply.answer.error.message)
        longest = self.system.queries.draw("codes", k=5)
        self.send(longest, b"k" * 4096)
        reply = self.find(longest.id)
        self.assertEqual(reply.key, b"k" * 4096)
        self.system.oracle.check(longest, reply.answer)

    def test_an_id_or_a_space_that_no_answer_can_echo(self):
        for fields in ({"id": "i" * 150_000, "space": "codes"}, {"id": "space", "space": "s" * 150_000}):
            before = len(self.system.client.replies.get("", [])) + len(self.system.client.replies.get("space", []))
            self.send(pb.Query(k=5, **fields), b"some key")

            def look():
                self.system.client.poll(0.05)
                found = self.system.client.replies.get("", []) + self.system.client.replies.get("space", [])
                return found[before:]
            (reply,) = eventually(look, "an error that omits the too long field")
            self.assertEqual(reply.key, b"some key")
            self.assertEqual(reply.answer.error.code, pb.Error.BAD_QUERY)

    def test_an_answer_too_large_is_an_error_and_its_neighbours_are_answers(self):
        large = [self.system.queries.draw("codes", "exact", k=N_ITEMS) for _ in range(4)]
        small = [self.system.queries.draw("codes", k=5) for _ in range(40)]
        for i, query in enumerate(small):
            self.system.send(query)
            if i % 10 == 0:
                self.system.send(large[i // 10])
        self.system.check(small)
        answers = self.system.client.wait([query.id for query in large])
        for query in large:
            self.system.oracle.check_error(query, answers[query.id], "INTERNAL")
            self.assertIn("large", answers[query.id].error.message)


class Letters(Case):
    """A test of a dead-letter topic that does not exist."""

    def test_letters_wait_and_hold_up_nobody(self):
        system = self.system = make("letters", {}, has_letters=False)
        self.addCleanup(system.close)
        system.open()
        for i in range(200):
            system.put(b"item-%d" % i)
        system.check_catalogue()
        for _ in range(20):
            system.client.producer.produce(system.topic("queries"), b"\xff\xff no query at all", b"key")
        system.client.flush()
        started = time.monotonic()
        while time.monotonic() < started + 12:
            system.ask([system.queries.draw("codes") for _ in range(20)])
        eventually(lambda: "event=dead_letters_waiting" in system.daemon.log(), "event=dead_letters_waiting", 30)
        metrics = system.daemon.get("/metrics")[1]
        self.assertIn("\nsluice_dead_letters_waiting 20\n", metrics)
        self.assertTrue(system.daemon.is_running())
        broker.create_topic(system.topic("dead-letters"), 1)
        letters = eventually(lambda: len(TopicReader(broker.bootstrap, system.topic("dead-letters")).read()) == 20,
                             "the dead letters", 60)
        self.assertTrue(letters)
        eventually(lambda: "event=dead_letters_resumed" in system.daemon.log(), "event=dead_letters_resumed")
        eventually(lambda: "\nsluice_dead_letters_waiting 0\n" in system.daemon.get("/metrics")[1], "the gauge")
        self.assertEqual(system.daemon.status()["counters"]["undeliverable"], 0)
        commits = Commits(system)
        self.addCleanup(commits.close)
        commits.wait_for_all()
        system.daemon.stop()


if __name__ == "__main__":
    data.main()
