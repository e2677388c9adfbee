#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of a full catalogue (max_items) and a full disk.

Queries must still be answered, no record may be lost, and the daemon must report the problem. The catalogue must resume
by itself once there is room.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import data
import models
from harness import SLOWNESS, Case, System, build_dir, eventually, merged, to_yaml

DISK_MB = 40
CODES = json.dumps({"parts": {"codes": {"codes": [1] * 8}}})


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"codes": Path(folder.name) / "codes.safetensors"}
    models.random_recjpq(data.generator("full models"), paths["codes"], m=8, b=256, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class FullCase(Case):
    def lag(self):
        """Return the records that are not applied, which metrics and status both say."""
        metrics = self.system.daemon.get("/metrics")[1]
        lag = sum(int(n) for n in re.findall(r"(?m)^sluice_catalogue_lag_records{.*} (\d+)$", metrics))
        shown = sum(p["lag"] for p in self.status()["catalogue_log"])
        return min(lag, shown)

    def open(self, name, config):
        self.system = System(paths, spaces, config, None, name, name)
        self.addCleanup(self.system.close)
        return self.system.open()

    def status(self):
        return self.system.daemon.status()

    def ready(self):
        return self.system.daemon.get("/readyz")

    def write(self, keys):
        for key in keys:
            self.system.put(key)
        self.system.producer.flush(60)

    def delete(self, keys):
        for key in keys:
            self.system.put_raw(key, None)
        self.system.producer.flush(60)

    def keys_found(self):
        """Return the keys of all items that a query for the whole catalogue finds."""
        query = self.system.queries.draw("codes", "exact", k=50000)
        self.system.send(query)
        answer = self.system.client.wait([query.id])[query.id]
        self.assertFalse(answer.HasField("error"), answer.error)
        self.assertTrue(answer.receipt.exact)
        return {hit.key for hit in answer.hits}

    def wait_not_ready(self, words):
        eventually(lambda: self.ready()[0] == 503 and words in self.ready()[1], f"/readyz to say {words!r}")

    def ctl_fails(self, *words):
        """Run sluicectl, which must fail before a daemon that stands still is given up. Return what it said."""
        began = time.monotonic()
        done = subprocess.run([build_dir() / "sluicectl", "--config", self.system.daemon.config_path, *words],
                              capture_output=True, text=True, timeout=120 * SLOWNESS)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertLess(time.monotonic() - began, 45 * SLOWNESS)
        return done.stderr


def numbered(prefix, n):
    return [b"%s-%04d" % (prefix, i) for i in range(n)]


class Catalogue(FullCase):
    def test_new_items_wait_until_tombstones_make_room(self):
        system = self.open("full", {"catalogue": {"max_items": 1000}})
        first, second = numbered(b"first", 700), numbered(b"second", 700)
        self.write(first)
        system.check_catalogue()
        self.write(second)
        self.wait_not_ready("max_items")
        eventually(lambda: self.status()["items"] == 1000, "1,000 items")
        found = self.keys_found()
        self.assertEqual(len(found), 1000)
        self.assertLess(set(first), found)
        self.assertRegex(system.daemon.get("/metrics")[1], r'(?m)^sluice_catalogue_phase{phase="full"} 1$')
        self.assertIn("max_items", self.status()["problem"])
        eventually(lambda: self.lag() >= 400, "a lag of the items that wait")
        self.write(first[:50])  # updates of existing items are still applied
        eventually(lambda: self.status()["counters"]["applied"] >= 1050, "updates")
        system.daemon.stop()

    def test_a_writer_is_told_what_the_daemon_waits_for(self):
        system = self.open("told", {"catalogue": {"max_items": 50}})
        self.write(numbered(b"first", 60))
        self.wait_not_ready("max_items")
        said = self.ctl_fails("put", "one more", CODES)
        self.assertIn("the daemon waits for room: the catalogue holds catalogue.max_items = 50 items", said)
        self.assertRegex(said, "made no progress for 1[0-9] s, with [0-9]+ records? still to read: .*delete items")
        system.daemon.stop()

    def test_a_load_that_goes_on_is_complete_only_when_all_is_visible(self):
        system = self.open("resumed", {"catalogue": {"max_items": 50}})
        folder = Path(system.daemon.config_path).parent
        keys = [key.decode() for key in numbered(b"line", 60)]
        (folder / "lines.jsonl").write_text("".join(f'{{"key": "{key}", "value": {CODES}}}\n' for key in keys))
        words = ["load", folder / "lines.jsonl", "--resume", folder / "lines.resume"]
        for _ in range(2):  # the second one has nothing to send
            self.assertIn("catalogue.max_items = 50", self.ctl_fails(*words))
        self.delete(keys)
        eventually(lambda: self.status()["items"] == 0, "the deletes")
        system.daemon.wait_ready()
        self.assertRegex(system.daemon.ctl(*words), "sent 0 records .* 60 were there .*; all are visible to queries")
        system.daemon.stop()

    def test_deletes_are_applied_and_the_rest_follows(self):
        system = self.open("room", {"catalogue": {"max_items": 1000}})
        first, second = numbered(b"first", 700), numbered(b"second", 700)
        self.write(first)
        self.write(second)
        self.wait_not_ready("max_items")
        self.delete(first[:500])
        system.daemon.wait_ready()
        system.check_catalogue()
        self.assertEqual(self.keys_found(), {*first[500:], *second})
        self.assertEqual(len([line for line in system.daemon.log().splitlines() if "event=catalogue_full" in line]), 1)
        system.daemon.stop()


class Disk(FullCase):
    def setUp(self):
        self.disk = tempfile.mkdtemp(prefix="sluice-disk-")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", self.disk],
                                 capture_output=True, text=True)
        self.addCleanup(os.rmdir, self.disk)
        if mounted.returncode:
            print(f"SKIPPED: NO FULL DISK WAS TESTED WITH THE DAEMON: {mounted.stderr}", file=sys.stderr, flush=True)
            self.skipTest("no small disk can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=False)

    def fill(self):
        with open(Path(self.disk) / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass

    def test_queries_go_on_and_the_catalogue_follows_when_there_is_room(self):
        system = self.open("disk", {"store": {"path": str(Path(self.disk) / "store")}})
        before, behind = numbered(b"before", 300), numbered(b"behind", 3000)
        self.write(before)
        system.check_catalogue()
        self.fill()
        self.write(behind)
        self.wait_not_ready("disk is full")
        eventually(lambda: self.lag() > 0, "a lag of what cannot be stored")
        self.assertLessEqual(set(before), self.keys_found())
        self.assertIn("the daemon waits for room: ", self.ctl_fails("put", "behind-0000", CODES))
        self.assertTrue(system.daemon.is_running())
        os.unlink(Path(self.disk) / "filler")
        system.daemon.wait_ready()
        system.check_catalogue()
        self.assertEqual(self.keys_found(), {*before, *behind})
        system.daemon.stop()

    def test_items_expire_after_a_reload_with_new_certificates(self):
        def config(password):
            return {"store": {"path": str(Path(self.disk) / "store")}, "kafka": {"ssl.key.password": password},
                    "attributes": {"ends": "time"}, "catalogue": {"expires": "ends"}}
        system = self.open("renewed", config("former"))
        item = {"attributes": {"ends": int((time.time() + 8) * 1000)}}
        system.put_raw(b"short-lived", json.dumps(item).encode())
        system.sync()
        self.fill()
        self.write(numbered(b"behind", 3000))
        self.wait_not_ready("disk is full")
        system.daemon.config_path.write_text(to_yaml(merged(system.daemon.config, config("newer"))) + "\n")
        system.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: "event=reloaded" in system.daemon.log(), "the reload")
        eventually(lambda: self.status()["lifetimes"]["expired"] == 1, "the end of the item")
        self.wait_not_ready("disk is full")

    def test_what_users_have_seen_follows_when_there_is_room(self):
        system = self.open("seen", {"store": {"path": str(Path(self.disk) / "store")}, "seen": {"topic": "seen.seen"}})
        self.fill()
        self.see(numbered(b"user", 3000))
        eventually(lambda: self.status()["seen"]["problem"], "the problem")
        for _ in range(30):  # the daemon tries again and again meanwhile
            time.sleep(0.1)
            self.assertIn("make room", self.status()["seen"]["problem"] or "it ended")
        self.assertEqual(system.daemon.log().count("event=seen_waiting"), 1, system.daemon.log_tail(30))
        os.unlink(Path(self.disk) / "filler")
        eventually(lambda: self.status()["seen"]["users"] == 3000, "all users")
        eventually(lambda: not self.status()["seen"]["problem"], "the end of the problem")
        system.daemon.stop()

    def test_a_start_with_another_topic_says_once_that_the_disk_is_full(self):
        store = Path(self.disk) / "store"
        system = self.open("anew", {"store": {"path": str(store)}, "seen": {"topic": "anew.seen"}})
        self.see(numbered(b"user", 30))
        self.write(numbered(b"before", 30))
        eventually(lambda: self.status()["seen"]["users"] == 30, "all users")
        eventually(lambda: self.status()["items"] == 30, "all items")
        system.daemon.ctl("backup", Path(self.disk) / "backup")
        system.daemon.stop()
        for name in ("data.mdb", "seen/data.mdb"):  # a copy has no free pages, which would take a small transaction
            os.replace(Path(self.disk) / "backup" / name, store / name)
        self.fill()
        before = len(system.daemon.log())
        system.daemon.start()  # the embedded broker has lost its records: the topics are others
        eventually(lambda: self.seen_waits() == "1", "the problem of the seen topic")
        eventually(lambda: self.status()["phase"].startswith("paused"), "the problem of the catalogue")
        time.sleep(3)  # the daemon tries again and again meanwhile
        log = system.daemon.log()[before:]
        for event in ("seen_discontinuity ", "seen_waiting ", "store_disk_full ", 'catalogue phase="waiting for Kafka"',
                      'catalogue phase="paused'):
            self.assertEqual(log.count(f"event={event}"), 1, log)
        self.assertNotIn("event=embedded_broker_begins_anew", log)
        os.unlink(Path(self.disk) / "filler")
        eventually(lambda: self.seen_waits() == "0", "the end of the problem")
        system.daemon.wait_ready()
        self.assertEqual((self.status()["seen"]["users"], self.status()["items"]), (30, 30))
        self.assertEqual(system.daemon.log()[before:].count("event=embedded_broker_begins_anew"), 1)
        system.daemon.stop()

    def test_a_record_of_the_control_topic_is_refused_once(self):
        system = self.open("rollout", {"store": {"path": str(Path(self.disk) / "store")},
                                       "models": {"topic": "rollout.models"}})
        self.fill()
        system.producer.produce(system.topic("models"), b"{", b"codes@2")
        for generation in range(3, 63):  # more than the store's free pages can take
            text = json.dumps({"add": {"path": f"/{'long' * 1000}/{generation}", "sha256": "0" * 64}})
            system.producer.produce(system.topic("models"), text.encode(), b"codes@%d" % generation)
        system.producer.flush(60)
        eventually(lambda: "make room" in (self.status()["models"]["problem"] or ""), "the problem")
        tries = self.count("models_topic")
        eventually(lambda: self.count("models_topic") >= tries + 2, "two more attempts")
        os.unlink(Path(self.disk) / "filler")
        eventually(lambda: not self.status()["models"]["problem"], "the end of the problem")
        eventually(lambda: len(self.status()["models"]["generations"]) == 61, "all records")
        self.assertEqual(self.count("model_record_refused"), 1)
        self.assertEqual(self.status()["models"]["refused_records"], 1)
        system.wait_dead_letters({(system.topic("models"), 0, 0)})
        self.assertEqual(self.count("dead_letter"), 1)
        system.daemon.stop()

    def count(self, event):
        return self.system.daemon.log().count(f"event={event} ")

    def see(self, users):
        items = json.dumps({"items": [f"an item {i:03}" for i in range(100)]})
        for user in users:
            self.system.producer.produce(self.system.topic("seen"), items, user)
        self.system.producer.flush(60)

    def seen_waits(self):
        """Return the value of the metric; None before the daemon serves it."""
        _, page = self.system.daemon.get("/metrics") or (None, "")
        found = re.search(r"^sluice_seen_waits (\d)$", page, re.MULTILINE)
        return found and found[1]


if __name__ == "__main__":
    data.main()
