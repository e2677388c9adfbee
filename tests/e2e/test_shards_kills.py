#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Four shards, two merges, and a client outside. Items change, models are switched and queries are asked, while the
processes are killed and stopped at random times. Each query must be answered once, from all shards, and as the oracle
says for the generation and the watermark that the answer names.

SLUICE_SECONDS sets how long that goes on."""

import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

import data
import generations
import models
import real_broker
import shards
from generations import ControlTopic, current, digest, name_of, rows
from harness import SLOWNESS, Case, System, eventually
from victims import Victims
from wire import pb

SECONDS = float(os.environ.get("SLUICE_SECONDS") or 15)
N_ITEMS, N_SHARDS = 300, 4
GENERATIONS = (1, 2, 3)
PER_TURN = {"queries": 2, "items": 2}
TURN_S, EVENT_S, DOWN_S = 0.05, 0.6, 1.5  # a turn; on average between events; at most before a restart
AHEAD_MS = 2000                           # of a switch: until then all shards that are up have read it


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models")
    paths = generations.write_models(rng, folder.name, GENERATIONS, n=12)
    paths["codes"] = Path(folder.name) / "codes.safetensors"
    models.random_recjpq(rng, paths["codes"], m=8, b=64, d=64)
    spaces = {name_of(g) if g in GENERATIONS else g: models.load(path) for g, path in paths.items()}


class ShardsKills(Case):
    victims = None

    def setUp(self):
        self.system = System({"books": paths[1], "codes": paths["codes"]}, spaces,
                             {"models": {"topic": "shards-kills.models"}}, broker.bootstrap, "shards-kills",
                             "shards-kills")
        self.addCleanup(self.system.close)
        for kind, partitions in (("catalogue", 8), ("queries", 3), ("answers", 1), ("merged", 2), ("partials", 4),
                                 ("dead-letters", 1)):
            broker.create_topic(self.system.topic(kind), partitions)
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        self.layout = shards.Layout(self.system, N_SHARDS,
                                    merge_config={"merge": {"wait_ms": int(60000 * SLOWNESS)}})
        self.addCleanup(self.layout.close)
        self.system.connect([self.layout.answer_topic])
        self.rng = data.generator("events")
        self.control = ControlTopic(self.system, "books", paths)
        self.victims = Victims(self.rng, self.layout.daemons(), DOWN_S)
        self.queries = []

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if self.victims and len(result.failures) + len(result.errors) > before:
            print("\n--- events\n" + "\n".join(self.victims.events), self.layout.logs(), sep="\n", file=sys.stderr)
        return result

    # ----------------------------------------------------------------------------------------- items and queries

    def put(self, key):
        self.system.put(b"item-%d" % key, self.system.items.item([*map(name_of, GENERATIONS), "codes"]))

    def change_items(self):
        for key in self.rng.integers(N_ITEMS, size=PER_TURN["items"]).tolist():
            if self.rng.random() < 0.1:
                self.system.put_raw(b"item-%d" % key, None)
            else:
                self.put(key)

    def ask(self, **fields):
        query = self.system.queries.draw(data.pick(self.rng, list(spaces)), "exact", k=10, **fields)
        if query.space != "codes" and self.rng.random() < 0.8:
            query.space = "books"
        self.queries.append(self.system.send(query))

    # ---------------------------------------------------------------------------------------------------- events

    def switch(self):
        self.control.switch(data.pick(self.rng, GENERATIONS), AHEAD_MS)
        self.victims.note(f"{self.control.wanted()} is to be switched to")

    def happen(self):
        roll = self.rng.random()
        if roll < 0.6:
            self.victims.kill()
        elif roll < 0.75:
            self.victims.stop()
        else:
            self.switch()

    # --------------------------------------------------------------------------------------------------- judging

    def check(self, query, answer):
        """Compare an answer with the oracle of its generation."""
        self.assertFalse(answer.HasField("error"), f"{query.id} {query.space}: {answer.error}")
        self.assertEqual((answer.parts.answered, answer.parts.of), (N_SHARDS, N_SHARDS))
        asked, got = pb.Query(), pb.Answer()
        asked.CopyFrom(query)
        got.CopyFrom(answer)
        if answer.space == "books":
            self.assertEqual(answer.model, digest(paths[answer.generation])[:len(answer.model)])
            self.assertIn(query.space, ("books", name_of(answer.generation)))
            asked.space = got.space = name_of(answer.generation)
        self.system.oracle.check(asked, got)

    def judge(self):
        """Check each answer, and that there is one to each query. Return the generations that answered queries which name
        none."""
        self.system.client.wait([q.id for q in self.queries], 90)
        for merge in self.layout.merges:
            eventually(lambda: merge.status()["counters"]["open_queries"] == 0, "merges to have no parts")
        self.system.client.poll(1)
        self.system.sync()
        replies = {q.id: self.system.client.replies[q.id] for q in self.queries}
        self.assertEqual({i: len(found) for i, found in replies.items() if len(found) != 1}, {}, "answered twice")
        pairs = [(q, replies[q.id][0].answer) for q in self.queries]
        pairs.sort(key=lambda pair: sum(p.next for p in pair[1].watermark))
        for query, answer in pairs:
            self.check(query, answer)
        return {answer.generation for query, answer in pairs if query.space == "books"}

    def settle(self):
        self.victims.note("no more events")
        eventually(self.victims.restart, "processes to end", 60)
        eventually(self.layout.are_ready, "all to be ready", 60)
        for shard in self.layout.shards:
            eventually(lambda: current(shard) == self.control.wanted(), f"{self.control.wanted()} to answer")

    def begin(self):
        for key in range(N_ITEMS):
            self.put(key)
        for generation in GENERATIONS[1:]:
            self.control.add(generation)
        self.layout.open()
        for shard in self.layout.shards:
            eventually(lambda: {g for g, row in rows(shard).items() if row["phase"] == "ready"} == set(GENERATIONS),
                       "the generations to be filled")

    def test_each_query_is_answered_once_while_models_are_switched_and_processes_die(self):
        self.begin()
        self.victims.begin()
        self.control.switch(2, AHEAD_MS)  # there is one switch at least
        began = event_due = time.monotonic()
        while time.monotonic() < began + SECONDS:
            for _ in range(PER_TURN["queries"]):
                self.ask()
            self.change_items()
            self.victims.restart()
            if time.monotonic() >= event_due:
                self.happen()
                event_due += self.rng.exponential(EVENT_S)
            self.system.client.poll(TURN_S)
        self.settle()
        self.system.sync()
        for _ in range(20):
            self.ask(at_least=self.system.positions())
        answered = self.judge()
        print(f" {len(self.queries)} queries, answered by the generations {sorted(answered)}; "
              f"{len(self.victims.events)} events ", end="", flush=True, file=sys.stderr)
        self.assertGreater(len(answered), 1)
        self.assertIn("killed", "".join(self.victims.events))
        self.layout.stop()
        for shard in self.layout.shards:
            shard.ctl("verify", str(shard.config["store"]["path"]))


if __name__ == "__main__":
    data.main()
