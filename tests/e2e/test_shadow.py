#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison of a generation with the current one, with a real broker. The oracle checks each answer that
clients get, and both answers of each comparison. The measures are computed again from the lists of hits."""

import json
import re
import tempfile
import unittest
from pathlib import Path

from scipy.stats import kendalltau

import data
import models
import real_broker
from generations import digest, part_name
from harness import Case, System, TopicReader, eventually
from wire import answer_from_json, key_json, pb

N_ITEMS = 300
TYPES = {"year": "integer", "country": "keyword"}
USER = b"user"


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {g: Path(folder.name) / f"{g}.safetensors" for g in (1, 2, 3)}
    for g in (1, 2):
        models.random_vectors(data.generator(f"shadow {g}"), paths[g], "bilinear", n=12)
    paths[3].write_bytes(paths[1].read_bytes())  # the model of generation 1 again
    spaces = {part_name(g): models.load(paths[g]) for g in paths}


def mix(z):
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 % 2 ** 64
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb % 2 ** 64
    return z ^ (z >> 31)


def draw(partition, offset):
    """The number from 0 to 1 of a query; those below the share are compared."""
    return (mix((mix((partition + 0x9e3779b97f4a7c15) % 2 ** 64) + offset) % 2 ** 64) >> 11) / 2 ** 53


def measures(current, shadow):
    """Overlap, and Kendall's tau of the common hits or None, from the definitions."""
    a, b = [hit.key for hit in current.hits], [hit.key for hit in shadow.hits]
    common = [key for key in a if key in b]
    overlap = len(common) / max(len(a), len(b))
    if len(common) < 2:
        return overlap, None
    return overlap, kendalltau(range(len(common)), [b.index(key) for key in common]).statistic


