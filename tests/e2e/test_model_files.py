#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of model files that come through a topic, with a real broker: uploaded, fetched by daemons that run, start later
or are killed meanwhile, with chunks that are missing or wrong, and removed with the last generation that has them. Each
answer is compared with the oracle of the generation that it names."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import data
import models
import real_broker
import safetensors_io
import wire
from generations import digest, part_name
from harness import SLOWNESS, Case, Daemon, System, TopicReader, build_dir, eventually, merged
from wire import pb

CHUNK = 512 * 1024
N_ITEMS = 60
GENERATIONS = (1, 2, 3)


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-model-files-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {g: Path(folder.name) / f"{g}.safetensors" for g in GENERATIONS}
    for g in GENERATIONS:  # a little more than two chunks
        models.random_vectors(data.generator(f"files {g}"), paths[g], "bilinear", n=512)
    spaces = {part_name(g): models.load(paths[g]) for g in GENERATIONS}


def chunks(path):
    """The chunks of a file as records of the topic."""
    content = Path(path).read_bytes()
    return {f"{digest(path)}/{i}": content[at:at + CHUNK] for i, at in enumerate(range(0, len(content), CHUNK))}


def damaged(content):
    return content[:-1] + bytes([content[-1] ^ 1])


def add_record(path, **changes):
    return {"add": {"topic": True, "bytes": Path(path).stat().st_size, "sha256": digest(path), **changes}}


