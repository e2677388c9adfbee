#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of filters: random ones, over random attributes that change, by every method, before and after restarts."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np

import boosts
import data
import filters
import models
import real_broker
import wire
from harness import Case, System
from oracle import check_epochs
from wire import pb

N_ITEMS = 2000
N_CHANGED = 400
N_FILTERS = 8  # for each space in each round; every method has each of them


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models with filters")
    names = ("dot", "cosine", "bilinear", "mol", "recjpq")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in names}
    for name in names[:3]:
        models.random_vectors(rng, paths[name], name)
    models.random_mol(rng, paths["mol"])
    models.random_recjpq(rng, paths["recjpq"], b=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class FilterCase(Case):
    """Tests that each have a daemon and a catalogue with attributes."""

    def open(self, **where):
        self.system = System(paths, spaces, name=self.id(), types=filters.TYPES, **where)
        self.boosts = boosts.Draw(self.system.rng)
        self.addCleanup(self.system.close)
        return self.system

    def fill(self):
        self.keys = [b"item-%04d" % i for i in range(N_ITEMS)]
        for key in self.keys:
            self.system.put(key)
        self.system.sync()

    def query(self, space, text, parameters=(), **fields):
        values = [wire.make_value(value) for value in parameters]
        return self.system.queries.draw(space, filter=text, parameters=values, **fields)

    def by_every_method(self, query):
        queries = []
        for method in spaces[query.space].methods():
            queries.append(pb.Query())
            queries[-1].CopyFrom(query)
            queries[-1].id, queries[-1].method = f"{query.id} by {method}", method
        return queries

    def ask_random(self, n=N_FILTERS):
        """Ask n random filters of every space, all at once: the queries of a batch have different filters."""
        system, queries = self.system, []
        for space in spaces:
            for _ in range(n):
                fields = {"k": data.pick(system.rng, [1, 10, 100, N_ITEMS + 1]), "at_least": system.positions(),
                          "exclude": [data.pick(system.rng, self.keys) for _ in range(system.rng.integers(3) * 50)]}
                if system.rng.random() < 0.5:
                    fields["max_per"] = self.draw_max_per()
                if system.rng.random() < 0.3:
                    fields["explain"] = [data.pick(system.rng, self.keys) for _ in range(system.rng.integers(1, 17))]
                if system.rng.random() < 0.5:
                    fields["attributes"] = data.some(system.rng, filters.TYPES)
                query = self.query(space, *system.items.draw.filter(), **fields)
                queries += self.by_every_method(self.boosts.add(query))
        system.ask(queries, timeout_s=120)

    def draw_max_per(self):
        attribute = data.pick(self.system.rng, ["available", "country", "seller", "year"])
        return pb.MaxPer(attribute=attribute, n=int(self.system.rng.integers(1, 4)))

    def change(self):
        """Write random changes of attributes alone, of parts alone and of both, and deletes."""
        system, rng = self.system, self.system.rng
        for _ in range(N_CHANGED):
            key, kind, item = data.pick(rng, self.keys), rng.integers(6), pb.Item()
            if kind == 0:
                system.put_raw(key, None)
            elif kind == 1:
                system.put(key)
            else:
                removed = {name: None for name in filters.TYPES if rng.random() < 0.2}
                system.items.set_attributes(item, {**system.items.draw.attributes(0.4), **removed})
                if kind == 2 or not item.attributes:
                    name = data.pick(rng, list(spaces))
                    item.parts[name].CopyFrom(system.items.part(name))
                system.put(key, item)

    def change_and_ask(self):
        self.change()
        # These are answered while the changes are being applied.
        self.system.ask([self.query(space, *self.system.items.draw.filter()) for space in spaces])
        self.ask_random()

    def finish(self):
        """End the daemon's run: epochs begin anew with the next."""
        check_epochs(self.system.answers)
        self.system.answers.clear()
        print(f"\n{self.system.oracle.checked} answers checked", flush=True)


class Changes(FilterCase):
    def test_random_filters_while_attributes_change(self):
        self.open().open()
        self.fill()
        self.ask_random()
        for _ in range(3):
            self.change_and_ask()
        self.check_counters()
        self.check_attributes()
        self.finish()
        self.system.daemon.stop()

    def check_counters(self):
        """Check the counters of filters: all queries so far had one."""
        counters, answers = self.system.daemon.status()["counters"], self.system.answers
        self.assertEqual(counters["filtered"], len(answers))
        self.assertEqual(counters["filtered_items"], sum(answer.counts.items for answer in answers))
        self.assertEqual(counters["filtered_admitted"], sum(answer.counts.admitted for answer in answers))
        page = self.system.daemon.get("/metrics")[1]
        plans = dict(re.findall(r'^sluice_filter_plans_total\{plan="(\w+)"\} (\d+)$', page, re.M))
        plans = {plan: int(n) for plan, n in plans.items()}
        self.assertEqual(sum(plans.values()), len(answers))
        self.assertTrue(plans["few"] > 0 and plans["masked"] > 0, plans)

    def check_attributes(self):
        """The status shows the attributes of the configuration, and how many items have each."""
        items = self.system.oracle.state(self.system.oracle.end()).items.values()
        shown = {row["name"]: (row["type"], row["items"]) for row in self.system.daemon.status()["attributes"]}
        self.assertEqual(shown, {name: (kind, sum(name in item.attributes for item in items))
                                 for name, kind in filters.TYPES.items()})

    def test_a_wrong_filter_is_an_error_and_a_wrong_attribute_a_dead_letter(self):
        system = self.open().open()
        self.fill()
        wrong = [("year between and 3", [], "at character 14"), ("contry = 'de'", [], "nearest is 'country'"),
                 ("price < 'cheap'", [], "price is a number"), ("year = $1", [], r"\$1 has no value"),
                 ("available", [1], "parameter"), ("country in $1", ["de"], "list"),
                 ("(" * 10000 + "available" + ")" * 2, [], "filter"), ("expires > -1", [], "1970")]
        queries = [self.query("dot", text, parameters) for text, parameters, _ in wrong]
        for names, words in [(["year", "contry"], "attributes.1.: .*nearest is 'country'"),
                             (["year", "year"], "occurs twice"), ([""], "not an attribute"),
                             (["year"] * 65, "65 elements, at most 64")]:
            wrong.append((str(names), [], words))
            queries.append(self.query("dot", "", attributes=names))
        for query in queries:
            system.send(query)
        answers = system.client.wait([query.id for query in queries])
        for query, (text, _, words) in zip(queries, wrong):
            with self.subTest(filter=text[:40]):
                system.oracle.check_error(query, answers[query.id], "BAD_QUERY")
                self.assertRegex(answers[query.id].error.message, words)
        for name, value in [("year", 9.5), ("price", "9"), ("tags", "a"), ("tags", [1]), ("expires", -1),
                            ("available", 1), ("country", ["de"])]:
            system.put(self.keys[0], system.items.set_attributes(pb.Item(), {name: value, "seller": "new"}))
        system.sync()
        self.assertEqual(len(system.oracle.rejected), 7)
        system.wait_dead_letters({(system.topic("catalogue"), *place) for place in system.oracle.rejected})
        self.ask_random(1)

    def test_sluicectl_asks_with_boosts(self):
        system = self.open().open()
        self.fill()
        plain = self.query("dot", "", k=20)
        words = ["query", "--json", wire.dumps(wire.query_json(plain)).decode(), "--boost", "-0.01:price", "--boost-if",
                 "3:country = 'de'", "--boost", "2:expires:6h", "--now", "2026-09-21T14:13:20Z"]
        same = pb.Query(boosts=[pb.Boost(weight=-0.01, attribute="price"), pb.Boost(weight=3, filter="country = 'de'"),
                                pb.Boost(weight=2, attribute="expires", half_life_ms=6 * 3_600_000)],
                        now_unix_ms=filters.Draw.NOW)
        same.MergeFrom(plain)
        answer = system.client.wait([system.send(same, "protobuf").id])[same.id]
        printed = json.loads(system.daemon.ctl(*words, "--format", "json"))
        self.assertEqual([(hit["key"].encode(), np.float32(hit["score"]), np.float32(hit["similarity"]))
                          for hit in printed["hits"]], [(hit.key, hit.score, hit.similarity) for hit in answer.hits])
        self.assertTrue(any(hit.score != hit.similarity for hit in answer.hits))
        self.assertEqual((printed["now_unix_ms"], answer.now_unix_ms), (filters.Draw.NOW,) * 2)
        self.assertRegex(system.daemon.ctl(*words), r"(?m)^  rank  key +score +similarity$")


    def test_sluicectl_shows_attributes(self):
        system = self.open().open()
        self.fill()
        query = self.query("dot", "available", k=20)
        words = ["query", "--json", wire.dumps(wire.query_json(query)).decode(), "--show", "price,tags"]
        query.attributes.extend(["price", "tags"])
        printed = wire.answer_from_json(system.daemon.ctl(*words, "--format", "json"))
        printed.id = query.id
        system.oracle.check(query, printed)
        self.assertTrue(any(hit.attributes for hit in printed.hits))
        self.assertRegex(system.daemon.ctl(*words), r"(?m)^  rank  key +score  attributes$")


class Restarts(FilterCase):
    def test_random_filters_after_a_stop_and_after_kills(self):
        broker = real_broker.open_for(self.addCleanup)
        system = self.open(bootstrap=broker.bootstrap, prefix="filters")
        broker.create_topic(system.topic("catalogue"), 4, {"cleanup.policy": "compact"})
        for kind in ("queries", "answers", "dead-letters"):
            broker.create_topic(system.topic(kind), 1)
        system.open()
        self.fill()
        self.ask_random(2)
        for end in (system.daemon.stop, system.daemon.kill):
            self.change_and_ask()
            self.change()
            self.finish()
            end()
            system.daemon.start().wait_ready()
            system.sync()
            self.ask_random(2)
        self.finish()
        system.daemon.stop()


if __name__ == "__main__":
    data.main()
