#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of boosts through Kafka: random ones over many items, attributes that change while boosted queries run, and
boosts that are refused. test_filters.py has them together with filters, and test_shards.py with shards."""

import tempfile
import unittest
from pathlib import Path

import boosts
import data
import filters
import models
import real_broker
import wire
from harness import Case, System
from oracle import check_epochs
from wire import pb

# Enough for the rounds of a search with boosts that few items do not need (engine/boosts/boosted_search.c).
N_MANY = 20000
N_FEW = 300
TYPES = {"popularity": "integer", "price": "number", "stars": "integer", "rare": "number", "published": "time",
         "genre": "keyword", "tags": "keywords", "is_new": "bool"}
DAY_MS = 24 * 3600 * 1000


def setUpModule():
    global paths, spaces, broker
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models with boosts")
    names = ("dot", "bilinear", "mol", "recjpq", "coarse")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in names}
    for name in names[:2]:
        models.random_vectors(rng, paths[name], name)
    models.random_mol(rng, paths["mol"])
    models.random_recjpq(rng, paths["recjpq"], b=64)
    models.random_recjpq(rng, paths["coarse"], m=2, b=3, d=4)  # most items tie
    spaces = {name: models.load(path) for name, path in paths.items()}


class DrawAttributes(filters.Draw):
    """Attributes as a shop has them: few items are popular, few different stars, and few items have `rare`."""

    def value(self, name):
        rng = self.rng
        if name == "popularity":
            return int(rng.pareto(1.2) * 10)
        if name == "price":
            return float(round(rng.lognormal(3, 1), 2))
        if name == "stars":
            return int(rng.integers(1, 6))
        if name == "rare":
            return float(rng.standard_normal())
        if name == "published":
            return self.NOW - int(rng.exponential(100) * DAY_MS) + DAY_MS
        if name == "genre":
            return f"genre {rng.integers(20)}"
        return super().value(name)

    def attributes(self, share=0.9):
        found = super().attributes(share)
        if self.rng.random() < 0.95:
            found.pop("rare", None)
        return found


class DrawBoosts(boosts.Draw):
    def __init__(self, rng, types):
        super().__init__(rng, types)
        self.filters = DrawAttributes(rng, types)


class BoostsCase(Case):
    """Tests that each have topics of their own on a real broker, a daemon, and a catalogue with attributes."""

    def open(self, prefix, names=None, config=None):
        used = {name: spaces[name] for name in names or spaces}
        self.system = System({name: paths[name] for name in used}, used, config, broker.bootstrap, prefix, self.id(),
                             types=TYPES)
        self.addCleanup(self.system.close)
        self.boosts = DrawBoosts(self.system.rng, TYPES)
        self.system.items.draw = DrawAttributes(self.system.rng, TYPES)
        broker.create_topic(self.system.topic("catalogue"), 4, {"cleanup.policy": "compact"})
        for kind in ("queries", "answers", "dead-letters", "seen"):
            broker.create_topic(self.system.topic(kind), 1)
        return self.system.open()

    def fill(self, n):
        self.keys = [b"item-%05d" % i for i in range(n)]
        for key in self.keys:
            self.system.put(key)
        self.system.sync()

    def set(self, key, **attributes):
        """Change some attributes of an item, and make the following queries wait for that."""
        self.system.put(key, self.system.items.set_attributes(pb.Item(), attributes))
        self.system.sync()

    def draw(self, space, method="exact", **fields):
        return self.system.queries.draw(space, method, at_least=self.system.positions(), **fields)

    def answers(self, queries):
        """Ask, check, and return the answers in the order of the queries."""
        self.system.ask(queries, timeout_s=120)
        return [self.system.client.replies[query.id][0].answer for query in queries]

    def finish(self):
        check_epochs(self.system.answers)
        self.system.answers.clear()
        print(f"\n{self.system.oracle.checked} answers checked", flush=True)


class Many(BoostsCase):
    N_QUERIES = 3  # for each method of each space in each round

    def random_query(self, space, method):
        rng, system = self.system.rng, self.system
        query = self.draw(space, method, k=data.pick(rng, [1, 10, 100, 100, 1000]))
        if rng.random() < 0.2:
            text, parameters = self.boosts.filters.filter()
            query.filter = text
            query.parameters.extend(wire.make_value(value) for value in parameters)
        if rng.random() < 0.2:
            query.exclude.extend(data.pick(rng, self.keys) for _ in range(data.pick(rng, [1, 30, 3000])))
        if rng.random() < 0.2:
            query.max_per.CopyFrom(pb.MaxPer(attribute=data.pick(rng, ["genre", "stars", "is_new"]),
                                             n=int(rng.integers(1, 30))))
        if rng.random() < 0.2:
            query.explain.extend(data.pick(rng, self.keys) for _ in range(16))
        if query.k == 1000 and query.max_per.n and space == "mol":
            query.k = 100
        return self.boosts.add(query, data.pick(rng, [1, 3, 8]))

    def change(self, n):
        system, rng = self.system, self.system.rng
        for _ in range(n):
            key, kind = data.pick(rng, self.keys), rng.random()
            if kind < 0.2:
                system.put_raw(key, None)
            elif kind < 0.5:
                system.put(key)
            else:
                gone = {name: None for name in TYPES if rng.random() < 0.2}
                system.put(key, system.items.set_attributes(pb.Item(), {**system.items.draw.attributes(0.4), **gone}))
        system.sync()

    def test_random_boosts_over_many_items(self):
        system = self.open("many")
        self.fill(N_MANY)
        for round_ in range(3):
            queries = [self.random_query(space, method) for space, model in spaces.items()
                       for method in model.methods() for _ in range(self.N_QUERIES)]
            system.ask(queries, timeout_s=300)
            if round_ == 0:
                self.change(N_MANY // 2)
            elif round_ == 1:
                self.finish()
                system.daemon.stop()
                system.daemon.start().wait_ready()
                system.sync()
        self.finish()
        system.daemon.stop()


class Changes(BoostsCase):
    """What a query with boosts finds after each change of the attributes."""

    def test_an_item_that_becomes_popular_becomes_the_first_hit(self):
        system = self.open("changes", ["dot"])
        self.fill(N_FEW)
        query = self.draw("dot", k=10, boosts=[pb.Boost(weight=1, attribute="popularity")])
        self.answers([query])
        for i in range(20):
            key = data.pick(system.rng, self.keys)
            self.set(key, popularity=10 ** 6 + i * 1000)
            # These are answered before, while and after the next changes are applied.
            system.send(self.again(query, f"meanwhile {i}", at_least=False))
            answer, = self.answers([self.again(query, f"change {i}")])
            self.assertEqual(answer.hits[0].key, key)
            self.assertGreater(answer.hits[0].score, 10 ** 6 - 1000)
        for gone in (pb.Value(), pb.Value(integer=-10 ** 7)):
            first = answer.hits[0].key
            item = pb.Item()
            item.attributes["popularity"].CopyFrom(gone)
            system.put(first, item)
            system.sync()
            answer, = self.answers([self.again(query, f"without {first!r}")])
            self.assertNotIn(first, [hit.key for hit in answer.hits])
        system.check([self.again(query, f"meanwhile {i}", at_least=False) for i in range(20)])
        self.finish()
        system.daemon.stop()

    def again(self, query, name, at_least=True):
        """Return the query with another id, which waits for the changes so far."""
        out = pb.Query()
        out.CopyFrom(query)
        out.id = f"{query.id} {name}"
        del out.at_least[:]
        if at_least:
            out.at_least.extend(self.system.positions())
        return out

    def test_items_that_grow_old_fall_behind(self):
        """The same query at later and later times, and of records with such timestamps."""
        system = self.open("ages", ["dot"])
        self.fill(0)
        now = filters.Draw.NOW
        vector = wire.vector([1] + [0] * (spaces["dot"].dx - 1), "F32")
        for i, age_days in enumerate([0, 1, 10]):
            item = pb.Item()
            item.parts["dot"].vector.CopyFrom(wire.vector([i * 0.25] + [0] * (spaces["dot"].dx - 1)))
            item.attributes["published"].integer = now - age_days * DAY_MS
            system.put(b"%d" % age_days, item)
        system.sync()
        query = self.draw("dot", k=3, boosts=[pb.Boost(weight=1, attribute="published", half_life_ms=DAY_MS)])
        query.vector.CopyFrom(vector)
        due = [(0, [(b"0", 1), (b"1", 0.75), (b"10", 0.5 + 2.0 ** -10)]),
               (-20, [(b"10", 1.5), (b"1", 1.25), (b"0", 1)]),
               (2, [(b"10", 0.5 + 2.0 ** -12), (b"1", 0.375), (b"0", 0.25)])]
        for days, hits in due:
            for has_now in (True, False):
                one = self.again(query, f"{days} days {has_now}")
                if has_now:
                    one.now_unix_ms = now + days * DAY_MS
                    system.send(one)
                else:
                    system.send(one, timestamp=now + days * DAY_MS)
                system.check([one])
                answer = system.client.replies[one.id][0].answer
                self.assertEqual(answer.now_unix_ms, now + days * DAY_MS)
                self.assertEqual([(hit.key, hit.score) for hit in answer.hits],
                                 [(key, wire.np.float32(score)) for key, score in hits])
        system.daemon.stop()

    def test_a_restart_gives_the_same_answers(self):
        system = self.open("restarts")
        self.fill(N_FEW)
        system.check_catalogue()
        queries = []
        for space in spaces:
            for method in spaces[space].methods():
                for _ in range(3):
                    query = self.draw(space, method, explain=self.keys[:5])
                    while not query.boosts:
                        self.boosts.add(query)
                    query.now_unix_ms = self.boosts.now()
                    queries.append(query)
        before = [self.lasting(answer) for answer in self.answers(queries)]
        for i, end in enumerate((system.daemon.stop, system.daemon.kill)):
            self.finish()
            end()
            system.daemon.start().wait_ready()
            after = self.answers([self.again(query, f"after {i + 1} restarts") for query in queries])
            for query, one, other in zip(queries, before, map(self.lasting, after)):
                self.assertEqual(one, other, query.id)
        system.daemon.stop()

    @staticmethod
    def lasting(answer):
        """Return the bytes of what a restart does not change."""
        out = pb.Answer()
        out.CopyFrom(answer)
        for field in ("id", "epoch", "times"):
            out.ClearField(field)
        out.counts.ClearField("scored")
        out.counts.ClearField("candidates")
        return out.SerializeToString(deterministic=True)


class Beside(BoostsCase):
    """Boosts beside what the oracle does not know: the same hits as of a query that it knows."""

    def same_hits(self, query, plain):
        """Check that a query has the hits of one that the oracle checks."""
        due, = self.answers([plain])
        self.system.send(query)
        answer = self.system.client.wait([query.id])[query.id]
        self.assertFalse(answer.HasField("error"), answer.error.message)
        self.assertEqual(list(answer.hits), list(due.hits), wire.boosts_json(query))
        self.assertEqual(answer.receipt, due.receipt)

    def pair(self, **fields):
        """Return a query and a copy of it, with boosts and with the same time of ages."""
        query = self.draw("dot", k=int(self.system.rng.integers(1, 50)), **fields)
        while not query.boosts:
            self.boosts.add(query)
        query.now_unix_ms = self.boosts.now()
        plain = pb.Query()
        plain.CopyFrom(query)
        plain.id = f"{query.id} in other words"
        return query, plain

    def test_items_that_a_user_has_seen(self):
        system = self.open("seen", ["dot"], {"seen": {"topic": "seen.seen"}})
        self.fill(N_FEW)
        seen = self.keys[::3]
        reports = []
        system.client.producer.produce("seen.seen", pb.Seen(items=seen).SerializeToString(), b"somebody",
                                       on_delivery=lambda _, m: reports.append(m))
        system.client.flush()
        for _ in range(20):
            query, plain = self.pair()
            query.exclude_seen_by = b"somebody"
            query.at_least_seen.add(partition=reports[0].partition(), next=reports[0].offset() + 1)
            plain.exclude.extend(seen)
            self.same_hits(query, plain)
        system.daemon.stop()

    def test_items_like_another(self):
        system = self.open("like", ["dot"])
        self.fill(N_FEW)
        for i in range(20):
            key, vector = b"like-%d" % i, wire.vector(system.rng.standard_normal(spaces["dot"].dx))
            item = system.items.set_attributes(pb.Item(), system.items.draw.attributes())
            item.parts["dot"].vector.CopyFrom(vector)
            system.put(key, item)
            system.sync()
            query, plain = self.pair()
            query.ClearField("vector")
            query.like = key
            plain.vector.CopyFrom(vector)
            plain.exclude.append(key)
            self.same_hits(query, plain)
        system.daemon.stop()


class Wrong(BoostsCase):
    def test_wrong_boosts_are_errors_and_good_ones_beside_them_are_answered(self):
        system = self.open("wrong", ["dot"])
        self.fill(N_FEW)
        many = [pb.Boost(weight=1, attribute="stars")] * 9
        wrong = [([pb.Boost(weight=1, attribute="popularty")], r"boosts\[0\].*popularty.*nearest is 'popularity'"),
                 ([many[0], pb.Boost(weight=1, attribute="genre")], r"boosts\[1\].*'genre' is of type keyword"),
                 ([pb.Boost(weight=1, attribute="tags")], r"'tags' is of type keywords"),
                 ([pb.Boost(weight=1, attribute="is_new")], r"'is_new' is of type bool.*filter"),
                 ([pb.Boost(weight=1, attribute="published")], r"boosts\[0\]\.half_life_ms is missing: 'published'"),
                 ([pb.Boost(weight=1, attribute="published", half_life_ms=-1)], r"boosts\[0\]\.half_life_ms: -1"),
                 ([pb.Boost(weight=1, attribute="stars", half_life_ms=5)], r"half_life_ms: 'stars' is of type integer"),
                 ([many[0], many[0], pb.Boost(weight=1, filter="stars between and 3")],
                  r"boosts\[2\]\.filter.*at character 15"),
                 ([pb.Boost(weight=1, filter="genr = 'a'")], r"boosts\[0\]\.filter.*nearest is 'genre'"),
                 ([pb.Boost(weight=1, filter="stars = $1")], r"boosts\[0\]\.filter.*\$1 has no value"),
                 ([pb.Boost(weight=1, filter="is_new", parameters=[pb.Value(integer=1)])], r"boosts\[0\].*parameter"),
                 ([pb.Boost(weight=1, attribute="stars", parameters=[pb.Value(integer=1)])],
                  r"boosts\[0\]\.parameters"),
                 ([pb.Boost(weight=1, filter=" \n")], r"boosts\[0\]\.filter.*empty"),
                 ([pb.Boost(weight=1, filter="is_new", half_life_ms=1)], r"boosts\[0\].*half_life_ms"),
                 ([pb.Boost(weight=1, filter="is_new", attribute="stars")],
                  r"boosts\[0\]\.filter: there is an attribute too"),
                 ([pb.Boost(weight=1)], r"boosts\[0\]\.attribute: name one, or give a filter"),
                 ([pb.Boost(weight=2e9, attribute="stars")], r"boosts\[0\]\.weight: 2000000000"),
                 ([pb.Boost(weight=float("nan"), attribute="stars")], r"boosts\[0\]\.weight"),
                 ([pb.Boost(weight=float("inf"), attribute="stars")], r"boosts\[0\]\.weight"),
                 (many, r"boosts.*at most 8|boosts.*8")]
        queries = []
        for query_boosts, _ in wrong:
            queries += [self.draw("dot", boosts=query_boosts), self.draw("dot", boosts=many[:8])]
        for form in ("protobuf", "array"):
            for query in queries:
                # JSON has no such weights.
                if form == "array" and any(abs(b.weight) not in (1, 2e9) for b in query.boosts):
                    continue
                system.send(self.renamed(query, form), form)
            sent = [self.renamed(query, form) for query in queries]
            sent = [query for query in sent if query.id in system.client.sent]
            answers = system.client.wait([query.id for query in sent])
            words = {query.id: words for query, (_, words) in zip(queries[::2], wrong)}
            for query in sent:
                due = words.get(query.id.rsplit(" ", 1)[0])
                with self.subTest(boosts=wire.boosts_json(query), form=form):
                    if due is None:
                        system.oracle.check(query, answers[query.id], system.client.asked_ms[query.id])
                        continue
                    system.oracle.check_error(query, answers[query.id], "BAD_QUERY")
                    self.assertRegex(answers[query.id].error.message, due)
        self.check_times()
        system.daemon.stop()

    @staticmethod
    def renamed(query, name):
        out = pb.Query()
        out.CopyFrom(query)
        out.id = f"{query.id} {name}"
        return out

    def check_times(self):
        """now_unix_ms without boosts, or before 1970, is refused."""
        system = self.system
        queries = [self.draw("dot", now_unix_ms=1),
                   self.draw("dot", now_unix_ms=-1, boosts=[pb.Boost(weight=1, attribute="stars")])]
        for query, words in zip(queries, ["no boosts", "negative"]):
            system.send(query)
            answer = system.client.wait([query.id])[query.id]
            system.oracle.check_error(query, answer, "BAD_QUERY")
            self.assertRegex(answer.error.message, f"now_unix_ms.*{words}")


if __name__ == "__main__":
    data.main()
