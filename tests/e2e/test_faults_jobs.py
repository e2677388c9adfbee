#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the queue between the query reader and the workers, with a real broker.

Searches are slow, and queries are many or large. One space takes tenths of a second per search; another one is fast.
"""

import tempfile
import time
import unittest
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

import data
import models
import real_broker
from harness import QUIET, SLOWNESS, Case, System, eventually
from wire import pb

N_ITEMS = 1500
MAX_POLL_MS = 2000
BATCH = 48


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"slow": Path(folder.name) / "slow.safetensors", "fast": Path(folder.name) / "fast.safetensors"}
    models.random_mol(data.generator("slow"), paths["slow"], pq=8, px=8, d=32, dq=24, dx=20, gating=(64, 64, 256))
    models.random_vectors(data.generator("fast"), paths["fast"], "dot", n=16)
    spaces = {name: models.load(path) for name, path in paths.items()}


def milliseconds(seconds, q):
    return sorted(seconds)[min(len(seconds) - 1, int(q * len(seconds)))] * 1e3


class Jobs(Case):
    @classmethod
    def setUpClass(cls):
        cls.system = System(paths, spaces, {
            "kernels": {"isa": "ref"},
            "query": {"at_least_timeout_ms": 3000, "workers": 1, "batch_size": BATCH,
                      "kafka": {"max.poll.interval.ms": MAX_POLL_MS, "session.timeout.ms": MAX_POLL_MS,
                                "heartbeat.interval.ms": 300}},
        }, broker.bootstrap, "jobs", "jobs")
        cls.addClassCleanup(cls.system.close)
        for kind, partitions in (("catalogue", 4), ("queries", 3), ("answers", 3), ("dead-letters", 1)):
            broker.create_topic(cls.system.topic(kind), partitions)
        cls.system.open()
        for i in range(N_ITEMS):
            cls.system.put(b"item-%d" % i, cls.system.items.item(["slow", "fast"]))
        cls.system.sync()
        first = [cls.system.queries.draw(name, "", at_least=cls.system.positions()) for name in ("slow", "fast")]
        cls.system.ask(first)
        print(f"\na slow search takes {cls.took_us(first[0]) / 1e3:.0f} ms, a fast one {cls.took_us(first[1])} us",
              flush=True)

    @classmethod
    def tearDownClass(cls):
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()

    @classmethod
    def took_us(cls, query):
        return cls.system.client.replies[query.id][0].answer.times.searched_us

    def draw(self, name, **fields):
        return self.system.queries.draw(name, "brute_force" if name == "slow" else "exact", k=10, **fields)

    def answer(self, query):
        return self.system.client.replies[query.id][0].answer

    def code(self, query):
        answer = self.answer(query)
        return pb.Error.Code.Name(answer.error.code) if answer.HasField("error") else "answer"

    def count(self, sent, code):
        """Return how many queries have this answer by now. sent: (query, time) by id"""
        return sum(self.code(q) == code for q, _ in sent.values() if q.id in self.system.client.replies)

    def is_ready(self):
        return self.system.daemon.get("/readyz")[0] == 200

    def uncommitted(self, consumer):
        """Return the number of queries whose offsets the group has not committed."""
        topic = self.system.topic("queries")
        ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), 60)[1] for p in range(3)}
        partitions = [TopicPartition(topic, p) for p in range(3)]
        at = {p.partition: max(p.offset, 0) for p in consumer.committed(partitions, 60)}
        return sum(ends[p] - at[p] for p in ends)

    def consumer(self):
        consumer = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": "jobs.group"})
        self.addCleanup(consumer.close)
        return consumer

    # --------------------------------------------------------------------------------------------------- cases

    def test_slow_searches_keep_the_daemon_in_its_group(self):
        """A full batch takes longer than max.poll.interval.ms, and more queries arrive than the queue can hold."""
        consumer = self.consumer()
        queries = [self.draw("slow") for _ in range(160)]
        for query in queries:
            self.system.send(query, "protobuf")
        self.system.client.flush()
        unready, lags, end = 0, [], time.monotonic() + 90 * SLOWNESS
        while any(q.id not in self.system.client.replies for q in queries) and time.monotonic() < end:
            self.system.client.poll(0.1)
            unready += not self.is_ready()
            lags.append(self.uncommitted(consumer))
        self.assertEqual([q.id for q in queries if q.id not in self.system.client.replies], [])
        eventually(lambda: self.uncommitted(consumer) == 0, "every query's offset to be committed")
        self.system.client.poll(0.2)
        repeated = sum(len(self.system.client.replies[q.id]) - 1 for q in queries)
        print(f" [{repeated} answered again; not ready {unready} times of {len(lags)}] ", end="", flush=True)
        # A busy machine may pause the daemon for longer than the group's session timeout.
        self.assertLess(repeated, len(queries) // 10)
        self.assertLess(unready, 1 + len(lags) // 10)
        self.assertLess(lags[len(lags) // 2], len(queries) - 20, f"few offsets were committed meanwhile: {lags}")
        self.assertNotIn("MAXPOLL", self.system.daemon.log())

    def test_fast_queries_do_not_wait_behind_slow_ones(self):
        in_flight, fast, waits = set(), [], []
        alone = []
        for _ in range(50):
            query = self.draw("fast")
            started = time.monotonic()
            self.system.ask([query], "protobuf")
            alone.append(self.system.client.replies[query.id][0].arrived - started)
        end = time.monotonic() + 6
        while time.monotonic() < end:
            while len(in_flight) < 32:
                in_flight.add(self.system.send(self.draw("slow"), "protobuf").id)
            query = self.system.send(self.draw("fast"), "protobuf")
            started = time.monotonic()
            fast.append(query)
            while query.id not in self.system.client.replies:
                self.assertLess(time.monotonic() - started, 30 * SLOWNESS, "no answer to a fast query")
                self.system.client.poll(0.002)
            waits.append(self.system.client.replies[query.id][0].arrived - started)
            in_flight -= self.system.client.replies.keys()
        self.system.client.wait(in_flight, 60)
        one_ms = self.took_us(query) / 1e3
        print(f" [{len(fast)} fast queries beside 32 slow ones: p50 {milliseconds(waits, .5):.0f} ms, "
              f"p99 {milliseconds(waits, .99):.0f} ms; alone p99 {milliseconds(alone, .99):.0f} ms] ",
              end="", flush=True)
        # A fast query waits for one batch of slow ones at most: tenths of a second. 32 slow searches take seconds.
        self.assertLess(milliseconds(waits, .5), 1000 * SLOWNESS, one_ms)
        self.system.check(fast)

    def test_a_deadline_that_cannot_be_met_is_refused_at_once(self):
        """For some seconds, send about three times what one worker can search, and more if the machine was busy when
        that was measured. Deadlines are at least 0.5 s away."""
        slow_s = sorted(self.took_us(self.ask_one("slow")) for _ in range(5))[2] / 1e6
        sent, pause_s, limit_s = {}, slow_s / 3, max(0.5, 6 * slow_s)
        end = time.monotonic() + 6
        while time.monotonic() < end or (pause_s > slow_s / 30 and self.count(sent, "DEADLINE_PASSED") < 10):
            if time.monotonic() > end:
                end, pause_s = end + 6, pause_s / 2
            deadline = int((time.time() + limit_s) * 1000)
            query = self.system.send(self.draw("slow", deadline_unix_ms=deadline), "protobuf")
            sent[query.id] = query, time.monotonic()
            self.system.client.poll(pause_s)
            time.sleep(max(0.0, pause_s - (time.monotonic() - sent[query.id][1])))
        self.system.client.wait(list(sent), 60)
        waits = {"answer": [], "DEADLINE_PASSED": []}
        for query, started in sent.values():
            waits[self.code(query)].append(self.system.client.replies[query.id][0].arrived - started)
        for kind, seconds in waits.items():
            self.assertGreater(len(seconds), 3, kind)
            print(f" [{kind}: {len(seconds)}, p50 {milliseconds(seconds, .5):.0f} ms, p99 "
                  f"{milliseconds(seconds, .99):.0f} ms; limit {limit_s * 1e3:.0f} ms] ", end="", flush=True)
        self.assertLess(milliseconds(waits["answer"], .5), limit_s * 1e3 * 1.2)
        self.assertLess(milliseconds(waits["DEADLINE_PASSED"], .5), limit_s * 1e3 * 0.8, "refused late")
        refused = [q for q, _ in sent.values() if self.code(q) == "DEADLINE_PASSED"]
        self.assertTrue(any("would take about" in self.answer(q).error.message for q in refused))

    def ask_one(self, name):
        query = self.draw(name)
        self.system.ask([query], "protobuf")
        return query

    def test_memory_of_large_queries_is_given_back(self):
        def rss():
            status = Path(f"/proc/{self.system.daemon.process.pid}/status").read_text()
            return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

        exclude = [b"%06d-" % i + b"x" * 70 for i in range(10000)]  # about 800 KB
        before = rss()
        for _ in range(2):
            large = [self.draw("fast", at_least=[pb.Position(partition=0, next=10 ** 9)], exclude=exclude)
                     for _ in range(64)]
            for query in large:
                self.system.send(query, "protobuf")
            self.system.client.wait([q.id for q in large], 60)
        codes = [self.code(q) for q in large]
        self.assertEqual(set(codes) - {"NOT_SEEN", "UNAVAILABLE"}, set())
        self.assertGreater(codes.count("NOT_SEEN"), 10)
        self.system.ask([self.draw("fast") for _ in range(500)], "protobuf")
        # The allocator returns pages some seconds after they are freed.
        after, end = rss(), time.monotonic() + 30 * SLOWNESS
        print(f" [{before:.0f} MB before, {after:.0f} MB after", end="", flush=True)
        while after > before + 60 and time.monotonic() < end:
            time.sleep(1)
            self.ask_one("fast")
            after = rss()
        print(f", {after:.0f} MB in the end] ", end="", flush=True)
        self.assertLess(after, before + 60)

    def test_many_may_wait_for_at_least(self):
        self.system.sync()
        then = [pb.Position(partition=p.partition, next=p.next + (p.partition == 1)) for p in self.system.positions()]
        queries = [self.draw("fast", at_least=then) for _ in range(1500)]
        for query in queries:
            self.system.send(query, "protobuf")
        self.system.client.flush()
        other = self.ask_one("fast")  # must not wait for the others
        self.assertEqual(self.code(other), "answer")
        self.system.put(b"item-late", self.system.items.item(["slow", "fast"]), partition=1)
        self.system.check(queries)

    def test_an_at_least_that_cannot_be_says_why(self):
        known = self.system.positions()[0]
        ahead = self.draw("fast", at_least=[pb.Position(partition=known.partition, next=known.next + 7)])
        nowhere = self.draw("fast", at_least=[known, pb.Position(partition=99, next=1)])
        for query in (ahead, nowhere):
            self.system.send(query, "protobuf")
        self.system.client.wait([ahead.id, nowhere.id])
        self.assertEqual([self.code(ahead), self.code(nowhere)], ["NOT_SEEN"] * 2)
        self.assertRegex(self.answer(ahead).error.message,
                         f"partition {known.partition} .*{known.next + 7}.* it is at {known.next}")
        self.assertRegex(self.answer(nowhere).error.message,
                         "partition 99 .*the catalogue topic has no such partition: 4")

    def test_two_daemons_share_a_backlog(self):
        """No query is lost when a second daemon takes over partitions in the middle of a backlog."""
        second = System(paths, spaces, {"kernels": {"isa": "ref"}, "query": {
            "group": "jobs.group", "topic": "jobs.queries", "answer_topic": "jobs.answers", "workers": 1,
            "kafka": {"max.poll.interval.ms": MAX_POLL_MS, "session.timeout.ms": MAX_POLL_MS,
                      "heartbeat.interval.ms": 300}},
            "catalogue": {"topic": "jobs.catalogue"}}, broker.bootstrap, "jobs2", "jobs2")
        self.addCleanup(second.close)
        broker.create_topic(second.topic("dead-letters"), 1)
        queries = [self.draw("slow") for _ in range(100)]
        for query in queries:
            self.system.send(query, "protobuf")
        self.system.client.flush()
        second.daemon.start()
        self.system.client.wait([q.id for q in queries], 90)
        second.daemon.wait_ready()
        more = [self.draw("fast") for _ in range(300)]
        for query in more:
            self.system.send(query, "protobuf")
        self.system.client.wait([q.id for q in more], 30)
        second.daemon.stop()
        last = [self.draw("fast") for _ in range(300)]
        for query in last:
            self.system.send(query, "protobuf")
        self.system.check(queries + more + last, allowed_errors=("UNAVAILABLE",))
        repeated = sum(len(self.system.client.replies[q.id]) - 1 for q in queries + more + last)
        print(f" [{repeated} of {len(queries + more + last)} answered again] ", end="", flush=True)
        consumer = self.consumer()
        eventually(lambda: self.uncommitted(consumer) == 0, "every query's offset to be committed")


class TopicGone(Case):
    def test_a_query_topic_that_goes_and_comes_back(self):
        system = self.system = System({"fast": paths["fast"]}, {"fast": spaces["fast"]}, {
            "query": {"kafka": {"topic.metadata.refresh.interval.ms": 1000}}}, broker.bootstrap, "gone", "gone")
        self.addCleanup(system.close)
        for kind, partitions in (("catalogue", 1), ("queries", 2), ("answers", 1), ("dead-letters", 1)):
            broker.create_topic(system.topic(kind), partitions)
        system.open()
        system.put(b"a")
        system.sync()
        system.ask([system.queries.draw("fast", "exact", at_least=system.positions()) for _ in range(20)])
        broker.delete_topic(system.topic("queries"))
        eventually(lambda: system.daemon.get("/readyz")[0] == 503, "/readyz to say that the query topic is missing")
        time.sleep(1)
        code, body = system.daemon.get("/readyz")
        self.assertEqual(code, 503)
        self.assertIn("waiting for the query topic", body)
        broker.create_topic(system.topic("queries"), 2)
        system.daemon.wait_ready()
        # The new topic grows past the old topic's committed offset. The daemon must not skip any of its queries.
        system.client.close()
        system.connect()
        system.sync()
        system.ask([system.queries.draw("fast", "exact") for _ in range(100)])
        system.daemon.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
