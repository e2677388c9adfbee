#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of generations that derive from another one, with a real broker: their items need no new parts, each part goes
to all that use it, and the parts stay as long as one of them does. The oracle knows who uses whose parts."""

import json
import shutil
import time

import data
import test_rollout
from generations import digest, part_name
from harness import eventually
from test_rollout import N_ITEMS


def setUpModule():
    test_rollout.setUpModule()


class Derived(test_rollout.Rollout):
    """Generations 2 and 3 derive from 1."""

    def setUp(self):
        super().setUp()
        self.share_parts()
        self.paths = test_rollout.paths

    def share_parts(self):
        self.system.oracle.roots = {"books@2": "books", "books@3": "books"}

    # ---------------------------------------------------------------------------------------------------- steps

    def derive(self, generation, *more):
        return self.add(generation, "--derive", *more)

    def record_of(self, generation, **more):
        return {"add": {"path": str(self.paths[generation]), "sha256": digest(self.paths[generation]), "derive": 1, **more}}

    def switches(self, *generations):
        now = int(time.time() * 1000)
        return {"switches": [{"to": g, "at_ms": now} for g in generations]}

    def restart(self, kill=False):
        if kill:
            self.daemon.kill()
        else:
            self.daemon.stop()
        self.daemon.start().wait_ready()

    def retire(self, generation):
        return self.daemon.ctl("model", "retire", "books", str(generation))

    def parts_of(self, key):
        """Return the names of the parts that the store has of an item."""
        item = json.loads(self.daemon.get(f"/items/{key}")[1])
        return sorted(item["value"].get("parts", {}))

    # ---------------------------------------------------------------------------------------------------- cases

    def test_a_derived_generation_needs_no_new_parts_and_stays_fresh_on_both_sides(self):
        self.put([1])
        with test_rollout.CheckedLoad(self):
            self.assertIn("books@2 is ready", self.derive(2))
            row = self.rows()[2]
            self.assertEqual((row["items"], row["missing_items"], row["coverage"], row["derives_from"]),
                             (N_ITEMS, 0, 1, 1))
            self.assertEqual(self.ask(2), {2})
            self.put([1], range(40))  # before the switch
            self.assertEqual(self.ask(2) | self.ask(1), {1, 2})
            self.switch(2)
            self.put([1], range(20, 80))  # a plain part after the switch
            self.put([2], range(60, 90))  # under the name of the derived one
            self.assertEqual(self.ask() | self.ask(1), {1, 2})
            self.switch(1)
            self.put([1], range(10))
            self.assertEqual(self.ask() | self.ask(2), {1, 2})
            self.switch(2)
            self.assertIn("Its parts stay", self.retire(1))
        self.ask_for_error(1, "UNKNOWN_SPACE")
        self.put([1], range(100))
        self.system.put_raw(b"item-299", None)
        self.put([2], range(N_ITEMS, N_ITEMS + 20))
        self.assertEqual(self.ask(), {2})
        self.assertEqual(self.parts_of("item-0"), ["books"])
        self.assertEqual((self.rows()[1]["phase"], self.rows()[2]["unusable_parts"]), ("kept", 0))
        self.assertIn("parts of @1", self.daemon.ctl("model", "list"))

    def test_one_that_derives_from_a_derived_one_uses_the_parts_of_the_root(self):
        self.put([1], range(50))
        self.derive(2)
        self.switch(2)
        self.retire(1)
        self.assertIn("books@3 is ready", self.derive(3))
        self.assertEqual(self.rows()[3]["derives_from"], 1)
        self.switch(3)
        self.assertIn("and its parts", self.retire(2))
        self.put([1], range(40, 60))
        self.assertEqual(self.ask(), {3})
        self.assertEqual((self.rows()[1]["phase"], self.rows()[2]["phase"]), ("kept", "removed"))
        self.restart()
        self.assertEqual((self.rows()[1]["phase"], self.rows()[2]["phase"]), ("kept", "removed"))
        self.put([2], range(5))  # it was retired, and its parts are those of the root
        self.assertEqual(self.ask(), {3})

    def test_a_chain_has_the_same_root_whichever_of_its_records_comes_first(self):
        self.put([1])
        self.write_record("books@3", {"add": {**self.record_of(3)["add"], "derive": 2}})
        for _ in range(2):  # a start does not wait for the other record
            self.assertIn("derives from books@2", self.await_phase(3, "failed")["problem"])
            self.assertEqual(self.ask(), {1})
            self.restart()
        self.write_record("books@2", self.record_of(2))
        for _ in range(2):
            self.await_phase(2, "ready")
            row = self.await_phase(3, "ready")
            self.assertEqual((row["derives_from"], row["items"], row["problem"]), (1, N_ITEMS, None))
            self.put([1], range(40))
            self.assertEqual(self.ask(2) | self.ask(3), {2, 3})
            self.restart()

    def test_restarts_in_each_state_change_nothing(self):
        self.put([1], range(100))
        self.derive(2)
        self.restart()
        self.assertEqual(self.ask() | self.ask(2), {1, 2})
        self.switch(2)
        self.restart()
        self.put([1], range(20))
        self.assertEqual(self.ask() | self.ask(1), {1, 2})
        self.switch(1)
        self.restart()
        self.assertEqual(self.ask() | self.ask(2), {1, 2})
        self.switch(2)
        self.retire(1)
        self.restart()
        self.put([1], range(20, 40))
        self.assertEqual((self.ask(), self.rows()[1]["phase"]), ({2}, "kept"))
        self.write_record("books@3", {"add": {"path": str(self.paths[3]), "sha256": digest(self.paths[3])}})
        self.await_phase(3, "ready")
        self.switch(3, "--force")
        self.retire(2)
        self.await_phase(1, "removed")
        self.assertEqual(self.parts_of("item-0"), [])
        self.restart()
        self.assertEqual((self.current(), self.rows()[1]["phase"]), ([3], "removed"))

    def test_kills_at_any_step_lose_nothing(self):
        self.put([1], range(N_ITEMS))
        rng = data.generator("kills of derived generations")
        steps = [("books@2", self.record_of(2)), ("books", self.switches(2)), ("books@1", {"retire": True}),
                 ("books@3", self.record_of(3)), ("books", self.switches(2, 3)),
                 ("books@2", {"retire": True, "derive": 1})]
        for i, (key, value) in enumerate(steps):
            self.write_record(key, value)
            self.put([1], range(10 * i, 10 * i + 30))
            time.sleep(float(rng.uniform(0, 0.2)))
            self.restart(kill=True)
        eventually(lambda: self.current() == [3], "generation 3")
        self.await_phase(2, "removed")
        self.assertEqual(self.rows()[1]["phase"], "kept")
        self.assertEqual(self.ask(n=20), {3})
        self.daemon.stop()
        self.daemon.ctl("verify", str(self.system.folder / "store"))
        self.daemon.start().wait_ready()

    def test_a_daemon_that_comes_later_has_the_same_items(self):
        """All records are there before the daemon: those of a time when a derived generation was current, too."""
        self.put([1], range(80))
        self.derive(2)
        self.switch(2)
        self.put([1], range(40))
        self.put([2], range(30, 60))
        self.derive(3)
        self.switch(3)
        self.retire(2)
        self.put([1], range(5))
        self.assertEqual(self.ask() | self.ask(1), {1, 3})
        self.daemon.stop()
        shutil.rmtree(self.system.folder / "store")
        self.daemon.start().wait_ready()
        self.assertEqual(self.ask() | self.ask(1), {1, 3})
        self.assertEqual(self.rows()[3]["coverage"], 1)

    def test_a_rebuild_fills_derived_generations_without_their_root(self):
        self.put([1], range(80))
        self.derive(2)
        self.switch(2)
        self.retire(1)
        self.daemon.stop()
        topic = self.system.topic("catalogue")
        test_rollout.broker.delete_topic(topic)
        test_rollout.broker.create_topic(topic, 2)
        self.system.connect()
        self.share_parts()
        self.put([1], range(50))
        self.put([2], range(40, 100))
        self.daemon.start()
        eventually(lambda: (self.daemon.get("/status") or [0])[0] == 200 and self.daemon.status()["ready"]
                   and self.rows()[2]["items"] == 100, "the new catalogue")
        self.assertEqual(self.daemon.status()["counters"]["discontinuities"], 1)
        self.put([1], range(10))
        self.assertEqual(self.ask(), {2})
        self.assertEqual((self.rows()[1]["phase"], self.rows()[2]["coverage"]), ("kept", 1))

    def test_what_cannot_be_derived_is_refused_with_the_reason(self):
        self.put([1], range(20))
        wide = self.system.folder / "wide.safetensors"
        test_rollout.models.random_vectors(data.generator("wide"), wide, "bilinear", n=13)
        self.daemon.ctl("model", "add", "books", "--file", str(wide), "--derive", code=1)
        self.assertIn("needs a vector of 13 numbers", self.rows()[2]["problem"])
        self.retire(2)
        for words in (["--derive=7"], ["--derive=0"], ["--derive=3", "--generation", "3"],
                      ["--derive", "1"]):
            self.daemon.ctl("model", "add", "books", "--file", str(self.paths[3]), *words, code=2)
        self.derive(3)
        self.daemon.ctl("model", "add", "books", "--file", str(self.paths[3]), "--generation", "3", code=2)
        self.write_record("books@4", {"add": {**self.record_of(3)["add"], "derive": 4}})
        letters = self.system.wait_dead_letters({(self.system.topic("models"), 0, 3)})
        self.assertIn(b"earlier generation", dict(letters[self.system.topic("models"), 0, 3].headers)["sluice.reason"])
        self.assertEqual(self.ask(3), {3})


if __name__ == "__main__":
    data.main()
