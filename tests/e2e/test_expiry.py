#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of lifetimes: items expire and come out of their embargo as the daemon's clock goes on, with no message."""

import json
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import boosts
import data
import filters
import harness
import models
import real_broker
from clocks import SteppedClock
from harness import SLOWNESS, Case, Daemon, System, eventually
from oracle import Lifetimes, check_epochs
from wire import pb

N_ITEMS = 1500
N_CHANGED = 200
MINUTE_MS = 60000
DAY_MS = 1440 * MINUTE_MS
NOW_MS = filters.Draw.NOW  # the daemon's clock at the beginning; drawn times are up to 1000 minutes away
TYPES = {"available": "bool", "country": "keyword", "price": "number", "begins": "time", "ends": "time"}
LIFETIMES = Lifetimes("begins", "ends")


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models with lifetimes")
    names = ("dot", "bilinear", "mol", "recjpq")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in names}
    for name in names[:2]:
        models.random_vectors(rng, paths[name], name)
    models.random_mol(rng, paths["mol"])
    models.random_recjpq(rng, paths["recjpq"], b=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class ExpiryCase(Case):
    """Tests that each have a daemon whose clock they step, and a catalogue of items with lifetimes."""

    def open(self, config=None, has_broker=False):
        broker = real_broker.open_for(self.addCleanup) if has_broker else None
        self.system = system = System(paths, spaces, config, broker and broker.bootstrap, "expiry", self.id(),
                                      types=TYPES, lifetimes=LIFETIMES)
        self.addCleanup(system.close)
        for kind in ("catalogue", "queries", "answers", "dead-letters") if broker else ():
            broker.create_topic(system.topic(kind), 2, {"cleanup.policy": "compact"} if kind == "catalogue" else {})
        self.clock = SteppedClock(system.daemon, NOW_MS - time.time_ns() // 10**6)
        system.open()
        self.keys = [b"item-%04d" % i for i in range(N_ITEMS)]
        for key in self.keys:
            system.put(key)
        system.sync()

    def ask_random(self, n=3):
        """Ask every space, by every method, with and without filters and boosts."""
        system, queries = self.system, []
        draw = boosts.Draw(system.rng, TYPES)
        for space in spaces:
            for i in range(n):
                text, parameters = system.items.draw.filter() if i % 2 else ("", [])
                query = system.queries.draw(space, k=data.pick(system.rng, [1, 10, 100, N_ITEMS + 1]), filter=text,
                                            parameters=[data.wire.make_value(value) for value in parameters],
                                            at_least=system.positions(),
                                            explain=[data.pick(system.rng, self.keys) for _ in range(10)])
                draw.add(query)
                for method in spaces[space].methods():
                    queries.append(pb.Query())
                    queries[-1].CopyFrom(query)
                    queries[-1].id, queries[-1].method = f"{query.id} by {method}", method
        system.ask(queries, timeout_s=120)

    def ask(self):
        """Ask for all items of a space. Returns the answer."""
        query = self.system.queries.draw("dot", "exact", k=N_ITEMS + 1, at_least=self.system.positions())
        self.system.ask([query])
        return self.system.answers[-1]

    def keys_found(self):
        return {hit.key for hit in self.ask().hits}

    def wait_for(self, moment_ms):
        """Wait until an answer knows that something has changed at this moment."""
        eventually(lambda: self.ask().time_unix_ms >= moment_ms, f"an epoch of {moment_ms}")

    def moments(self):
        """Return the times at which items change."""
        items = self.system.oracle.state(self.system.oracle.end()).items.values()
        return sorted(moment for item in items for moment in LIFETIMES.moments(item.attributes))

    def pass_time(self, ms):
        """Let the clock go on, and wait until the last change in between is visible. No record is written."""
        self.clock.step(ms)
        past = [moment for moment in self.moments() if moment <= self.clock.now_ms()]
        self.wait_for(past[-1])

    def change(self):
        """Write random changes of attributes alone, of parts alone, and deletes."""
        system, rng = self.system, self.system.rng
        for _ in range(N_CHANGED):
            key, kind, item = data.pick(rng, self.keys), rng.integers(8), pb.Item()
            if kind == 0:
                system.put_raw(key, None)
                continue
            if kind == 1:
                name = data.pick(rng, list(spaces))
                item.parts[name].CopyFrom(system.items.part(name))
            removed = {name: None for name in TYPES if rng.random() < 0.2}
            system.items.set_attributes(item, {**system.items.draw.attributes(0.5), **removed})
            if item.parts or item.attributes:
                system.put(key, item)
        system.sync()

    def put_whole(self, key, **attributes):
        """Put an item that all spaces have."""
        self.system.put(key, self.system.items.set_attributes(self.system.items.item(list(spaces)), attributes))
        self.system.sync()

    def put_lifetime(self, key, **attributes):
        self.system.put(key, self.system.items.set_attributes(pb.Item(), attributes))
        self.system.sync()

    def finish(self):
        """End the daemon's run: epochs begin anew with the next."""
        check_epochs(self.system.answers)
        self.system.answers.clear()
        print(f"\n{self.system.oracle.checked} answers checked", flush=True)


class Time(ExpiryCase):
    def test_random_lifetimes_as_time_passes_and_items_change(self):
        self.open()
        self.ask_random()
        for _ in range(4):
            self.pass_time(int(self.system.rng.integers(1, 300)) * MINUTE_MS)
            self.ask_random()
            self.change()
            self.ask_random()
        self.check_status()
        self.finish()
        self.system.daemon.stop()

    def check_status(self):
        status = self.system.daemon.status()
        lifetimes, time_ms = status["lifetimes"], status["lifetimes"]["time_unix_ms"]
        items = [item.attributes for item in self.system.oracle.state(self.system.oracle.end()).items.values()]
        expired = [item for item in items if item.get("ends", time_ms + 1) <= time_ms]
        dead = [item for item in items if not LIFETIMES.is_alive(item, time_ms)]
        self.assertEqual((lifetimes["expired"], lifetimes["embargoed"]), (len(expired), len(dead) - len(expired)))
        # An expired item does not change when its embargo ends.
        moments = [m for item in items if item not in expired for m in LIFETIMES.moments(item) if m > time_ms]
        self.assertLessEqual(lifetimes["next_change_unix_ms"], min(moments))
        metrics = self.system.daemon.get("/metrics")[1]
        self.assertIn(f"\nsluice_items_expired {len(expired)}\n", metrics)
        for space in status["spaces"]:
            self.assertTrue(0 < space["alive"] < space["items"])

    def test_an_item_expires_is_renewed_and_is_embargoed(self):
        self.open()
        key, now = self.keys[7], self.clock.now_ms()
        self.put_whole(key, begins=None, ends=now + 60 * MINUTE_MS)
        self.assertIn(key, self.keys_found())
        self.pass_time(60 * MINUTE_MS)
        self.assertNotIn(key, self.keys_found())
        self.put_lifetime(key, ends=now + 90 * MINUTE_MS)
        self.assertIn(key, self.keys_found())
        self.put_lifetime(key, begins=now + 80 * MINUTE_MS)
        self.assertNotIn(key, self.keys_found())
        self.pass_time(20 * MINUTE_MS)
        self.assertIn(key, self.keys_found())
        self.pass_time(10 * MINUTE_MS)
        self.assertNotIn(key, self.keys_found())
        self.put_lifetime(key, ends=None)
        self.assertIn(key, self.keys_found())
        self.finish()

    def test_a_clock_that_is_set_back_brings_nothing_back(self):
        self.open()
        self.pass_time(100 * MINUTE_MS)
        before = self.keys_found()
        self.clock.step(-100 * MINUTE_MS)
        self.put_lifetime(b"another item", available=True)  # without parts: an epoch is published
        self.assertEqual(self.keys_found(), before)
        self.ask_random(1)
        self.finish()


class Promptness(ExpiryCase):
    """Time passes by itself here: the clock is never stepped, and no record is written while answers are compared."""

    INTERVAL_MS = 100

    def put_soon(self, expiring, embargoed):
        """Put two items that change soon, one after the other. Return the two moments, both still to come."""
        for span_ms in (1500, 6000, 24000):
            ends = self.clock.now_ms() + int(span_ms * SLOWNESS)
            begins = ends + int(500 * SLOWNESS)
            self.put_whole(expiring, begins=None, ends=ends)
            self.put_whole(embargoed, begins=begins, ends=None)
            if expiring in self.keys_found():
                return ends, begins
        raise AssertionError("items expire before they can be asked for: this machine is too slow")

    def test_a_change_is_visible_soon_after_its_moment(self):
        self.open({"catalogue": {"publish_interval_ms": self.INTERVAL_MS}})
        expiring, embargoed = self.keys[7], self.keys[8]
        ends, begins = self.put_soon(expiring, embargoed)
        n_records, late_ms = len(self.system.records), self.INTERVAL_MS + int(5000 * SLOWNESS)
        has_begun = False
        while not has_begun:
            asked_ms = self.clock.now_ms()
            answer = self.ask()
            found = {hit.key for hit in answer.hits}
            is_found, has_begun = expiring in found, embargoed in found
            self.assertLessEqual(answer.time_unix_ms, self.clock.now_ms())
            self.assertEqual(is_found, answer.time_unix_ms < ends)
            self.assertEqual(has_begun, answer.time_unix_ms >= begins)
            if asked_ms > ends + late_ms:
                self.assertFalse(is_found, f"still there {asked_ms - ends} ms after its end")
            if asked_ms > begins + late_ms:
                self.assertTrue(has_begun, f"still embargoed {asked_ms - begins} ms after its beginning")
        self.assertEqual(len(self.system.records), n_records)
        self.finish()
        self.system.daemon.stop()


class Sweep(ExpiryCase):
    def test_what_has_been_expired_for_long_is_deleted(self):
        """The oracle knows nothing of deletes without a record, so it checks no answer here."""
        self.open({"catalogue": {"delete_expired_after_s": 30 * DAY_MS // 1000}}, has_broker=True)
        system, renewed, lost = self.system, self.keys[7], self.keys[8]
        for key in (renewed, lost):
            self.put_whole(key, begins=None, ends=self.clock.now_ms() + DAY_MS)
        self.clock.step(2 * DAY_MS)
        eventually(lambda: lost not in self.keys_of_dot(), "the end of an item")
        self.put_lifetime(renewed, ends=self.clock.now_ms() + 40 * DAY_MS)
        self.assertIn(renewed, self.keys_of_dot())
        self.clock.step(31 * DAY_MS)
        until_ms = self.clock.now_ms() - 30 * DAY_MS
        items = system.oracle.state(system.oracle.end()).items
        due = {key for key, item in items.items() if item.attributes.get("ends", until_ms + 1) <= until_ms}
        eventually(lambda: system.daemon.status()["items"] == len(items) - len(due), "the sweep")
        self.check_kept(items.keys() - due)
        # Two items were written anew at the beginning. Their former selves may have been expired for long, too.
        swept = system.daemon.status()["counters"]["swept"]
        self.assertTrue(len(due) <= swept <= len(due) + 2, f"{swept} items deleted, {len(due)} due")
        for end in (system.daemon.kill, system.daemon.stop):
            end()
            system.daemon.start().wait_ready()
            self.check_kept(items.keys() - due)
        system.put(lost, system.items.set_attributes(pb.Item(), {"available": True}))
        system.sync()
        self.assertNotIn(lost, self.keys_of_dot())  # it comes back with just that
        eventually(lambda: system.daemon.status()["items"] == len(items) - len(due) + 1, "the item")
        system.daemon.stop()

    def keys_of_dot(self):
        query = self.system.queries.draw("dot", "exact", k=N_ITEMS + 1, at_least=self.system.positions())
        self.system.send(query)
        return {hit.key for hit in self.system.client.wait([query.id])[query.id].hits}

    def check_kept(self, keys):
        """Check that the daemon has just the items of these keys, and returns those that are alive."""
        items = self.system.oracle.state(self.system.oracle.end()).items
        now_ms = self.clock.now_ms()
        alive = {k for k in keys if "dot" in items[k].parts and LIFETIMES.is_alive(items[k].attributes, now_ms)}
        self.assertEqual(self.system.daemon.status()["items"], len(keys))
        self.assertEqual(self.keys_of_dot(), alive)


class SweepAmongUpdates(unittest.TestCase):
    def test_what_has_been_expired_is_deleted_while_records_come(self):
        temporary = tempfile.TemporaryDirectory(prefix="sluice-sweep-")
        self.addCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        models.random_vectors(data.generator("a sweep among updates"), folder / "v.safetensors", "dot", 2)
        daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                         "attributes": {"ends": "time", "n": "integer"}, "spaces": {"v": {"model": "v.safetensors"}},
                         "catalogue": {"expires": "ends", "delete_expired_after_s": 1,
                                       "kafka": {"fetch.wait.max.ms": 1}}}, folder)
        self.addCleanup(daemon.kill)
        daemon.start().wait_ready()
        part = {"parts": {"v": {"vector": [1, 2]}}}
        for i in range(20):
            daemon.ctl("put", f"short {i}", json.dumps({**part, "attributes": {"ends": int(time.time() * 1000)}}))
        lines = [json.dumps({"key": "busy", "value": {**part, "attributes": {"n": i}}}) for i in range(20000)]
        (folder / "updates.jsonl").write_text("\n".join(lines), encoding="utf-8")
        updates = subprocess.Popen([harness.build_dir() / "sluicectl", "--config", daemon.config_path, "load",
                                    folder / "updates.jsonl", "--rate", "300"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(updates.wait)
        self.addCleanup(updates.kill)
        eventually(lambda: daemon.status()["counters"]["swept"] == 20, "the sweep")
        self.assertIsNone(updates.poll())  # it did not have to end first
        self.assertEqual(daemon.status()["items"], 1)


class Restart(ExpiryCase):
    def test_what_expired_while_the_daemon_was_away_never_appears(self):
        self.open(has_broker=True)
        self.ask_random(1)
        for end in (self.system.daemon.stop, self.system.daemon.kill):
            self.finish()
            end()
            self.clock.step(200 * MINUTE_MS)
            began_ms = self.clock.now_ms()
            self.system.daemon.start()
            answer = self.ask()
            self.assertGreaterEqual(answer.time_unix_ms, began_ms)
            self.system.daemon.wait_ready()
            self.ask_random(1)
            self.pass_time(100 * MINUTE_MS)
            self.ask_random(1)
        self.finish()
        self.system.daemon.stop()


if __name__ == "__main__":
    data.main()