class ModelFiles(Case):
    count = 0

    def setUp(self):
        ModelFiles.count += 1
        prefix = f"files-{self.count}"
        topics = {"topic": f"{prefix}.models", "files_topic": f"{prefix}.model-files", "max_file_bytes": 1 << 22}
        self.system = System({"books": paths[1]}, spaces, {"models": topics}, broker.bootstrap, prefix, prefix)
        self.addCleanup(self.system.close)
        for kind, partitions in (("catalogue", 1), ("queries", 1), ("answers", 1), ("dead-letters", 1)):
            broker.create_topic(self.system.topic(kind), partitions)
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        broker.create_topic(self.system.topic("model-files"), 2, {"cleanup.policy": "compact"})
        self.system.open()
        self.daemon = self.system.daemon
        for i in range(N_ITEMS):
            self.system.put(b"item-%d" % i, self.system.items.item([part_name(g) for g in GENERATIONS]))
        self.system.sync()

    def tearDown(self):
        if self.daemon.is_running():
            self.daemon.stop()

    # ---------------------------------------------------------------------------------------------------- steps

    def write(self, kind, pairs):
        for key, value in pairs.items():
            value = json.dumps(value).encode() if isinstance(value, dict) else value
            self.system.producer.produce(self.system.topic(kind), value, key.encode())
        assert self.system.producer.flush(30) == 0

    def upload(self, generation, *more, path=None, code=0):
        return self.daemon.ctl("model", "add", "books", "--file", str(path or paths[generation]), "--generation",
                               str(generation), "--upload", *more, code=code)

    def row(self, generation, daemon=None):
        rows = (daemon or self.daemon).status()["models"]["generations"]
        return next((row for row in rows if row["generation"] == generation), {})

    def await_phase(self, generation, phase, daemon=None):
        eventually(lambda: self.row(generation, daemon).get("phase") == phase, f"{generation} being {phase}")

    def await_problem(self, generation, words):
        eventually(lambda: words in (self.row(generation).get("problem") or ""), f"the problem: {words}")
        return self.row(generation)

    def fetched(self, folder=None):
        """The names of the files that a daemon has."""
        return {path.name for path in ((folder or self.system.folder) / "store" / "models").glob("*")}

    def name_of(self, generation):
        return f"{digest(paths[generation])}.safetensors"

    def live_chunks(self):
        """The keys of the topic that have a chunk."""
        newest = {}
        for record in TopicReader(broker.bootstrap, self.system.topic("model-files")).read():
            newest[record.key.decode()] = record.value is not None
        return {key for key, is_there in newest.items() if is_there}

    def ask(self, expected, name="books"):
        """Ask for some hits, and check that they are those of a generation's model."""
        queries = [self.system.queries.draw(part_name(expected), "exact", k=10, at_least=self.system.positions())
                   for _ in range(3)]
        for query in queries:
            query.space = name
            self.system.send(query)
        self.system.client.wait([q.id for q in queries])
        self.system.sync()
        for query in queries:
            for reply in self.system.client.replies[query.id]:
                answer = pb.Answer()
                answer.CopyFrom(reply.answer)
                self.assertFalse(answer.HasField("error"), answer.error)
                self.assertEqual(answer.generation, expected)
                self.assertEqual(answer.model, digest(paths[expected])[:len(answer.model)])
                answer.space = query.space = part_name(expected)
                self.system.oracle.check(query, answer)

    def second_daemon(self):
        folder = self.system.folder / "second"
        folder.mkdir()
        daemon = Daemon(merged(self.daemon.config, {"store": {"path": str(folder / "store")}}), folder).start()
        self.addCleanup(lambda: daemon.is_running() and daemon.kill())
        daemon.wait_ready()
        return daemon, folder

    # ---------------------------------------------------------------------------------------------------- cases

    def test_a_file_that_was_uploaded_is_fetched_and_kept(self):
        self.assertIn("books@2 is ready", self.upload(2))
        self.assertEqual(self.live_chunks(), set(chunks(paths[2])))
        self.assertEqual(self.row(2)["fetched_bytes"], paths[2].stat().st_size)
        self.daemon.ctl("model", "switch", "books", "2")
        self.ask(2)
        self.assertEqual(self.fetched(), {self.name_of(2)})
        broker.delete_topic(self.system.topic("model-files"))
        for _ in range(2):
            self.daemon.stop()
            self.daemon.start().wait_ready()
            self.ask(2)
            self.daemon.ctl("model", "retire", "books", "1")  # then the next start begins with the fetched file
        self.assertEqual(self.fetched(), {self.name_of(2)})

    def test_daemons_that_start_later_fetch_it_too(self):
        self.upload(2)
        self.daemon.ctl("model", "switch", "books", "2")
        second, folder = self.second_daemon()
        self.assertTrue(self.row(2, second)["current"])  # it was ready only with the current generation
        self.assertEqual(self.fetched(folder), {self.name_of(2)})
        self.daemon.stop()
        self.ask(2)
        self.upload(3, "--at-least", f"127.0.0.1:{second.port}", code=1)  # the first one is away
        self.await_phase(3, "ready", second)
        self.daemon.start().wait_ready()
        self.assertEqual(self.row(3)["phase"], "ready")
        second.stop()

    def test_kills_while_it_is_fetched_lose_nothing(self):
        self.write("model-files", chunks(paths[2]))
        self.write("models", {"books@2": add_record(paths[2])})
        rng = data.generator("kills")
        folder = self.system.folder / "store" / "models"
        words = "generation=books@2 phase=fetching"
        eventually(lambda: words in self.daemon.log(), "the fetch", pause_s=0.002)
        for _ in range(6):
            time.sleep(float(rng.uniform(0, 0.1)))
            self.daemon.kill()
            shutil.rmtree(folder, ignore_errors=True)
            before = self.daemon.log().count(words)
            self.daemon.start()
            eventually(lambda: self.daemon.log().count(words) > before, "the fetch", pause_s=0.002)
        self.daemon.kill()
        folder.mkdir(exist_ok=True)
        (folder / f"{digest(paths[3])}.safetensors.part").write_bytes(b"half of another one")
        (folder / f"{digest(paths[3])}.safetensors").write_bytes(paths[3].read_bytes())  # nobody needs it
        (folder / self.name_of(2)).write_bytes(damaged(paths[2].read_bytes()))  # by the disk
        self.daemon.start().wait_ready()
        self.assertEqual(self.row(2)["phase"], "ready")
        self.ask(2, "books@2")
        eventually(lambda: self.fetched() == {self.name_of(2)}, "the sweep")

    def test_a_missing_chunk_is_waited_for(self):
        whole = chunks(paths[2])
        missing = f"{digest(paths[2])}/1"
        self.write("model-files", {key: value for key, value in whole.items() if key != missing})
        self.write("models", {"books@2": add_record(paths[2]), "books": {"switches": [{"to": 2, "at_ms": 1}]}})
        self.await_problem(2, "1 of 3 chunks are missing, the first is 1")
        self.assertIn('sluice_model_failed{space="books",generation="2"} 1', self.daemon.get("/metrics")[1])
        self.ask(1)
        self.daemon.stop()
        self.daemon.start().wait_ready()  # a start does not wait for it
        self.ask(1)
        self.assertEqual(self.fetched(), set())
        self.write("model-files", {missing: whole[missing]})
        eventually(lambda: self.row(2)["current"], "the switch")
        self.ask(2)
        self.assertIn('sluice_model_failed{space="books",generation="2"} 0', self.daemon.get("/metrics")[1])

    def test_wrong_bytes_are_never_loaded(self):
        right = chunks(paths[2])
        key = f"{digest(paths[2])}/0"
        self.write("model-files", {**right, key: right[key][:-1]})
        self.write("models", {"books@2": add_record(paths[2])})
        self.await_problem(2, f"{key} has not the 524288 bytes")
        self.write("model-files", {key: damaged(right[key])})
        self.await_problem(2, "make a file with the SHA-256")
        self.ask(1)
        self.assertIn("books@2 is ready", self.upload(2))  # the newest chunks count
        self.ask(2, "books@2")
        self.write("models", {"books@3": add_record(paths[3], bytes=1 << 30)})
        self.await_problem(3, "models.max_file_bytes")
        self.write("models", {"books@3": add_record(paths[3], bytes=1)})
        self.await_problem(3, "1 of 1 chunks are missing")
        self.ask(2, "books@2")

    def test_a_file_that_is_no_model_is_not_added(self):
        path = self.system.folder / "text.safetensors"
        path.write_text("no model")
        self.upload(2, path=path, code=1)
        self.assertEqual((self.row(2), self.live_chunks()), ({}, set()))

    def test_a_model_that_a_daemon_cannot_use_fails_at_once(self):
        path = self.system.folder / "empty.safetensors"
        safetensors_io.write(path, {}, {"sluice.similarity": "recjpq"})
        began = time.monotonic()
        self.upload(2, path=path, code=1)
        self.assertLess(time.monotonic() - began, 50 * SLOWNESS)  # not after --timeout-s
        self.assertEqual(self.row(2)["phase"], "failed")
        self.ask(1)

    def test_without_the_topic_everything_goes_on(self):
        broker.delete_topic(self.system.topic("model-files"))
        self.write("models", {"books@2": add_record(paths[2])})
        self.await_problem(2, "model-files")
        self.ask(1)
        broker.create_topic(self.system.topic("model-files"), 1, {"cleanup.policy": "compact"})
        self.assertIn("books@2 is ready", self.upload(2))
        self.ask(2, "books@2")

    def test_nothing_is_added_if_the_topic_does_not_take_the_file(self):
        broker.delete_topic(self.system.topic("model-files"))
        broker.create_topic(self.system.topic("model-files"), 1, {"max.message.bytes": "1000"})
        self.upload(2, code=1)
        self.assertEqual((self.row(2), self.live_chunks()), ({}, set()))
        self.upload(2, "--path", "/srv/model", code=2)
        self.ask(1)

    def test_a_daemon_without_a_topic_of_files_says_so(self):
        self.daemon.stop()
        config = merged(self.daemon.config, {"models": {"files_topic": ""}})
        folder = self.system.folder / "without"
        folder.mkdir()
        self.daemon = self.system.daemon = Daemon(config, folder).start()
        self.daemon.wait_ready()
        self.write("models", {"books@2": add_record(paths[2])})
        self.await_problem(2, "models.files_topic names none")
        self.upload(3, code=1)
        self.ask(1)

    def test_the_last_retirement_removes_the_file_and_its_chunks(self):
        self.upload(2)
        self.upload(3, path=paths[2])  # the same model again
        self.daemon.ctl("model", "retire", "books", "2")
        self.assertEqual(self.live_chunks(), set(chunks(paths[2])))
        self.assertEqual(self.fetched(), {self.name_of(2)})
        self.daemon.ctl("model", "retire", "books", "3")
        self.assertEqual(self.live_chunks(), set())
        eventually(lambda: self.fetched() == set(), "the sweep")
        self.ask(1)

    def test_the_script_of_a_pipeline_uploads(self):
        parts = [wire.part_json(self.system.items.part("books@2")) for _ in range(N_ITEMS)]
        items = self.system.folder / "items.jsonl"
        items.write_text("".join(json.dumps({"key": f"item-{i}", "value": {"parts": {"books": part}}}) + "\n"
                                 for i, part in enumerate(parts)))
        environment = {**os.environ, "SLUICECTL": f"{build_dir() / 'sluicectl'} --config {self.daemon.config_path}",
                       "ADD_OPTIONS": "--upload"}
        done = subprocess.run([data.ROOT / "examples" / "rollout" / "retrain", "books", paths[2], items],
                              env=environment, capture_output=True, text=True, timeout=120 * SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.system.sync()
        self.ask(2)
        self.assertEqual(self.fetched(), {self.name_of(2)})

    def test_a_derived_model_is_uploaded_too(self):
        self.upload(2, "--derive")
        row = self.row(2)
        self.assertEqual((row["derives_from"], row["coverage"], row["items"]), (1, 1, N_ITEMS))
        self.assertEqual(self.fetched(), {self.name_of(2)})

    def test_a_backup_has_the_file(self):
        self.upload(2)
        self.daemon.ctl("model", "switch", "books", "2")
        backup = self.system.folder / "backup"
        self.assertIn("1 model file;", self.daemon.ctl("backup", str(backup)))
        self.daemon.stop()
        broker.delete_topic(self.system.topic("model-files"))
        shutil.rmtree(self.system.folder / "store")
        self.daemon.ctl("restore", str(backup))
        self.daemon.start().wait_ready()
        self.ask(2)
        self.daemon.stop()
        path = self.system.folder / "store" / "models" / self.name_of(2)
        path.write_bytes(damaged(path.read_bytes()))
        done = subprocess.run([build_dir() / "sluicectl", "--config", self.daemon.config_path, "verify"],
                              capture_output=True, text=True, timeout=60 * SLOWNESS)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(self.name_of(2), done.stderr)


if __name__ == "__main__":
    data.main()
