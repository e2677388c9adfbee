#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of models at the daemon's limits: generations that do not fit into memory, a stop while one is loaded, a fill on a
machine that is always busy, and a kill while the parts of a retired one are deleted."""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

import data
import generations
import models
import real_broker
import safetensors_io
from generations import ControlTopic, Load, current, rows
from harness import Case, Daemon, System, build_dir, eventually, merged, to_yaml

N_ITEMS = 100
N_FILLED = 6000   # take several steps
N_REMOVED = 20000 # take several transactions
DIM = 256         # the vectors take most of the memory
SLOW_DIM = 3000   # of a bilinear model whose decomposition takes many seconds


def setUpModule():
    global broker, folder
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)


class Limits(Case):
    def open(self, name, paths, config=None):
        spaces = {f"books@{number}": models.load(path) for number, path in paths.items()}
        config = {**(config or {}), "models": {"topic": f"{name}.models"}}
        self.system = System({"books": paths[1]}, spaces, config, broker.bootstrap, name, name)
        self.addCleanup(self.system.close)
        for kind in ("catalogue", "queries", "answers", "dead-letters"):
            broker.create_topic(self.system.topic(kind))
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        self.system.open()
        self.daemon, self.control = self.system.daemon, ControlTopic(self.system, "books", paths)

    def await_phase(self, number, phase):
        return eventually(lambda: rows(self.daemon).get(number, {}).get("phase") == phase and rows(self.daemon)[number],
                          f"{number} being {phase}", 60)

    def ask(self, number):
        """Ask for the generation, and check the answers."""
        queries = [self.system.queries.draw(f"books@{number}", "exact", at_least=self.system.positions())
                   for _ in range(3)]
        for query in queries:
            self.system.send(query)
        for answer in self.system.client.wait([query.id for query in queries]).values():
            self.assertEqual(answer.generation, number)
            answer.space = f"books@{number}"
            self.system.oracle.check(next(q for q in queries if q.id == answer.id), answer)


class Memory(Limits):
    @staticmethod
    def items_that_fit(path):
        """Return how many items this machine has memory for, with one generation. --check-config says it."""
        with tempfile.TemporaryDirectory() as place:
            config = Path(place) / "sluice.yaml"
            config.write_text(to_yaml({"embedded_broker": {"enabled": True}, "store": {"path": f"{place}/store"},
                                       "spaces": {"books": {"model": str(path)}},
                                       "catalogue": {"max_items": 4000000000}}) + "\n")
            done = subprocess.run([build_dir() / "sluiced", "--check-config", "--config", config], capture_output=True,
                                  text=True)
        return int(re.search(r"at most (\d+) items fit", done.stdout + done.stderr).group(1))

    def test_a_generation_that_does_not_fit_says_so_and_fits_when_another_is_retired(self):
        paths = generations.write_models(data.generator("fit"), folder.name, (1, 2, 3), n=DIM)
        # Two generations take less than this machine has, and three take more.
        self.open("fit", paths, {"catalogue": {"max_items": self.items_that_fit(paths[1]) * 2 // 5}})
        for i in range(N_ITEMS):
            self.system.put(b"item-%d" % i, self.system.items.item(["books@1", "books@2", "books@3"]))
        self.system.sync()
        self.control.add(2)
        self.await_phase(2, "ready")
        self.control.add(3)
        self.control.switch(3)
        problem = self.await_phase(3, "failed")["problem"]
        self.assertRegex(problem, r"generation 3 of space books needs \d+ bytes \(.* GiB\) in the two arenas.*left")
        self.assertEqual(current(self.daemon), 1)
        for number in (1, 2):
            self.ask(number)
        self.control.retire(2)
        self.await_phase(3, "ready")
        eventually(lambda: current(self.daemon) == 3, "the switch")
        self.ask(3)
        self.ask(1)


class LastOne(Limits):
    def test_a_retired_generation_that_has_to_go_on_answering_is_still_updated(self):
        """Nobody should retire the only generation, but a record that is written by hand may."""
        paths = generations.write_models(data.generator("last"), folder.name, (1, 2), n=12)
        self.open("last", paths)
        self.control.retire(1)
        eventually(lambda: self.daemon.status()["models"]["next"] == 1, "the record")
        for restarts in (False, True):
            if restarts:
                self.daemon.stop()
                self.daemon.start().wait_ready()
            for i in range(N_ITEMS):
                self.system.put(b"item-%d" % i, self.system.items.item(["books@1", "books@2"]))
            self.system.sync()
            self.assertEqual(current(self.daemon), 1)
            self.ask(1)
        self.control.add(2)
        self.control.switch(2)
        self.await_phase(1, "removed")
        self.ask(2)


@contextlib.contextmanager
def busy_cores():
    """Keep all cores busy, at the lowest priority but that of the background. Other tests run beside this one."""
    loops = [subprocess.Popen(["nice", "-n", "19", "sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


# The policies of threads that are all in front: the daemon's, and librdkafka's.
FRONT = {(os.SCHED_OTHER, False), (os.SCHED_OTHER, True)}
BACK = {(os.SCHED_IDLE, False), (os.SCHED_IDLE, True)}


class BusyMachine(Limits):
    def policies(self):
        """Return the scheduling policies of the daemon's threads, each with whether it is one of librdkafka's."""
        found = set()
        for path in Path(f"/proc/{self.daemon.process.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # the thread has ended
                name, _, fields = path.read_text().partition("(")[2].rpartition(")")
                found.add((int(fields.split()[38]), name.startswith("rdk:")))
        return found

    def open_with_items(self, name):
        """Return whether the daemon may stand back here."""
        self.open(name, generations.write_models(data.generator(name), folder.name, (1, 2), n=DIM))
        self.put(["books@1", "books@2"])
        self.system.sync()
        may_stand_back = "event=no_background" not in self.daemon.log()
        if data.CI:
            self.assertTrue(may_stand_back)
        return may_stand_back

    def put(self, parts):
        for i in range(N_FILLED):
            self.system.put(b"item-%d" % i, self.system.items.item(parts))

    def policies_until(self, condition, what):
        seen = set()
        eventually(lambda: seen.update(self.policies()) or condition(), what, 60, 0)
        return seen

    def policies_of_updates(self, parts):
        """All records are there when the daemon looks, so its batches are large."""
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.put(parts)
        self.system.sync()
        end = {p.partition: p.next for p in self.system.positions()}
        self.daemon.process.send_signal(signal.SIGCONT)

        def is_applied():
            return {p["partition"]: p["next"] for p in self.daemon.status()["catalogue_log"]} == end
        return self.policies_until(is_applied, "the updates")

    def await_back(self, parts):
        """Update until the catalogue thread and a thread of its client have been seen standing back. The client does so
        while the daemon has records to take, which can be too short to be seen in one go."""
        seen = set()
        eventually(lambda: seen.update(self.policies_of_updates(parts)) or BACK <= seen, "both standing back", 90)

    def test_a_fill_stands_back_ends_all_the_same_and_returns(self):
        may_stand_back = self.open_with_items("busy")
        with busy_cores():
            self.control.add(2)
            seen = self.policies_until(lambda: rows(self.daemon).get(2, {}).get("phase") == "ready", "the fill")
        self.assertEqual((os.SCHED_IDLE, False) in seen, may_stand_back)
        eventually(lambda: self.policies() == FRONT, "the return of all threads")
        self.ask(2)

    def test_updates_stand_back_only_if_current_answers_do_not_show_them(self):
        may_stand_back = self.open_with_items("updates")
        self.control.add(2)
        self.await_phase(2, "ready")
        with busy_cores():
            shown = self.policies_of_updates(["books@1", "books@2"])
            if may_stand_back:
                self.await_back(["books@2"])
            else:
                self.assertEqual(self.policies_of_updates(["books@2"]), FRONT)
            time.sleep(1)  # the daemon has polled in vain
            shown |= self.policies_of_updates(["books@1", "books@2"])
        self.assertEqual(shown, FRONT)
        eventually(lambda: self.policies() == FRONT, "the return of all threads")
        self.ask(1)
        self.ask(2)


class Removal(Limits):
    """A generation has been retired, and its parts are being deleted from the store, some thousand in a transaction."""
    ATTEMPTS = 5  # to kill the daemon meanwhile

    def open_with_items(self):
        paths = generations.write_models(data.generator("removal"), folder.name, range(1, self.ATTEMPTS + 2), n=4)
        self.open("removal", paths)
        different = [self.system.items.item([f"books@{number}" for number in paths]) for _ in range(200)]
        values = [self.system.items.encode(item) for item in different]
        for i in range(N_REMOVED):
            self.system.put_raw(b"item-%05d" % i, *values[i % len(values)])
        self.system.sync()
        self.ask(1)

    def draw(self):
        query = self.system.queries.draw("books@1", "exact", k=10)
        query.space = "books"
        return query

    def check(self, queries):
        """Each answer is right for the generation that it names. Return these generations in order of the queries."""
        answers = self.system.client.wait([query.id for query in queries], 60)
        for query in queries:
            answer = answers[query.id]
            self.assertEqual((answer.error.message, answer.space), ("", "books"))
            query.space = answer.space = f"books@{answer.generation}"
            self.system.oracle.check(query, answer)
        return [answers[query.id].generation for query in queries]

    def replace(self, number):
        """Switch to the next generation, and retire this one."""
        self.control.add(number + 1)
        self.await_phase(number + 1, "ready")
        self.control.switch(number + 1)
        eventually(lambda: current(self.daemon) == number + 1, "the switch")
        self.control.retire(number)

    def kill_when_removing(self, number):
        def is_removing():
            row = rows(self.daemon)[number]
            return row["phase"] == "removed" or (row["phase"] == "removing" and row["walked_items"] > 0)
        eventually(is_removing, "the deletion", pause_s=0)
        self.daemon.kill()

    def stored_parts(self, number):
        """Say of the first item and of the last one whether the store has the part. A daemon that follows no control
        topic looks at a copy: it deletes nothing, and reads no queries of the others."""
        place = self.system.folder / f"look-{number}"
        place.mkdir()
        self.daemon.ctl("backup", str(place / "backup"))
        looker = Daemon(merged(self.daemon.config, {
            "store": {"path": str(place / "store")}, "models": {"topic": ""},
            "query": {"topic": "removal.looks", "group": "removal.looks"}}), place)
        looker.ctl("restore", str(place / "backup"))
        self.addCleanup(lambda: looker.is_running() and looker.kill())
        looker.start().wait_ready()
        items = [json.loads(looker.get(f"/items/item-{i:05}")[1]) for i in (0, N_REMOVED - 1)]
        looker.stop()
        return [generations.part_name(number) in item["value"]["parts"] for item in items]

    def check_removed(self, number):
        """No item has a part of this generation, and there is nothing but the next one in memory."""
        self.await_phase(number, "removed")
        for i in [*range(0, N_REMOVED, 199), N_REMOVED - 1]:
            item = json.loads(self.daemon.get(f"/items/item-{i:05}")[1])
            self.assertNotIn(generations.part_name(number), item["value"]["parts"])
        status = self.daemon.status()
        self.assertEqual([(space["generation"], space["items"]) for space in status["spaces"]], [(number + 1, N_REMOVED)])
        for command in ("list", "status"):
            retired, answering = self.daemon.ctl("model", command).splitlines()[number:number + 2]
            self.assertEqual(retired.split()[:4], [f"books@{number}", "removed", "0", "0.000"])
            self.assertEqual(answering.split()[:5],
                             [f"books@{number + 1}", "current", "ready", f"{N_REMOVED:,}", "100.000"])

    def test_a_kill_amid_the_deletion_of_a_retired_generations_parts_leaves_none(self):
        self.open_with_items()
        broker.create_topic("removal.looks")
        with Load(self.system, self.draw, 0.05) as load:
            for number in range(1, self.ATTEMPTS + 1):
                self.replace(number)
                self.kill_when_removing(number)
                stored = self.stored_parts(number)
                self.daemon.start().wait_ready()
                if stored == [False, True]:
                    break
                print(f" [{number}: {stored}] ", end="", flush=True)
            self.assertEqual(stored, [False, True], "no kill came between two transactions")
            self.check_removed(number)
            load.queries.append(self.system.send(self.draw()))
        self.assertEqual(self.check(load.queries)[-1], number + 1)
        self.daemon.stop()
        self.daemon.ctl("verify")
        self.daemon.start().wait_ready()
        self.check_removed(number)


class Stop(Limits):
    @staticmethod
    def slow_model():
        path = Path(folder.name) / "slow.safetensors"
        numbers = np.random.default_rng(data.SEED).standard_normal((SLOW_DIM, SLOW_DIM), np.float32)
        safetensors_io.write(path, {"W": numbers}, {"sluice.similarity": "bilinear"})
        return path

    def test_a_stop_does_not_wait_for_a_model_that_is_being_loaded(self):
        self.open("stop", generations.write_models(data.generator("stop"), folder.name, (1,), n=12))
        self.control.paths[2] = self.slow_model()
        self.control.add(2)
        self.await_phase(2, "loading")
        began = time.monotonic()
        self.daemon.stop()
        took_s = time.monotonic() - began
        self.assertNotIn("event=stop_gave_up", self.daemon.log())
        self.assertIn("event=load_left", self.daemon.log())
        print(f" [{took_s:.1f} s] ", end="", flush=True)

    def test_a_stop_during_the_start_does_not_wait_for_a_decomposition(self):
        daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": f"{folder.name}/slow-start"},
                         "spaces": {"books": {"model": str(self.slow_model())}}}, folder.name)
        self.addCleanup(lambda: daemon.is_running() and daemon.kill())
        daemon.start()
        eventually(lambda: (Path(folder.name) / "slow-start").exists(), "the store, which is opened before the models")
        daemon.stop()
        self.assertIn("event=start_left", daemon.log())
        self.assertNotIn("event=stop_gave_up", daemon.log())


if __name__ == "__main__":
    data.main()
