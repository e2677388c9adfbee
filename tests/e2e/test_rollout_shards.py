#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of generations in shards, with a real broker: one daemon, three shards and two merges follow one control topic.
A generation that derives from another one is filled, switched to and rolled back under load, and in spite of kills. Each
answer of the merges must be that of the daemon, or that of the oracle for the generation that it names."""

import tempfile
import time
import unittest

import data
import generations
import models
import real_broker
import shards
from generations import ControlTopic, Load, digest, part_name, rows
from harness import Case, System, eventually
from wire import pb

N_ITEMS, N_SHARDS = 600, 3
DERIVED = 2  # from generation 1; generation 3 has parts of its own
GENERATIONS = (1, DERIVED, 3)


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = generations.write_models(data.generator("rollout of shards"), folder.name, GENERATIONS, n=12)
    spaces = {part_name(g): models.load(paths[g]) for g in GENERATIONS}


class RolloutShards(Case):
    count = 0

    def setUp(self):
        RolloutShards.count += 1
        prefix = f"rollout-shards-{self.count}"
        self.system = System({"books": paths[1]}, spaces, {"models": {"topic": f"{prefix}.models"}}, broker.bootstrap,
                             prefix, prefix)
        self.addCleanup(self.system.close)
        for kind, partitions in (("catalogue", 4), ("queries", 2), ("answers", 2), ("merged", 2), ("partials", 4),
                                 ("dead-letters", 1)):
            broker.create_topic(self.system.topic(kind), partitions)
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        self.layout = shards.Layout(self.system, N_SHARDS)
        self.addCleanup(self.layout.close)
        self.topics = [self.system.topic("answers"), self.layout.answer_topic]
        self.system.open([self.layout.answer_topic])
        self.system.oracle.roots = {part_name(DERIVED): "books"}
        self.layout.open()
        self.searching = [self.system.daemon, *self.layout.shards]

    def tearDown(self):
        self.layout.stop()
        if self.system.daemon.is_running():
            self.system.daemon.stop()

    # ---------------------------------------------------------------------------------------------------- steps

    def put(self, numbers, keys):
        for i in keys:
            self.system.put(b"item-%d" % i, self.system.items.item([part_name(g) for g in numbers]))
        self.system.sync()

    def ctl(self, *words):
        """Run sluicectl model with the configuration of a shard: it asks and waits for every shard and the daemon."""
        first, *others = self.layout.shards
        return first.ctl("model", *words, *(word for daemon in (*others, self.system.daemon)
                                            for word in ("--at-least", f"127.0.0.1:{daemon.port}")))

    def draw(self, space, **fields):
        query = self.system.queries.draw("books", "exact", k=10, **fields)
        query.space = space
        return query

    # ---------------------------------------------------------------------------------------------------- checks

    def answers(self, queries):
        """Return [(query, the daemon's answer, the merges')]."""
        shards.wait_both(self.system.client, [q.id for q in queries], self.topics)
        self.system.sync()
        found = [(q, shards.by_topic(self.system.client, q.id)) for q in queries]
        for query, replies in found:
            self.assertEqual([len(replies[topic]) for topic in self.topics], [1, 1], query.id)
        return [(q, *(replies[topic][0] for topic in self.topics)) for q, replies in found]

    def check(self, query, answer):
        """Compare an answer with the oracle of the generation that it names."""
        self.assertFalse(answer.HasField("error"), answer.error)
        self.assertEqual(answer.model, digest(paths[answer.generation])[:len(answer.model)])
        asked, got = pb.Query(), pb.Answer()
        asked.CopyFrom(query)
        got.CopyFrom(answer)
        asked.space = got.space = part_name(answer.generation)
        self.system.oracle.check(asked, got)

    def compare(self, space, generation, n=10):
        """Check that the daemon and the merges give the same right answers."""
        queries = [self.draw(space, at_least=self.system.positions()) for _ in range(n)]
        for query in queries:
            self.system.send(query)
        for query, whole, joined in self.answers(queries):
            self.check(query, whole)
            self.assertEqual(shards.same(joined), shards.same(whole), joined.error.message)
            self.assertEqual((joined.generation, whole.generation), (generation, generation))
            self.assertEqual((joined.parts.answered, joined.parts.of), (N_SHARDS, N_SHARDS))

    def check_load(self, queries):
        """Check each answer: none is an error, as parts of two generations never met. Return the generations."""
        answered = set()
        found = self.answers(queries)
        for query, whole, joined in sorted(found, key=lambda row: sum(p.next for p in row[1].watermark)):
            self.check(query, whole)
        for query, whole, joined in sorted(found, key=lambda row: sum(p.next for p in row[2].watermark)):
            self.check(query, joined)
            answered.add(joined.generation)
        print(f" [{len(queries)} queries] ", end="", flush=True)
        return answered

    # ---------------------------------------------------------------------------------------------------- cases

    def test_a_derived_generation_is_the_same_in_shards_under_load(self):
        self.put([1, 3], range(N_ITEMS))
        with Load(self.system, lambda: self.draw("books"), 0.05) as load:
            self.assertIn("books@2 is ready", self.ctl("add", "books", "--file", str(paths[DERIVED]), "--derive"))
            self.compare("books@2", DERIVED)
            self.put([1], range(100))
            self.ctl("switch", "books", "2")
            self.compare("books", DERIVED)
            self.put([DERIVED], range(50, 150))  # the parts of generation 1
            self.compare("books@1", 1)
            self.ctl("switch", "books", "1")
            self.compare("books", 1)
            self.ctl("add", "books", "--file", str(paths[3]))
            self.ctl("switch", "books", "3")
            self.compare("books", 3)
            self.ctl("switch", "books", "2")
            self.assertIn("Its parts stay", self.ctl("retire", "books", "1"))
            self.ctl("retire", "books", "3")
        self.put([1], range(N_ITEMS, N_ITEMS + 20))
        self.compare("books", DERIVED)
        self.assertEqual(self.check_load(load.queries), set(GENERATIONS))
        for daemon in self.searching:
            self.assertEqual({g: row["phase"] for g, row in rows(daemon).items()}, {1: "kept", 2: "ready", 3: "removed"})

    def test_shards_that_are_killed_while_they_derive_come_to_the_same_state(self):
        self.put([1], range(N_ITEMS))
        control, rng = ControlTopic(self.system, "books", paths), data.generator("kills of shards")
        add = {"path": str(paths[DERIVED]), "sha256": digest(paths[DERIVED]), "derive": 1}
        steps = [("books@2", {"add": add}), ("books", {"switches": [{"to": 2, "at_ms": int(time.time() * 1000)}]}),
                 ("books@1", {"retire": True})]
        for step, victim in zip(steps, self.layout.shards):
            control.write(*step)
            time.sleep(float(rng.uniform(0, 0.2)))
            victim.kill()
            self.put([1], range(0, N_ITEMS, 7))
            victim.start()
        for daemon in self.searching:
            daemon.wait_ready()
            eventually(lambda: {g: row["phase"] for g, row in rows(daemon).items()} == {1: "kept", 2: "ready"},
                       "the end of generation 1")
        self.compare("books", DERIVED, 30)


if __name__ == "__main__":
    data.main()
