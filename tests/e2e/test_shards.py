#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of shards and merges with a real Kafka broker: the same answers as one daemon gives, and none lost or twice
when processes die."""

import collections
import json
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import confluent_kafka
import numpy as np

import boosts
import data
import models
import real_broker
import shards
import wire
from clocks import SteppedClock
from harness import PATIENT, SLOWNESS, Case, System, TopicReader, build_dir, eventually, to_yaml
from wire import pb

N_ITEMS = 2000
N_SHARDS = 4
TYPES = {"price": "integer", "rating": "number", "made": "time"}
SIMILARITIES = ("dot", "weighted_dot", "matrix", "mol", "recjpq")


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models of shards")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in SIMILARITIES}
    models.random_vectors(rng, paths["dot"], "dot")
    models.random_vectors(rng, paths["weighted_dot"], "weighted_dot")
    models.random_vectors(rng, paths["matrix"], "bilinear", n=40)
    models.random_mol(rng, paths["mol"])
    models.random_recjpq(rng, paths["recjpq"], m=8, b=64, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


def exact_methods(model):
    return [method for method in model.methods() if models.parse_method(method)[0] in model.exact_methods]


class ShardsCase(Case):
    layout = None

    @classmethod
    def make(cls, name, config=None, partitions=8, with_partials=True, merged=None):
        """merged: settings of the topic of merged answers"""
        system = System(paths, spaces, config, broker.bootstrap, name, name, types=TYPES)
        broker.create_topic(system.topic("catalogue"), partitions, {"cleanup.policy": "compact"})
        for kind, count in (("queries", 3), ("answers", 2), ("merged", 2), ("partials", 4), ("dead-letters", 1),
                            ("seen", 2)):
            if kind != "partials" or with_partials:
                broker.create_topic(system.topic(kind), count, merged if kind == "merged" else None)
        return system

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if self.layout and len(result.failures) + len(result.errors) > before:
            print(self.layout.logs(), file=sys.stderr)
        return result

    def fill(self, system, n=N_ITEMS):
        self.keys = [b"item-%05d" % i for i in range(n)]
        for i, key in enumerate(self.keys):
            system.put(key, self.item(system, i))
        system.sync()

    @staticmethod
    def item(system, i):
        item = system.items.item()  # some have no rating, or were never made
        item.attributes["price"].integer = i % 100
        return item

    def change(self, system, n):
        for _ in range(n):
            i = int(system.rng.integers(len(self.keys)))
            if system.rng.random() < 0.3:
                system.put_raw(self.keys[i], None)
            else:
                system.put(self.keys[i], self.item(system, i))


class Same(ShardsCase):
    """Four shards and two merges beside one daemon."""

    @classmethod
    def setUpClass(cls):
        cls.system = cls.make("same", {"seen": {"topic": "same.seen"}})
        cls.addClassCleanup(cls.system.close)
        cls.boosts = boosts.Draw(cls.system.rng, TYPES)
        cls.layout = shards.Layout(cls.system, N_SHARDS)
        cls.addClassCleanup(cls.layout.close)
        cls.system.open([cls.system.topic("merged")])
        cls.layout.open()
        cls.fill(cls, cls.system)
        cls.topics = [cls.system.topic("answers"), cls.system.topic("merged")]
        cls.scores = {}  # {space: scores of hits of earlier answers}

    @classmethod
    def tearDownClass(cls):
        cls.layout.stop()
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()

    def ask_both(self, queries):
        """Send the queries, and return [(query, whole answer, merged answer)]."""
        for query in queries:
            self.system.send(query)
        ids = [q.id for q in queries]
        shards.wait_both(self.system.client, ids, self.topics)
        found = [shards.by_topic(self.system.client, i) for i in ids]
        return [(q, f[self.topics[0]][0], f[self.topics[1]][0]) for q, f in zip(queries, found)]

    def draw(self, name, method, **fields):
        return self.system.queries.draw(name, method, at_least=self.system.positions(), **fields)

    def random_query(self, name, method, at_least=True):
        rng, query = self.system.rng, self.draw(name, method)
        if not at_least:
            query.ClearField("at_least")
        if rng.random() < 0.3:
            query.filter, limit = "price < $1", query.parameters.add()
            limit.integer = int(rng.integers(1, 100))
        if rng.random() < 0.2:
            query.exclude.extend(self.keys[i] for i in rng.integers(0, len(self.keys), 30))
        if rng.random() < 0.4:
            query.max_per.attribute, query.max_per.n = "price", int(rng.integers(1, 4))
        if rng.random() < 0.5:
            self.boosts.add(query)
        if rng.random() < 0.3 and spaces[name].similarity != "bilinear":
            query.mmr.diversity = 1 - rng.random()
            query.mmr.candidates = int(rng.integers(query.k, 1001))
        if self.scores.get(name) and rng.random() < 0.2:
            query.min_score = data.pick(rng, self.scores[name])
        if rng.random() < 0.2:
            query.explain.extend(self.keys[i] for i in rng.integers(0, len(self.keys), 5))
        if rng.random() < 0.3:
            query.attributes.extend(data.some(rng, TYPES))
        if rng.random() < 0.1 and not query.HasField("mmr"):
            query.k = 3000
        return query

    def assert_same(self, query, whole, joined):
        self.assertFalse(whole.HasField("error"), whole.error.message)
        self.scores.setdefault(query.space, []).extend(hit.score for hit in whole.hits[-5:])
        limit = query.max_per.n > 0
        self.assertEqual(shards.same(joined, limit), shards.same(whole, limit),
                         f"{query.space} {query.method} k={query.k}")
        self.assertEqual((joined.parts.answered, joined.parts.of), (N_SHARDS, N_SHARDS))

    def test_exact_answers_are_those_of_one_daemon(self):
        n = 0
        for _ in range(4):
            self.change(self.system, 200)
            self.system.sync()
            queries = [self.random_query(name, method) for name, model in spaces.items()
                       for method in exact_methods(model) for _ in range(6)]
            for query, whole, joined in self.ask_both(queries):
                self.assert_same(query, whole, joined)
                n += 1
        print(f" [{n} answers compared] ", end="", flush=True)

    def test_answers_while_the_catalogue_changes_are_those_of_their_watermark(self):
        queries = []
        for _ in range(30):
            self.change(self.system, 30)
            for name, model in spaces.items():
                query = self.system.queries.draw(name, data.pick(self.system.rng, exact_methods(model)))
                queries.append(self.system.send(self.boosts.add(query)))
        shards.wait_both(self.system.client, [q.id for q in queries], self.topics)
        self.system.sync()
        pairs = [(q, shards.by_topic(self.system.client, q.id)[self.topics[1]][0]) for q in queries]
        for query, answer in sorted(pairs, key=lambda pair: sum(p.next for p in pair[1].watermark)):
            self.system.oracle.check(query, answer, self.system.client.asked_ms[query.id])

    def test_answers_at_the_same_watermark_are_the_same_while_the_catalogue_changes(self):
        n = n_equal = 0
        for _ in range(24):
            self.change(self.system, 5)
            queries = [self.random_query(name, data.pick(self.system.rng, exact_methods(model)), at_least=False)
                       for name, model in spaces.items() for _ in range(3)]
            for query, whole, joined in self.ask_both(queries):
                n += 1
                if list(whole.watermark) == list(joined.watermark):
                    n_equal += 1
                    self.assert_same(query, whole, joined)
        self.system.sync()
        print(f" [{n_equal} of {n} answers at the same watermark] ", end="", flush=True)
        self.assertGreater(n_equal, n // 10, "hardly any answers could be compared")

    def test_no_shard_returns_what_a_user_has_seen(self):
        first = self.draw("dot", "exact", k=40)
        best = [hit.key for hit in self.ask_both([first])[0][1].hits]
        reports = []
        self.system.client.producer.produce(
            "same.seen", pb.Seen(items=best[::2]).SerializeToString(), b"somebody",
            headers=[("content-type", wire.PROTOBUF.encode())], on_delivery=lambda _, m: reports.append(m))
        self.system.client.flush()
        query = pb.Query()
        query.CopyFrom(first)
        query.id, query.exclude_seen_by = f"{first.id}-unseen", b"somebody"
        query.at_least_seen.add(partition=reports[0].partition(), next=reports[0].offset() + 1)
        _, whole, joined = self.ask_both([query])[0]
        self.assertFalse(joined.HasField("error"), joined.error.message)
        self.assertFalse({hit.key for hit in joined.hits} & set(best[::2]))
        self.assertEqual(shards.same(joined), shards.same(whole))

    def test_queries_without_an_id_are_told_apart_by_their_records(self):
        client, keys = self.system.client, [b"no id, first", b"no id, second", b"no id, second"]
        for key in keys:
            query = self.draw("dot", "exact", k=10)
            query.ClearField("id")
            client.send(query.id, *self.system.queries.encode(query), key=key)
        client.flush()

        def answers(topic, key):
            client.poll(0.01)
            return [r.answer for r in client.replies.get("", []) if (r.topic, r.key) == (topic, key)]
        for key in keys:
            for topic in self.topics:
                eventually(lambda: len(answers(topic, key)) >= keys.count(key), f"the answers to {key!r} in {topic}")
            whole, joined = (answers(topic, key) for topic in self.topics)
            self.assertCountEqual(list(map(shards.same, joined)), list(map(shards.same, whole)))
            for answer in joined:
                self.assertFalse(answer.HasField("error"), answer.error.message)
                self.assertEqual((len(answer.hits), answer.parts.answered), (10, N_SHARDS))

    def test_errors_are_those_of_a_shard(self):
        queries = [self.draw("dot", "exact"), self.draw("dot", "exact"), self.draw("dot", "exact")]
        queries[0].k = 0
        queries[1].space = "nothing"
        queries[2].ClearField("vector")
        queries[2].like = self.keys[0]
        queries.append(self.draw("matrix", "exact"))
        queries[3].mmr.diversity = 0.5
        codes = ("BAD_QUERY", "UNKNOWN_SPACE", "BAD_QUERY", "BAD_QUERY")
        for (query, _, joined), code in zip(self.ask_both(queries), codes):
            self.system.oracle.check_error(query, joined, code)
            self.assertIn("shard 0 of 4: ", joined.error.message)
        for query in queries[2:]:
            self.assertIn("sharded", shards.by_topic(self.system.client, query.id)[self.topics[1]][0].error.message)

    def test_a_record_that_is_no_query_is_one_dead_letter(self):
        self.system.client.producer.produce(self.system.topic("queries"), b"\xff\xff", b"key")
        self.ask_both([self.draw("dot", "exact") for _ in range(20)])
        letters = [r for r in self.read_letters() if dict(r.headers)["sluice.topic"] ==
                   self.system.topic("queries").encode()]
        self.assertEqual(len(letters), 2, "one of the whole daemon, and one of all shards")

    def read_letters(self):
        reader, records = TopicReader(broker.bootstrap, self.system.topic("dead-letters")), []

        def both():
            records.extend(reader.read())
            return len(records) >= 2
        eventually(both, "two dead letters")
        return records + reader.read()

    def test_readyz_names_the_shards(self):
        code, text = self.layout.merges[0].get("/readyz")
        self.assertEqual(code, 200, text)
        for i in range(N_SHARDS):
            self.assertRegex(text, rf"shard {i} of {N_SHARDS}: heard \d+\.\d s ago")
        status = self.layout.shards[2].status()
        self.assertEqual(status["shard"], {"index": 2, "of": N_SHARDS})
        self.assertEqual({p["partition"] % N_SHARDS for p in status["catalogue_log"]}, {2})

    def test_a_merge_shows_its_status(self):
        self.ask_both([self.draw("dot", "exact") for _ in range(5)])
        merge = max(self.layout.merges, key=lambda m: m.status()["counters"]["answers"])
        text = merge.ctl("status")
        self.assertRegex(text, r"^sluiced [0-9.]+, merge, ready, up ")
        for i in range(N_SHARDS):
            self.assertRegex(text, rf"\n  shard {i} of {N_SHARDS} +[0-9.]+ m?s ago\n")
        for line in (r"partials +same.partials", r"answers +same.merged", r"wait +[0-9.]+ m?s, .* \(of [0-9,]+\)",
                     r"answers +[1-9]"):
            self.assertRegex(text, rf"\n  {line}")
        for word in ("kernels", "epoch", "items"):
            self.assertNotIn(word, text)
        self.assertIn(f", shard 2 of {N_SHARDS}, ready, up ", self.layout.shards[2].ctl("status"))

    def test_a_merge_has_a_status_page(self):
        merge = self.layout.merges[0]
        page = ElementTree.fromstring(merge.get("/")[1])
        self.assertEqual(page.findtext("head/title"), "Sluice: ready")
        rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
        for i in range(N_SHARDS):
            self.assertIn([str(i), str(N_SHARDS)], [row[:2] for row in rows])
        self.assertIn("first part of a query to its last", [row[0] for row in rows])
        self.assertIsNotNone(page.find("body/main/details"))  # the script needs it
        for path in ("/page.css", "/page.js", "/healthz"):
            self.assertEqual(merge.get(path)[0], 200, path)
        self.assertEqual(merge.get("/items/x")[0], 404)

    def test_sluicectl_topk_asks_the_shards(self):
        drawn = [list(self.draw("dot", "exact").vector.values) for _ in range(40)]
        vectors = [vector for vector in drawn if vector]  # the others ask for items like one
        queries, fields = self.system.folder / "users.npy", {"at_least": [
            {"partition": p.partition, "next": p.next} for p in self.system.positions()]}
        np.save(queries, np.array(vectors, np.float32))
        found = []
        for daemon, name in ((self.system.daemon, "whole"), (self.layout.merges[0], "merged")):
            output = self.system.folder / f"{name}.jsonl"
            daemon.ctl("topk", str(queries), "--space", "dot", "--k", "20", "--fields", json.dumps(fields), "--output",
                       str(output))
            answers = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
            self.assertEqual(all("parts" in answer for answer in answers), name == "merged")
            found.append({answer["id"]: (answer["hits"], answer["receipt"]) for answer in answers})
        self.assertEqual(set(found[0]), {str(i) for i in range(len(vectors))})
        self.assertEqual(found[0], found[1])

    def test_sluicectl_shows_the_layout(self):
        first, last = self.layout.shards[0], self.layout.shards[-1]
        found = shards.show_layout(self.layout.daemons())
        self.assertEqual([d["role"] for d in found["daemons"]], ["shard"] * N_SHARDS + ["merge"] * 2)
        self.assertEqual([(row["of"], row["state"]) for row in found["layouts"]], [(N_SHARDS, "complete")])
        self.assertEqual(sum(d["items"] for d in found["daemons"][:N_SHARDS]), self.system.daemon.status()["items"])
        self.assertEqual([p["partition"] for p in found["daemons"][1]["positions"]], [1, 5])
        self.assertEqual(found["problems"], [])
        found = shards.show_layout([last, *self.layout.merges])  # the others are heard of
        self.assertEqual(found["layouts"][0]["shards"][0]["daemons"], 0)
        found = shards.show_layout([first, last], code=1)
        self.assertIn("as shard 1, 2", found["problems"][0])
        text = first.ctl("layout", "--at", *(f"127.0.0.1:{d.port}" for d in self.layout.daemons()))
        self.assertRegex(text, rf"shard 3 of {N_SHARDS} +127.0.0.1:{last.port} +[0-9,]+ +[0-9,]+  ready")
        self.assertIn("no daemon is ready, or heard of, as shard 1, 2, 3", first.ctl("layout", code=1))


class Load:
    """Queries at a steady pace, and the answers to them."""

    def __init__(self, system, topic, per_second=40, **fields):
        self.system, self.topic, self.pause, self.fields = system, topic, 1 / per_second, fields
        self.queries, self.due = {}, time.monotonic()

    def step(self):
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + self.pause
            query = self.system.queries.draw("dot", "exact", k=10, **self.fields)
            self.queries[query.id] = query
            self.system.send(query)
        self.system.client.poll(0.005)

    def until(self, condition, what, timeout_s=60):
        def step():
            self.step()
            return condition()
        eventually(step, what, timeout_s)

    def more(self, n):
        target = len(self.queries) + n
        self.until(lambda: len(self.queries) >= target, "queries to be sent")

    def answers(self, query_id):
        return shards.by_topic(self.system.client, query_id)[self.topic]

    def wait(self, timeout_s=90):
        self.system.client.flush()

        def complete():
            self.system.client.poll(0.01)
            return all(self.answers(i) for i in self.queries)
        eventually(complete, "an answer to every query", timeout_s)
        return {i: self.answers(i) for i in self.queries}


class Failures(ShardsCase):
    """Processes that die, stop, or are away. Each test has topics of its own."""

    def open(self, name, n, partitions=8, clocks_ahead_s=(), merged=None, **layout):
        self.system = self.make(name, partitions=partitions, merged=merged)
        self.addCleanup(self.system.close)
        self.layout = shards.Layout(self.system, n, **layout)
        self.addCleanup(self.layout.close)
        for shard, ahead_s in zip(self.layout.shards, clocks_ahead_s):
            SteppedClock(shard, 1000 * ahead_s)
        self.system.connect([self.system.topic("merged")])
        self.fill(self.system, 200)
        self.layout.open()
        return Load(self.system, self.layout.answer_topic)

    def parts_of(self, load, query_id):
        """Say what the partials topic has of a query."""
        records = [(r, pb.Partial.FromString(r.value)) for r in
                   TopicReader(broker.bootstrap, self.system.topic("partials")).read()]
        keys = {r.key for r, p in records if pb.Answer.FromString(p.answer).id == query_id}
        found = [f"partition {r.partition}, offset {r.offset}: {pb.Partial.Kind.Name(p.kind)} of shard {p.shard}"
                 for r, p in records if r.key in keys]
        counters = [f"{d.folder.name}: {d.status()['counters']}" for d in self.layout.daemons() if d.is_running()]
        return "\n".join([f"query {query_id} of {len(load.queries)}; the topic has of it:", *found, *counters])

    def check_once(self, load, codes=()):
        """Check that every query has one answer, with hits, or with an error of one of the codes."""
        answers = load.wait()
        merges = [merge for merge in self.layout.merges if merge.is_running()]
        eventually(lambda: all(m.status()["counters"]["open_queries"] == 0 for m in merges), "merges to have no parts")
        load.system.client.poll(1)
        for query_id, found in answers.items():
            self.assertEqual(len(found), 1, f"{len(found)} answers to {query_id}")
            if found[0].HasField("error"):
                self.assertIn(pb.Error.Code.Name(found[0].error.code), codes,
                              f"{found[0].error.message}\n{self.parts_of(load, query_id)}")
            else:
                self.assertEqual(len(found[0].hits), 10)
        return answers

    def test_none_is_lost_or_answered_twice_when_processes_die(self):
        load = self.open("kills", 2, merge_config={"merge": {"wait_ms": int(60000 * SLOWNESS)}})
        first, second = self.layout.merges
        load.more(40)
        for victim in (first, self.layout.shards[1], second):
            victim.kill()
            load.more(20)
            victim.start()
            load.until(self.layout.are_ready, "the killed process to be ready")
            load.more(20)
        for victim in (first, second):
            victim.stop()
            load.more(20)
            victim.start()
            load.until(self.layout.are_ready, "the stopped process to be ready")
        answers = self.check_once(load)
        print(f" [{len(answers)} queries] ", end="", flush=True)

    def test_a_merge_that_was_suspended_answers_nothing_again(self):
        load = self.open("zombie", 2, merge_config={"query": {"kafka": {"session.timeout.ms": 2000}},
                                                    "merge": {"wait_ms": int(60000 * SLOWNESS)}})
        first, second = self.layout.merges
        load.more(20)
        first.process.send_signal(signal.SIGSTOP)
        try:
            load.until(lambda: "assigned=4" in second.log(), "the other merge to take over")
            load.more(20)
        finally:
            first.process.send_signal(signal.SIGCONT)
        load.more(20)
        load.until(lambda: not first.is_running() or (first.get("/readyz") or [0])[0] == 200, "the merge to go on")
        load.more(20)
        self.check_once(load)
        if not first.is_running():  # it was suspended within a transaction, which timed out
            self.assertIn("event=fatal", first.log())

    def test_parts_that_come_again_are_not_answered_again(self):
        load = self.open("again", 2, n_merges=1)
        load.more(30)
        self.check_once(load)
        parts = [r for r in TopicReader(broker.bootstrap, self.system.topic("partials")).read()
                 if pb.Partial.FromString(r.value).kind == pb.Partial.PART]
        self.assertEqual(len(parts), 2 * len(load.queries))

        def send_again():
            for record in parts:
                self.system.client.producer.produce(self.system.topic("partials"), record.value, record.key,
                                                    record.partition)
            self.system.client.flush()
        merge = self.layout.merges[0]
        self.system.client.producer.produce(self.system.topic("partials"), parts[0].value)
        self.system.client.flush()
        eventually(lambda: merge.status()["counters"]["unusable"] == 1, "the part without a key to be dropped")
        send_again()
        eventually(lambda: merge.status()["counters"]["late"] == len(parts), "the parts to be dropped")
        merge.kill()
        merge.start().wait_ready()
        send_again()
        eventually(lambda: merge.status()["counters"]["late"] >= len(parts), "the parts to be dropped after a restart")
        load.more(10)
        self.check_once(load)

    def test_marks_of_a_transaction_that_is_still_open_count(self):
        load = self.open("marks", 2, n_merges=1)
        load.more(5)
        self.check_once(load)
        merge = self.layout.merges[0]
        merge.stop()
        load.more(1)
        query_id = list(load.queries)[-1]
        load.system.client.flush()
        parts = self.wait_parts(TopicReader(broker.bootstrap, self.system.topic("partials")), query_id, 2)
        other = self.open_transactional("another merge")
        other.begin_transaction()
        other.produce(self.system.topic("partials"), pb.Partial(kind=pb.Partial.ANSWERED).SerializeToString(),
                      parts[0].key, parts[0].partition)
        other.flush()
        merge.start()
        eventually(lambda: "which queries are answered" in (merge.get("/readyz") or [0, ""])[1],
                   "the merge to wait for the mark")
        time.sleep(2)  # longer than the reading of all that is committed takes
        self.assertIn("which queries are answered", merge.get("/readyz")[1])
        other.commit_transaction()
        merge.wait_ready()
        eventually(lambda: merge.status()["counters"]["late"] == len(parts), "the parts to be dropped")
        del load.queries[query_id]
        load.more(5)
        self.check_once(load)
        self.assertFalse(load.answers(query_id))

    def test_a_part_behind_a_transaction_that_is_still_open_is_waited_for(self):
        wait_s = 3 * SLOWNESS
        load = self.open("left-open", 2, n_merges=1, merge_config={"merge": {"wait_ms": int(wait_s * 1000)}})
        load.more(5)
        self.check_once(load)
        merge, late = self.layout.merges[0], self.layout.shards[1]
        late.stop()
        other = self.open_transactional("a dead merge")
        other.begin_transaction()
        reader = TopicReader(broker.bootstrap, self.system.topic("partials"))
        load.more(1)
        query_id = list(load.queries)[-1]
        parts = self.wait_parts(reader, query_id, 1)
        other.produce(self.system.topic("partials"), pb.Partial(kind=pb.Partial.ANSWERED).SerializeToString(),
                      b"of another query", parts[0].partition)
        other.flush()
        eventually(lambda: merge.status()["counters"]["open_queries"] == 1, "the first part")
        time.sleep(wait_s + 1)
        self.assertEqual(merge.status()["counters"]["open_queries"], 1)
        late.start().wait_ready()
        eventually(lambda: late.status()["counters"]["queries"] >= 1, "the query in the other shard")
        other.abort_transaction()
        answer = self.check_once(load)[query_id][0]
        self.assertEqual((answer.parts.answered, answer.parts.of), (2, 2))

    def open_transactional(self, name):
        """Return a producer of transactions that stay open for as long as a test takes."""
        producer = confluent_kafka.Producer({**PATIENT, "bootstrap.servers": broker.bootstrap,
                                             "transactional.id": name})
        producer.init_transactions()
        return producer

    def wait_parts(self, reader, query_id, n):
        """Wait until the partials topic has n parts of a query, and return their records."""
        parts = []

        def has_parts():
            for record in reader.read():
                partial = pb.Partial.FromString(record.value)
                if partial.kind == pb.Partial.PART and pb.Answer.FromString(partial.answer).id == query_id:
                    parts.append(record)
            return len(parts) == n
        eventually(has_parts, "the parts of the last query")
        return parts

    def test_a_partials_topic_that_comes_later(self):
        self.system = self.make("later", with_partials=False)
        self.addCleanup(self.system.close)
        self.layout = shards.Layout(self.system, 2, n_merges=1)
        self.addCleanup(self.layout.close)
        self.system.connect([self.system.topic("merged")])
        self.fill(self.system, 200)
        for daemon in self.layout.daemons():
            daemon.start()
        merge = self.layout.merges[0]
        eventually(lambda: "partials topic" in (merge.get("/readyz") or [0, ""])[1], "the merge to say what is missing")
        load = Load(self.system, self.layout.answer_topic)
        load.more(5)
        broker.create_topic(self.system.topic("partials"), 4)
        load.until(self.layout.are_ready, "the layout")
        load.more(5)
        self.check_once(load)

    def test_a_partials_topic_that_is_made_anew_is_read_from_its_beginning(self):
        load = self.open("anew", 2, n_merges=1)
        load.more(100)
        self.check_once(load)
        self.layout.merges[0].stop()
        self.layout.merges[0].start().wait_ready()  # it begins at the positions that the former topic has
        broker.delete_topic(self.system.topic("partials"))
        broker.create_topic(self.system.topic("partials"), 4)
        load.more(20)
        self.check_once(load)
        eventually(lambda: all(end >= position > 0 for position, end in self.positions()), "positions in the new topic")
        self.layout.merges[0].kill()
        load.more(20)
        self.layout.merges[0].start()
        self.check_once(load)

    def positions(self):
        """Return the group's position in each partition of the partials topic, and the partition's end."""
        reader = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"{self.system.prefix}.sharded.merge"})
        try:
            partitions = [confluent_kafka.TopicPartition(self.system.topic("partials"), p) for p in range(4)]
            return [(p.offset, reader.get_watermark_offsets(p, 60)[1]) for p in reader.committed(partitions, 60)]
        finally:
            reader.close()

    def test_answers_without_transactions(self):
        load = self.open("plain", 2, n_merges=1, merge_config={"merge": {"delivery": "at_least_once"}})
        load.more(20)
        merge = self.layout.merges[0]
        merge.stop()
        load.more(20)
        merge.start()
        load.until(self.layout.are_ready, "the merge")
        load.more(20)
        self.check_once(load)

    def test_an_answer_that_no_broker_takes_is_an_error(self):
        load = self.open("large", 2, n_merges=1, merge_config={
            "query": {"answer_kafka": {"message.max.bytes": 2000}, "reply_topics": ["large.*"]}})
        large, lost = (load.system.queries.draw("dot", "exact", k=k) for k in (200, 10))
        lost.reply_topic = "large.no-such-topic"
        for query in (large, lost):
            load.queries[query.id] = query
            load.system.send(query)
        load.more(5)
        found = load.wait()
        self.system.oracle.check_error(large, found[large.id][0], "INTERNAL")
        self.assertIn("no broker took the answer", found[large.id][0].error.message)
        for query_id in set(found) - {large.id, lost.id}:
            self.assertEqual(len(found[query_id][0].hits), 10)
        self.system.oracle.check_error(lost, found[lost.id][0], "BAD_QUERY")  # the shards admit no reply topics

    def send_in_one_batch(self, load, queries):
        """The merge finds all of their parts when it goes on."""
        merge, reader = self.layout.merges[0], TopicReader(broker.bootstrap, self.system.topic("partials"))
        merge.process.send_signal(signal.SIGSTOP)
        for query in queries:
            load.queries[query.id] = query
            self.system.send(query, "protobuf")
        self.system.client.flush()
        parts = collections.Counter()

        def are_there():
            for record in reader.read():
                parts[pb.Answer.FromString(pb.Partial.FromString(record.value).answer).id] += 1
            return all(parts[query.id] >= self.layout.n for query in queries)
        eventually(are_there, "all parts")
        merge.process.send_signal(signal.SIGCONT)

    def test_answers_that_are_too_large_together_are_sent_apart(self):
        load = self.open("together", 2, n_merges=1, merged={"max.message.bytes": "6000"},
                         merge_config={"query": {"answer_kafka": {"compression.type": "none"}}})
        queries = [load.system.queries.draw("dot", "exact", k=50) for _ in range(24)]
        alone = load.system.queries.draw("dot", "exact", k=200, attributes=["*"])
        self.send_in_one_batch(load, [*queries, alone])
        found = {query_id: answers[0] for query_id, answers in load.wait().items()}
        merge = self.layout.merges[0]
        self.assertGreater(merge.status()["counters"]["retries"], 1)  # one is for the answer that is too large alone
        self.assertEqual(merge.log().count("event=reply_not_sent"), 1)
        self.assertNotIn("event=reply_given_up", merge.log())
        self.system.oracle.check_error(alone, found[alone.id], "INTERNAL")
        self.assertRegex(found[alone.id].error.message, "no broker took the answer of .* for the configured topic")
        for query in queries:
            self.assertEqual(len(load.answers(query.id)), 1)
            self.system.oracle.check(query, found[query.id])

    def test_a_reply_topic_that_is_deleted_holds_up_nobody(self):
        config = {"query": {"reply_topics": ["deleted.*"]}}
        load = self.open("deleted", 2, n_merges=1, merge_config=config, shard_config=config)

        def ask(is_awaited=True):
            query = load.system.queries.draw("dot", "exact", k=10)
            query.reply_topic = "deleted.reply"
            if is_awaited:
                load.queries[query.id] = query
            load.system.send(query)
            load.system.client.flush()
            return query
        broker.create_topic("deleted.reply", 1)
        ask(is_awaited=False)
        eventually(lambda: TopicReader(broker.bootstrap, "deleted.reply").read(), "the answer in the query's topic")
        broker.delete_topic("deleted.reply")
        first = ask()
        load.more(20)
        found = load.wait(timeout_s=30)  # a transaction waits for 5 s; then the merge asks for the topic
        self.system.oracle.check_error(first, found[first.id][0], "INTERNAL")
        self.assertIn("the query's reply_topic", found[first.id][0].error.message)
        second = ask()  # the merge looks for the topic again, and takes the configured one
        found = load.wait()
        for query_id in set(found) - {first.id}:
            self.assertEqual(len(found[query_id][0].hits), 10)
        self.assertIn(second.id, found)
        broker.create_topic("deleted.reply", 1)

        def is_used_again():
            ask(is_awaited=False)
            time.sleep(0.5)
            return TopicReader(broker.bootstrap, "deleted.reply").read()
        eventually(is_used_again, "an answer in the topic that was created again")

    def test_brokers_that_are_away_are_not_taken_for_a_missing_reply_topic(self):
        for delivery in ("at_least_once", "exactly_once"):
            with self.subTest(delivery):
                name = f"outage-{delivery.replace('_', '-')}"
                own = f"{name}.answers"  # it is not the configured one
                config = {"query": {"reply_topics": [own]}}
                merge = {"merge": {"delivery": delivery, "wait_ms": int(60000 * SLOWNESS)}}
                self.open(name, 2, n_merges=1, shard_config=config, merge_config={**config, **merge})
                load = Load(self.system, own, per_second=200, reply_topic=own)
                load.more(100)
                broker.process.send_signal(signal.SIGSTOP)
                try:
                    time.sleep(7)  # messages time out after 5 s, and after 10 s a transaction, with its producer
                finally:
                    broker.process.send_signal(signal.SIGCONT)
                load.more(20)
                for found in load.wait().values():
                    self.assertEqual(len(found[0].hits), 10)
                self.assertNotIn("event=reply_not_sent", self.layout.merges[0].log())
                self.layout.stop()

    def test_a_shard_that_is_away(self):
        wait_ms = int(3000 * SLOWNESS)
        load = self.open("away", 3, n_merges=1, merge_config={"merge": {"wait_ms": wait_ms}})
        self.layout.shards[1].stop()
        whole, partial = (load.system.queries.draw("dot", "exact", k=10, allow_partial=allows) for allows in (0, 1))
        soon = load.system.queries.draw("dot", "exact", k=10, allow_partial=True,
                                        deadline_unix_ms=int((time.time() + SLOWNESS) * 1000))
        partial.explain.extend(self.keys[:12])
        for query in (whole, partial, soon):
            load.queries[query.id] = query
            load.system.send(query)
        found = {i: answers[0] for i, answers in load.wait().items()}
        self.system.oracle.check_error(whole, found[whole.id], "PARTIAL")
        self.assertIn("shard 1 has not answered in time (the shards are 0 to 2)", found[whole.id].error.message)
        for query in (partial, soon):
            answer = found[query.id]
            self.assertEqual((answer.parts.answered, answer.parts.of), (2, 3))
            self.assertEqual(len(answer.hits), 10)
            self.assertFalse(answer.receipt.exact)
            self.assertGreater(answer.receipt.bound, 1e38)
            self.assertNotIn(1, {p.partition % 3 for p in answer.watermark})
        verdicts = {e.verdict for e in found[partial.id].explanations}
        self.assertIn(pb.Explanation.UNKNOWN, verdicts)
        self.assertNotIn(pb.Explanation.NO_ITEM, verdicts)
        self.assertGreater(found[partial.id].times.merged_us, wait_ms * 900)
        self.assertLess(found[soon.id].times.merged_us, wait_ms * 900)
        self.assertRegex(self.layout.merges[0].get("/readyz")[1], r"shard 1 of 3: heard")

    def test_clocks_that_differ_by_minutes(self):
        """They matter to queries with a deadline only: a shard that is ahead of it refuses them, and is named."""
        load = self.open("clocks", 3, n_merges=1, clocks_ahead_s=(-300, 0, 300),
                         merge_config={"merge": {"wait_ms": int(60000 * SLOWNESS)}})
        load.more(40)
        soon, partial, late = (
            load.system.queries.draw("dot", "exact", k=10, allow_partial=allows,
                                     deadline_unix_ms=int((time.time() + s) * 1000))
            for s, allows in ((120, False), (120, True), (900, False)))
        for query in (soon, partial, late):
            load.queries[query.id] = query
            load.system.send(query)
        answers = {i: found[0] for i, found in load.wait().items()}
        refused = answers.pop(soon.id)
        load.system.oracle.check_error(soon, refused, "DEADLINE_PASSED")
        self.assertIn("shard 2", refused.error.message)
        for query_id, answer in answers.items():
            self.assertFalse(answer.HasField("error"), answer.error.message)
            self.assertEqual((answer.parts.answered, answer.parts.of), (2 if query_id == partial.id else 3, 3))

    def test_replicas_of_a_shard_take_over(self):
        """Two shards with two replicas each. What the survivor searches again is answered once."""
        load = self.open("replicated", 2, n_merges=1, n_replicas=2,
                         merge_config={"merge": {"wait_ms": int(60000 * SLOWNESS)}})
        victim, other = self.layout.shards[2:]
        load.until(lambda: all(d.log().count("event=query_partitions") for d in self.layout.shards), "all replicas to join")
        load.more(40)
        load.until(self.layout.are_ready, "the end of the rebalances")
        found = shards.show_layout(self.layout.daemons())
        self.assertEqual([(s["daemons"], s["ready"]) for s in found["layouts"][0]["shards"]], [(2, 2), (2, 2)])
        before = len(other.log())
        victim.kill()
        load.more(40)
        load.until(lambda: "assigned=3" in other.log()[before:], "the other replica to take over")
        found = shards.show_layout(self.layout.daemons(), code=1)
        self.assertIn(f"nothing answers at http://127.0.0.1:{victim.port}", "".join(found["problems"]))
        self.assertEqual([s["daemons"] for s in found["layouts"][0]["shards"]], [2, 1])
        victim.start()
        load.until(self.layout.are_ready, "the killed replica to be ready")
        load.more(20)
        answers = self.check_once(load)
        self.assertEqual({(a[0].parts.answered, a[0].parts.of) for a in answers.values()}, {(2, 2)})

    def test_a_new_shard_that_is_killed_before_its_first_query_skips_none(self):
        load = self.open("unused", 2, n_merges=1, shard_config={"query": {"start": "latest"}},
                         merge_config={"merge": {"wait_ms": int(60000 * SLOWNESS)}})
        self.layout.shards[1].kill()
        load.more(20)
        self.layout.shards[1].start()
        answers = self.check_once(load)
        self.assertEqual({(a[0].parts.answered, a[0].parts.of) for a in answers.values()}, {(2, 2)})

    def test_from_two_shards_to_four(self):
        load = self.open("grow", 2, n_merges=1)
        load.more(30)
        newer = shards.Layout(self.system, 4, n_merges=0,
                              shard_config={"query": {"start": "latest"}})
        self.addCleanup(newer.close)
        for shard in newer.shards:
            shard.start()
        load.until(newer.are_ready, "the new shards")
        found = shards.show_layout(self.layout.daemons() + newer.daemons())
        self.assertEqual([(row["of"], row["state"]) for row in found["layouts"]], [(2, "complete"), (4, "complete")])
        self.assertIn("two layouts: shard 0 is of 2", "".join(found["notes"]))
        load.more(30)
        for shard in self.layout.shards:
            shard.stop()
        load.more(30)
        answers = self.check_once(load)
        last = answers[list(answers)[-1]][0]
        self.assertEqual((last.parts.answered, last.parts.of), (4, 4))

    def test_parts_of_different_models_are_never_joined(self):
        other = Path(self.enterContext(tempfile.TemporaryDirectory())) / "other.safetensors"
        models.random_vectors(data.generator("another model"), other, "weighted_dot")
        load = self.open("models", 2, n_merges=1)
        shard = self.layout.shards[1]
        shard.stop()
        shard.config["spaces"]["weighted_dot"]["model"] = str(other)
        shard.config_path.write_text(to_yaml(shard.config) + "\n")
        shard.start().wait_ready()
        query = load.system.queries.draw("weighted_dot", "exact")
        load.queries[query.id] = query
        load.system.send(query)
        answer = load.wait()[query.id][0]
        self.system.oracle.check_error(query, answer, "PARTIAL")
        self.assertIn("different models", answer.error.message)
        load.more(5)  # the other spaces are not affected
        del load.queries[query.id]
        self.check_once(load)

    def test_sluicectl_waits_for_the_records_of_its_shard(self):
        self.open("puts", 2, n_merges=0)
        first, second = ({key: self.puts(shard, key) for key in self.keys[:12]} for shard in self.layout.shards)
        self.assertEqual({key for key, is_own in first.items() if is_own},
                         {key for key, is_own in second.items() if not is_own})
        self.assertEqual(set(first.values()), {True, False})

    def puts(self, shard, key):
        """Change an item. Return whether the shard reads its partition, as sluicectl says."""
        command = [build_dir() / "sluicectl", "--config", shard.config_path, "put", key, '{"attributes": {"price": 1}}']
        done = subprocess.run(command, capture_output=True, text=True, timeout=30 * SLOWNESS)
        if done.returncode:
            self.assertIn("another shard reads them", done.stderr)
        return done.returncode == 0

    def test_layouts_that_cannot_be_are_refused(self):
        self.open("refused", 2, partitions=3, n_merges=0)
        many = self.layout.shard(3, 4)
        self.assertEqual(many.start().wait_exit(), 78)
        self.assertIn("has 3 partitions, fewer than the 4 shards", many.log())
        self.layout.shards[1].stop()
        other = self.layout.shard(1, 3, {"store": {"path": self.layout.shards[1].config["store"]["path"]}})
        self.assertEqual(other.start().wait_exit(), 78)
        self.assertIn("has shard 1 of 2, and the configuration wants shard 1 of 3", other.log())


if __name__ == "__main__":
    data.main()