class Shadow(Case):
    count = 0

    def setUp(self):
        Shadow.count += 1
        prefix = f"shadow-{self.count}"
        config = {"models": {"topic": f"{prefix}.models", "shadow_topic": f"{prefix}.comparisons"},
                  "seen": {"topic": f"{prefix}.seen"}}
        self.system = System({"books": paths[1]}, spaces, config, broker.bootstrap, prefix, prefix, types=TYPES)
        self.addCleanup(self.system.close)
        self.daemon, self.seen = self.system.daemon, []
        topics = self.daemon.ctl("topics", "create", "--partitions", "2")
        self.assertIn(f"{prefix}.comparisons", topics)
        self.system.open()
        self.addCleanup(lambda: self.daemon.is_running() and self.daemon.stop())

    # ---------------------------------------------------------------------------------------------------- steps

    def put(self, generations, keys=range(N_ITEMS), same=False):
        """Write parts of the generations; `same`: the parts of generation 1 are those of all of them."""
        for i in keys:
            item = self.system.items.item([part_name(g) for g in generations])
            for g in generations:
                if same:
                    item.parts[part_name(g)].CopyFrom(item.parts["books"])
            self.system.put(b"item-%d" % i, item)
        self.system.sync()

    def add(self, generation):
        self.daemon.ctl("model", "add", "books", "--file", str(paths[generation]), "--generation", str(generation))

    def shadow(self, generation, share):
        return self.daemon.ctl("model", "shadow", "books", str(generation), "--share", str(share))

    def row(self, generation):
        rows = self.daemon.status()["models"]["generations"]
        return next((row["shadow"] for row in rows if row["generation"] == generation), None)

    def await_compared(self, generation, n):
        def is_done():
            row = self.row(generation)
            return row["compared"] + sum(row["dropped"].values()) >= n
        eventually(is_done, f"{n} comparisons with generation {generation}")
        return self.row(generation)

    def see(self, keys):
        self.seen += keys
        value = json.dumps({"items": [key_json(key) for key in keys]}).encode()
        self.system.producer.produce(self.system.topic("seen"), value, USER)
        assert self.system.producer.flush(30) == 0
        eventually(lambda: self.daemon.status()["seen"]["items"] >= len(self.seen), "what the user has seen")

    # -------------------------------------------------------------------------------------------------- queries

    def draw(self, **fields):
        query = self.system.queries.draw("books", "exact", k=10, at_least=self.system.positions(), **fields)
        return query

    def judged(self, query, generation):
        """The query as the oracle knows it."""
        asked = pb.Query()
        asked.CopyFrom(query)
        asked.space = part_name(generation)
        if asked.exclude_seen_by:
            asked.exclude.extend(key for key in self.seen if key not in asked.exclude)
            asked.ClearField("exclude_seen_by")
        return asked

    def check_answer(self, query, answer, generation):
        self.assertEqual((answer.generation, answer.space), (generation, "books"))
        self.assertEqual(answer.model, digest(paths[generation])[:16])
        answer.space = part_name(generation)
        self.system.oracle.check(self.judged(query, generation), answer)

    def ask(self, queries):
        """Ask, and check the answers that clients get: those of generation 1, as without any comparison."""
        for query in queries:
            self.system.send(query)
        answers = self.system.client.wait([q.id for q in queries])
        for query in queries:
            self.check_answer(query, answers[query.id], 1)
        return queries

    def draw_all_kinds(self, n):
        keys = [b"item-%d" % i for i in range(N_ITEMS)]
        fields = [{}, {"filter": "year < 2010"}, {"exclude": keys[:100]}, {"exclude_seen_by": USER}]
        return [self.draw(**fields[i % len(fields)]) for i in range(n)]

    def comparisons(self, n):
        """The newest comparisons, by the ids of their queries."""
        found = {}

        def is_there():
            for record in self.reader.read():
                value = json.loads(record.value)
                self.assertEqual(record.key, f"key of {value['id']}".encode())
                found[value["id"]] = value
            return len(found) >= n
        self.reader = getattr(self, "reader", None) or TopicReader(broker.bootstrap, self.system.topic("comparisons"))
        eventually(is_there, f"{n} records of comparisons")
        return found

    # ---------------------------------------------------------------------------------------------------- cases

    def test_another_model_gives_the_measures_of_the_oracles_lists(self):
        self.put([1, 2], range(250))
        self.put([1], range(250, N_ITEMS))
        self.put([2], range(N_ITEMS, N_ITEMS + 20))
        self.add(2)
        self.see([b"item-%d" % i for i in range(50)])
        self.shadow(2, 1)
        queries = {q.id: q for q in self.ask(self.draw_all_kinds(60))}
        row = self.await_compared(2, len(queries))
        records = self.comparisons(row["compared"])
        self.assertEqual((row["compared"], sum(row["dropped"].values())), (len(records), len(queries) - len(records)))
        self.assertGreater(len(records), 40)
        sums = [0, 0, 0]
        for query_id, record in records.items():
            current, shadow = (answer_from_json(json.dumps(record[side])) for side in ("current", "shadow"))
            self.check_answer(queries[query_id], current, 1)
            self.check_answer(queries[query_id], shadow, 2)
            self.assertEqual(current.epoch, shadow.epoch)
            overlap, tau = measures(current, shadow)
            self.assertAlmostEqual(record["overlap"], overlap, 7)
            self.assertAlmostEqual(-9 if record["correlation"] is None else record["correlation"],
                                   -9 if tau is None else tau, 7)
            sums = [sums[0] + overlap, sums[1] + (tau is not None), sums[2] + (tau or 0)]
        self.assertAlmostEqual(row["overlap"], sums[0] / len(records), 5)
        self.assertEqual(row["ranked"], sums[1])
        if sums[1]:
            self.assertAlmostEqual(row["correlation"], sums[2] / sums[1], 5)
        self.assertLess(row["overlap"], 0.5)
        self.check_metrics(row, sums)

    def check_metrics(self, row, sums):
        page = self.daemon.get("/metrics")[1]

        def value(name, more=""):
            return float(re.search(rf'^sluice_model_shadow_{name}{{space="books",generation="2"{more}}} (\S+)$', page,
                                   re.M)[1])
        self.assertEqual(value("share_ratio"), 1)
        self.assertEqual(value("compared_total"), row["compared"])
        self.assertAlmostEqual(value("overlap_total"), sums[0], 4)
        self.assertEqual(value("ranked_total"), sums[1])
        self.assertAlmostEqual(2 * value("agreement_total") - sums[1], sums[2], 4)
        for side in ("current", "shadow"):
            self.assertEqual(value("search_seconds_count", f',searched="{side}"'), row["compared"])
        self.assertEqual(value("dropped_total", ',reason="busy"'), row["dropped"]["busy"])

    def test_the_same_model_agrees_wholly_while_items_change(self):
        self.put([1, 3], same=True)
        self.add(3)
        self.shadow(3, 1)
        for _ in range(5):
            self.put([1, 3], range(0, N_ITEMS, 7), same=True)
            self.ask(self.draw_all_kinds(20))
        row = self.await_compared(3, 100)
        self.assertEqual((row["overlap"], row["correlation"], row["dropped"]["failed"]), (1, 1, 0))
        self.assertGreater(row["compared"], 50)
        self.assertEqual(self.daemon.ctl("model", "list", "boks", code=2), "")
        listed = self.daemon.ctl("model", "list", "books")
        self.assertRegex(listed, r"compared for 100 % of the queries: \d+ so far, overlap 1.0000, correlation 1.0000")

    def test_a_share_is_compared_and_pinned_queries_are_not(self):
        self.put([1, 3], range(50), same=True)
        self.add(3)
        self.shadow(3, 0.25)
        reader, drawn = TopicReader(broker.bootstrap, self.system.topic("queries")), set()
        for i in range(8):  # no more at a time than the daemon keeps
            pinned = [self.draw() for _ in range(10)]
            for query in pinned:
                query.space = "books@1"
                self.system.send(query)
            self.ask([self.draw() for _ in range(50)])
            self.system.client.wait([q.id for q in pinned])
            drawn |= {r.key for r in reader.read() if draw(r.partition, r.offset) < 0.25}
            drawn -= {f"key of {query.id}".encode() for query in pinned}
            self.await_compared(3, len(drawn))
        self.assertGreater(len(drawn), 50)
        records = self.comparisons(len(drawn))
        self.assertEqual({f"key of {query_id}".encode() for query_id in records}, drawn)
        self.assertIn("is compared no more", self.shadow(3, 0))
        self.ask([self.draw() for _ in range(50)])
        row = self.row(3)
        self.assertEqual((row["share"], row["compared"], sum(row["dropped"].values())), (0, len(drawn), 0))

    def test_the_reason_shows_while_nothing_is_compared(self):
        self.put([1, 2], range(50))
        record = {"add": {"path": "/there/is/no/such/file", "shadow": 1,
                          "sha256": digest(paths[2])}}
        self.system.producer.produce(self.system.topic("models"), json.dumps(record).encode(), b"books@2")
        assert self.system.producer.flush(30) == 0
        eventually(lambda: "/there/is/no/such/file" in ((self.row(2) or {}).get("problem") or ""), "the problem")
        self.assertIn("nothing is compared now: it is failed", self.daemon.ctl("model", "list"))
        self.ask([self.draw() for _ in range(5)])
        self.add(2)  # with the right file; the share stays
        self.assertEqual((self.row(2)["share"], self.row(2)["problem"]), (1, None))
        self.ask([self.draw() for _ in range(5)])
        self.assertEqual(self.await_compared(2, 5)["problem"], None)
        self.daemon.ctl("model", "switch", "books", "2")
        self.assertIn("current generation", self.row(2)["problem"])
        self.assertIn("nothing is compared now", self.shadow(2, 0.5))
        self.daemon.ctl("model", "switch", "books", "1")
        self.daemon.stop()
        self.daemon.start().wait_ready()
        self.assertEqual((self.row(2)["share"], self.row(2)["compared"]), (0.5, 0))
        self.daemon.ctl("model", "retire", "books", "2")
        self.assertIsNone(self.row(2))

    def test_what_makes_no_sense_is_refused(self):
        self.put([1, 2], range(10))
        self.add(2)
        for words in (["books", "1", "--share", "0.5"], ["books", "7", "--share", "0.5"], ["books", "2"],
                      ["books", "2", "--share", "1.5"], ["books", "2", "--share", "x"],
                      ["films", "2", "--share", "0.5"]):
            self.daemon.ctl("model", "shadow", *words, code=2)
        self.daemon.ctl("model", "retire", "books", "2")
        self.daemon.ctl("model", "shadow", "books", "2", "--share", "0.5", code=2)
        self.ask([self.draw()])


if __name__ == "__main__":
    data.main()
