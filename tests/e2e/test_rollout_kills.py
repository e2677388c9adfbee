#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three daemons of one log, and a client outside. Generations are added, some of them derived from others, compared,
switched to, rolled back and retired at random while items change and queries are asked, and the daemons are killed and
stopped at random times. Each answer must be that of the generation that it names, for the items at its watermark.

SLUICE_SECONDS sets how long that goes on."""

import os
import sys
import tempfile
import time
import unittest

import data
import generations
import models
import real_broker
from generations import ControlTopic, current, digest, name_of, rows
from harness import Case, Daemon, System, eventually, merged
from victims import Victims
from wire import pb

SECONDS = float(os.environ.get("SLUICE_SECONDS") or 30)
N_ITEMS, N_DAEMONS = 200, 3
MOST_LIVE = 4                # generations at a time
NUMBERS = range(1, 200)      # more than there will be
MODELS = 8                   # files: generation n has the n-th of them, modulo their number
SHAPES = {"bilinear": {"n": 12}, "weighted_dot": {"n": 12}, "mol": {}, "recjpq": {"m": 8, "b": 64, "d": 64}}
PER_TURN = {"queries": 2, "items": 1, "backfill": 20}
TURN_S, EVENT_S, DOWN_S = 0.02, 0.4, 1.5  # a turn; on average between events; at most before a restart


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("kills")
    similarity = data.pick(rng, list(SHAPES))
    print(f"similarity {similarity}", file=sys.stderr)
    files = generations.write_models(rng, folder.name, range(MODELS), similarity, **SHAPES[similarity])
    paths = {number: files[number % MODELS] for number in NUMBERS}
    loaded = {path: models.load(path) for path in files.values()}
    spaces = {name_of(number): loaded[paths[number]] for number in NUMBERS}


class RolloutKills(Case):
    def setUp(self):
        config = {"models": {"topic": "rollout-kills.models"}}
        self.system = System({"books": paths[1]}, spaces, config, broker.bootstrap, "rollout-kills", "rollout-kills")
        self.addCleanup(self.system.close)
        for kind in ("catalogue", "queries", "answers", "dead-letters"):
            broker.create_topic(self.system.topic(kind), 1 if kind == "dead-letters" else N_DAEMONS - 1)
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        self.daemons = [self.system.daemon] + [self.open_daemon(i) for i in range(1, N_DAEMONS)]
        self.addCleanup(self.kill_all)
        self.system.open()
        self.rng = data.generator("events")
        self.control = ControlTopic(self.system, "books", paths)
        self.victims = Victims(self.rng, self.daemons, DOWN_S)
        self.backfill = []  # (generation, key) whose part is still to be written
        self.queries, self.pinnable = [], {1}

    def open_daemon(self, number):
        folder = self.system.folder / f"daemon-{number}"
        folder.mkdir()
        config = merged(self.system.daemon.config, {"store": {"path": str(folder / "store")}})
        return Daemon(config, folder).start()

    def kill_all(self):
        for daemon in self.daemons:
            if daemon.is_running():
                daemon.kill()
            daemon.log()  # before its folder is removed

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            print("\n--- events\n" + "\n".join(self.victims.events), file=sys.stderr)
            for daemon in self.daemons[1:]:
                print(f"\n--- {daemon.folder.name}\n{daemon.kept_log[-6000:]}", file=sys.stderr)
        return result

    # ----------------------------------------------------------------------------------------- items and queries

    def put(self, key, numbers):
        """Write an item with the parts of these generations."""
        roots = {self.control.root(number): None for number in numbers}
        self.system.put(b"item-%d" % key, self.system.items.item([name_of(root) for root in roots]))

    def change_items(self):
        for _ in range(PER_TURN["items"]):
            key = int(self.rng.integers(N_ITEMS))
            if self.rng.random() < 0.1:
                self.system.put_raw(b"item-%d" % key, None)
            else:
                self.put(key, self.rng.permutation(sorted(self.control.live))[:self.rng.integers(1, MOST_LIVE + 1)])
        for number, key in self.backfill[:PER_TURN["backfill"]]:
            self.put(key, [number])
        del self.backfill[:PER_TURN["backfill"]]

    def ask(self):
        for _ in range(PER_TURN["queries"]):
            is_pinned = bool(self.pinnable) and self.rng.random() < 0.2
            number = data.pick(self.rng, sorted(self.pinnable)) if is_pinned else 1
            query = self.system.queries.draw(name_of(number), "exact", k=10)
            query.space = name_of(number) if is_pinned else "books"
            self.queries.append(self.system.send(query))

    # ---------------------------------------------------------------------------------------------------- events

    def add(self):
        if len(self.control.live) == MOST_LIVE:
            return
        number = max(self.control.live | self.control.retired) + 1
        if self.rng.random() < 0.4:
            self.control.add(number, derive=data.pick(self.rng, sorted(self.control.live)))
            self.victims.note(f"{number} is derived from {self.control.derived[number]}")
            return
        keys = self.rng.permutation(N_ITEMS).tolist()
        some = int(self.rng.integers(N_ITEMS))  # of them come before the model
        for key in keys[:some]:
            self.put(key, [number])
        self.control.add(number)
        self.backfill += [(number, key) for key in keys[some:]]
        self.victims.note(f"{number} is added")

    def switch(self):
        self.control.switch(data.pick(self.rng, sorted(self.control.live)))
        self.victims.note(f"{self.control.wanted()} is switched to")

    def compare(self):
        number, share = data.pick(self.rng, sorted(self.control.live)), data.pick(self.rng, [0, 0.5, 1])
        if number > 1:
            self.control.add(number, shadow=share)
            self.victims.note(f"{number} is compared for {share} of the queries")

    def retire(self):
        """Retire a generation that answers nowhere, as sluicectl makes sure for the daemons that it is told of."""
        answering = {current(daemon) for daemon in self.victims.up()} | {self.control.wanted()}
        idle = sorted(self.control.live - answering)
        if not idle or None in answering:
            return
        number = data.pick(self.rng, idle)
        self.pinnable.discard(number)
        self.backfill = [(g, key) for g, key in self.backfill if g != number]
        self.control.retire(number)
        self.victims.note(f"{number} is retired")

    def look(self):
        """A query may name the generations that all daemons have."""
        if self.victims.down:
            return
        ready = [{n for n, row in rows(d).items() if row["phase"] == "ready"} for d in self.daemons]
        self.pinnable |= set.intersection(*ready) & self.control.live

    def happen(self):
        chances = {self.victims.kill: 5, self.victims.stop: 1, self.add: 4, self.switch: 5, self.retire: 3, self.look: 4,
                   self.compare: 1}
        weights = list(chances.values())
        list(chances)[self.rng.choice(len(chances), p=[w / sum(weights) for w in weights])]()

    # --------------------------------------------------------------------------------------------------- judging

    def judge(self):
        """Check each answer by the oracle of its generation. Return the generations that answered."""
        system, answered = self.system, set()
        system.client.wait([q.id for q in self.queries], 60)
        system.follow_catalogue()  # again, as it is known now who uses whose parts
        system.oracle.roots = {name_of(number): name_of(self.control.root(number)) for number in self.control.derived}
        system.sync()
        pairs = [(q, reply.answer) for q in self.queries for reply in system.client.replies[q.id]]
        pairs.sort(key=lambda pair: [(p.partition, p.next) for p in pair[1].watermark])
        for query, answer in pairs:
            if answer.HasField("error"):
                self.check_error(query, answer)
            else:
                self.check_answer(query, answer)
                answered.add(answer.generation)
        return answered

    def check_error(self, query, answer):
        """Only a query that names a generation may be refused: that one was retired meanwhile."""
        self.assertIn(query.space, [name_of(number) for number in self.control.retired], answer.error)
        self.assertEqual(pb.Error.Code.Name(answer.error.code), "UNKNOWN_SPACE")

    def check_answer(self, query, answer):
        self.assertEqual(answer.space, "books")
        self.assertIn(query.space, ("books", name_of(answer.generation)))
        self.assertEqual(answer.model, digest(paths[answer.generation])[:len(answer.model)])
        asked, got = pb.Query(), pb.Answer()
        asked.CopyFrom(query)
        got.CopyFrom(answer)
        asked.space = got.space = name_of(answer.generation)
        self.system.oracle.check(asked, got)

    def settle(self):
        """Start what is down, and wait until every daemon has done what the control topic asks for."""
        self.victims.note("no more events")
        eventually(self.victims.restart, "daemons to end", 60)
        for daemon in self.daemons:
            daemon.wait_ready()
        for daemon in self.daemons:
            eventually(lambda: current(daemon) == self.control.wanted(), f"{self.control.wanted()} to answer")
            for number in self.control.retired:
                due = "kept" if self.control.users(number) else "removed"
                eventually(lambda: rows(daemon)[number]["phase"] == due, f"{number} to be {due}")

    def check_stores(self):
        """The stores are sound, and have no part that no generation uses."""
        gone = {("books" if number == 1 else name_of(number)) for number in self.control.retired
                if not self.control.users(number)}
        for daemon in self.daemons:
            with self.subTest(daemon.folder.name):
                for key in range(0, N_ITEMS, 20):
                    shown = daemon.get(f"/items/item-{key}")
                    self.assertFalse([name for name in gone if f'"{name}"' in shown[1]], shown)
                daemon.stop()
                daemon.ctl("verify", str(daemon.config["store"]["path"]))

    def test_each_answer_is_right_while_models_come_and_go_and_daemons_die(self):
        for key in range(N_ITEMS):
            self.put(key, [1])
        self.system.sync()
        for daemon in self.daemons:
            daemon.wait_ready()
        self.victims.begin()
        began = event_due = time.monotonic()
        while time.monotonic() < began + SECONDS:
            self.ask()
            self.change_items()
            self.victims.restart()
            if time.monotonic() >= event_due:
                self.happen()
                event_due += self.rng.exponential(EVENT_S)
            self.system.client.poll(TURN_S)
        self.settle()
        answered = self.judge()
        print(f" {len(self.queries)} queries, answered by the generations {sorted(answered)}; {len(self.victims.events)} events"
              f", {len(self.control.retired)} retired ", end="", flush=True, file=sys.stderr)
        self.assertGreater(len(answered), 1)
        self.check_stores()


if __name__ == "__main__":
    data.main()
