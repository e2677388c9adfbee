#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of generations of models, with a real broker: models are added, filled, switched to, rolled back and retired
while queries are answered, while daemons are down, and beside kills. The oracle knows all generations: each answer must
be that of the generation that it names."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import data
import models
import real_broker
import wire
from generations import Load, digest, part_name
from harness import SLOWNESS, Case, Daemon, System, build_dir, eventually, merged
from wire import pb

N_ITEMS = 300
GENERATIONS = (1, 2, 3)


def setUpModule():
    global broker, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {g: Path(folder.name) / f"{g}.safetensors" for g in GENERATIONS}
    for g in GENERATIONS:
        models.random_vectors(data.generator(f"rollout {g}"), paths[g], "bilinear", n=12)
    spaces = {part_name(g): models.load(paths[g]) for g in GENERATIONS}


@contextlib.contextmanager
def without_file(path):
    away = path.with_suffix(".away")
    path.rename(away)
    try:
        yield
    finally:
        away.rename(path)


class CheckedLoad(Load):
    """Each query must get one right answer."""

    def __init__(self, case):
        super().__init__(case.system, case.draw, 0.002)
        self.case = case

    def __exit__(self, *exc):
        super().__exit__(*exc)
        if exc[0] is None:
            self.case.check(self.queries)


class Rollout(Case):
    """A daemon with a control topic, the steps of a rollout, and the check of answers. test_derive.py uses it too."""
    count = 0

    def setUp(self):
        Rollout.count += 1
        prefix = f"rollout-{self.count}"
        self.system = System({"books": paths[1]}, spaces, {"models": {"topic": f"{prefix}.models"}}, broker.bootstrap,
                             prefix, prefix)
        self.addCleanup(self.system.close)
        for kind, partitions in (("catalogue", 2), ("queries", 2), ("answers", 2), ("dead-letters", 1)):
            broker.create_topic(self.system.topic(kind), partitions)
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        self.system.open()
        self.daemon = self.system.daemon

    def tearDown(self):
        if self.daemon.is_running():
            self.daemon.stop()

    # ---------------------------------------------------------------------------------------------------- steps

    def put(self, generations, keys=range(N_ITEMS)):
        for i in keys:
            self.system.put(b"item-%d" % i, self.system.items.item([part_name(g) for g in generations]))
        self.system.sync()

    def write_record(self, key, value):
        text = value if isinstance(value, (bytes, type(None))) else json.dumps(value).encode()
        self.system.producer.produce(self.system.topic("models"), text, key.encode())
        assert self.system.producer.flush(30) == 0

    def add(self, generation, *more):
        return self.daemon.ctl("model", "add", "books", "--file", str(paths[generation]), "--generation",
                               str(generation), *more)

    def switch(self, generation, *more, code=0):
        return self.daemon.ctl("model", "switch", "books", str(generation), *more, code=code)

    def rows(self, daemon=None):
        return {row["generation"]: row for row in (daemon or self.daemon).status()["models"]["generations"]}

    def current(self, daemon=None):
        return [g for g, row in self.rows(daemon).items() if row["current"]]

    def await_phase(self, generation, phase, daemon=None):
        eventually(lambda: self.rows(daemon).get(generation, {}).get("phase") == phase, f"{generation} being {phase}")
        return self.rows(daemon)[generation]

    def start_second(self):
        """Start a second daemon of the same catalogue. Return it, and the address of its HTTP server."""
        config = merged(self.daemon.config, {"store": {"path": str(self.system.folder / "second")}})
        folder = self.system.folder / "second-daemon"
        folder.mkdir()
        second = Daemon(config, folder).start()
        self.addCleanup(lambda: second.is_running() and second.kill())
        second.wait_ready()
        return second, f"127.0.0.1:{second.port}"

    # -------------------------------------------------------------------------------------------------- queries

    def draw(self, generation=None, **fields):
        query = self.system.queries.draw(part_name(generation or 1), "exact", k=10, **fields)
        query.space = "books" if generation is None else f"books@{generation}"
        return query

    def check(self, queries):
        """Check each answer by the oracle of the generation that it names. Return the generations that answered."""
        system, answered = self.system, set()
        system.client.wait([q.id for q in queries])
        system.sync()
        pairs = [(q, reply.answer) for q in queries for reply in system.client.replies[q.id]]
        pairs.sort(key=lambda pair: sum(p.next for p in pair[1].watermark))
        for query, answer in pairs:
            self.assertFalse(answer.HasField("error"), answer.error)
            self.assertEqual(answer.space, "books")
            self.assertEqual(answer.model, digest(paths[answer.generation])[:len(answer.model)])
            asked, got = pb.Query(), pb.Answer()
            asked.CopyFrom(query)
            got.CopyFrom(answer)
            asked.space = got.space = part_name(answer.generation)
            if "@" in query.space:
                self.assertEqual(query.space, f"books@{answer.generation}")
            system.oracle.check(asked, got)
            answered.add(answer.generation)
        return answered

    def ask(self, generation=None, n=5):
        queries = [self.draw(generation, at_least=self.system.positions()) for _ in range(n)]
        for query in queries:
            self.system.send(query)
        return self.check(queries)

    def ask_for_error(self, generation, code):
        query = self.draw()
        query.space = f"books@{generation}"
        self.system.send(query)
        answer = self.system.client.wait([query.id])[query.id]
        self.assertEqual(pb.Error.Code.Name(answer.error.code), code)


class Generations(Rollout):
    def test_a_generation_is_added_filled_switched_to_and_retired_under_load(self):
        self.put([1])
        with CheckedLoad(self):
            self.put([1, 2], range(0, 200))  # parts that come before the model
            self.assertIn("books@2 is ready", self.add(2))
            self.assertEqual(self.current(), [1])
            self.assertEqual(self.rows()[2]["missing_items"], 100)
            self.assertEqual(self.ask(2), {2})
            refusal = self.switch(2, code=1)
            self.assertEqual((refusal, self.current()), ("", [1]))
            self.put([2], range(200, N_ITEMS))
            eventually(lambda: self.rows()[2]["coverage"] == 1, "the coverage")
            self.switch(2)
            self.assertEqual(self.ask(), {2})
            self.assertEqual(self.ask(1), {1})
            self.switch(1)
            self.assertEqual(self.ask(), {1})
            self.switch(2)
            self.daemon.ctl("model", "retire", "books", "1")
            self.assertEqual(self.ask(), {2})
        self.ask_for_error(1, "UNKNOWN_SPACE")
        self.put([2], range(50))
        self.assertEqual(self.ask(), {2})
        self.daemon.stop()
        self.daemon.start().wait_ready()
        self.assertEqual((self.current(), self.rows()[1]["phase"]), ([2], "removed"))
        self.assertEqual(self.ask(), {2})

    def test_a_switch_that_waits_for_the_coverage_outlives_a_restart_of_the_daemon(self):
        self.put([1])
        self.put([1, 2], range(200))
        self.add(2)
        words = ["model", "switch", "books", "2", "--timeout-s", str(int(60 * SLOWNESS))]
        waiting = subprocess.Popen([build_dir() / "sluicectl", "--config", self.daemon.config_path, *words],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        said = waiting.stderr.readline()  # after the first answer: without one, it does not wait
        for words in ("waiting: the daemon at ", "books@2 has ", " % of the items", " are missing"):
            self.assertIn(words, said)
        self.daemon.stop()
        time.sleep(0.3)  # nothing answers
        self.daemon.start().wait_ready()
        self.assertEqual((self.current(), waiting.poll()), ([1], None))
        self.put([2], range(200, N_ITEMS))
        printed, said = waiting.communicate(timeout=120 * SLOWNESS)
        self.assertEqual(waiting.returncode, 0, said)
        self.assertRegex(printed, r"^books@2 answers, after .*\n$")
        self.assertEqual(self.ask(), {2})

    def test_a_plain_part_belongs_to_the_generation_of_its_records_time(self):
        self.put([1, 2], range(20))
        self.add(2)
        self.switch(2)
        before = self.rows()[2]["items"]
        item = pb.Item()
        item.parts["books"].CopyFrom(self.system.items.part("books@2"))
        self.system.put(b"plain", item)
        self.assertEqual(self.system.producer.flush(30), 0)
        eventually(lambda: self.rows()[2]["items"] == before + 1, "the part in generation 2")
        self.assertEqual(self.rows()[1]["items"], before)

    def test_a_daemon_that_was_down_comes_to_the_same_state(self):
        self.put([1, 2, 3], range(100))
        self.add(2)
        self.daemon.stop()
        switches = [{"to": 2, "at_ms": int(time.time() * 1000)}, {"to": 3, "at_ms": int(time.time() * 1000)}]
        self.write_record("books@3", {"add": {"path": str(paths[3]), "sha256": digest(paths[3])}})
        self.write_record("books", {"switches": switches})
        self.write_record("books@1", {"retire": True})
        self.daemon.start().wait_ready()
        self.assertEqual(self.current(), [3])
        self.assertEqual(self.ask(), {3})
        self.await_phase(1, "removed")
        self.assertEqual(self.ask(2), {2})

    def test_two_daemons_switch_both(self):
        self.put([1, 2], range(50))
        second, address = self.start_second()
        self.add(2, "--at-least", address)
        with CheckedLoad(self):
            self.switch(2, "--at-least", address)
            self.assertEqual((self.current(), self.current(second)), ([2], [2]))
        self.assertEqual(self.ask(n=20), {2})
        listed = self.daemon.ctl("model", "list", "--at-least", address)
        self.assertEqual(listed.count("books@2"), 2)
        self.assertEqual(self.daemon.ctl("model", "status", "--at-least", address), listed)  # the same command
        second.stop()

    def test_an_empty_generation_is_not_listed_with_full_coverage(self):
        def coverages():
            rows = [line.split() for line in self.daemon.ctl("model", "list").splitlines()[1:]]
            self.assertEqual([row[0] for row in rows], ["books@1", "books@2"])
            return [row[-2] if row[-2] == "-" else row[-3] for row in rows]

        self.add(2)
        self.assertEqual(coverages(), ["-", "-"])
        for generation, keys, expected in ((2, range(50), ["-", "100.000"]), (1, range(50, 100), ["100.000", "0.000"]),
                                           (1, range(50), ["100.000", "50.000"])):
            self.put([generation], keys)
            eventually(lambda expected=expected: coverages() == expected, f"the coverages {expected}")

    def test_a_wrong_file_is_loud_and_mended_by_the_right_one(self):
        self.put([1, 2], range(50))
        path = self.system.folder / "model.safetensors"
        path.write_bytes(paths[3].read_bytes())
        self.write_record("books@2", {"add": {"path": str(path), "sha256": digest(paths[2])}})
        self.assertIn("SHA-256", self.await_phase(2, "failed")["problem"])
        self.write_record("books", {"switches": [{"to": 2, "at_ms": int(time.time() * 1000)}]})
        eventually(lambda: self.rows()[2]["wanted"], "the switch")
        self.assertEqual(self.ask(), {1})
        self.assertIn('sluice_model_failed{space="books",generation="2"} 1', self.daemon.get("/metrics")[1])
        path.write_bytes(paths[2].read_bytes())
        self.await_phase(2, "ready")
        eventually(lambda: self.current() == [2], "the switch")
        self.assertEqual(self.ask(), {2})
        self.write_record("books@3", {"add": {"path": "/there/is/no/such/file", "sha256": digest(paths[2])}})
        self.assertIn("/there/is/no/such/file", self.await_phase(3, "failed")["problem"])
        self.assertEqual(self.ask(), {2})

    def test_records_that_make_no_sense_go_to_the_dead_letters(self):
        self.put([1, 2], range(20))
        for key, value in (("books@2", b"{"), ("books@2", {"retired": True}), ("books@0", {"retire": True}),
                           ("books", {"switches": []})):
            self.write_record(key, value)
        topic = self.system.topic("models")
        letters = self.system.wait_dead_letters({(topic, 0, i) for i in range(4)})
        self.assertIn(b"retired", dict(letters[topic, 0, 1].headers)["sluice.reason"])
        self.add(2)
        status = self.daemon.status()["models"]
        self.assertEqual((status["refused_records"], status["problem"]), (4, None))
        self.assertIn("switches", status["refused"])
        self.assertEqual(self.ask(2), {2})

    def test_the_letter_of_a_senseless_record_outlives_a_kill(self):
        """The topic of dead letters is away, so none has it yet. The records after it count meanwhile."""
        self.put([1, 2], range(20))
        broker.delete_topic(self.system.topic("dead-letters"))
        self.write_record("books@3", b"{")
        self.write_record("books@2", {"add": {"path": str(paths[2]), "sha256": digest(paths[2])}})
        self.await_phase(2, "ready")
        self.assertEqual(self.daemon.status()["models"]["refused_records"], 1)
        self.daemon.kill()
        broker.create_topic(self.system.topic("dead-letters"), 1)
        self.daemon.start().wait_ready()
        self.system.wait_dead_letters({(self.system.topic("models"), 0, 0)})
        self.assertEqual(self.ask(2), {2})
        self.daemon.stop()
        self.daemon.start().wait_ready()
        self.assertEqual(self.daemon.status()["models"]["refused_records"], 0)  # it was sent, so it is not read again

    def test_without_the_control_topic_everything_stays_as_it_was(self):
        self.put([1, 2], range(50))
        self.add(2)
        self.switch(2)
        broker.delete_topic(self.system.topic("models"))
        eventually(lambda: self.daemon.status()["models"]["problem"], "the problem")
        self.assertIn("\nsluice_models_waits 1\n", self.daemon.get("/metrics")[1])
        self.put([2], range(50, 60))
        self.assertEqual(self.ask(), {2})
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        eventually(lambda: not self.daemon.status()["models"]["problem"], "the topic")
        self.assertEqual(self.ask(), {2})
        self.write_record("books@3", {"add": {"path": str(paths[3]), "sha256": digest(paths[3])}})
        self.await_phase(3, "ready")
        self.assertEqual(self.ask(), {2})

    def test_a_control_topic_that_is_replaced_within_a_moment_is_read_again(self):
        """The daemon does not see it happen, and the new topic goes beyond the daemon's position at once."""
        self.put([1, 2, 3], range(50))
        self.add(2)
        self.assertEqual(self.daemon.status()["models"]["next"], 1)
        time.sleep(4)  # for an audit with that record: they are 2.05 s apart
        self.daemon.process.send_signal(signal.SIGSTOP)
        broker.delete_topic(self.system.topic("models"))
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        for generation in (3, 2):
            self.write_record(f"books@{generation}",
                              {"add": {"path": str(paths[generation]), "sha256": digest(paths[generation])}})
        self.daemon.process.send_signal(signal.SIGCONT)
        self.await_phase(3, "ready")
        self.assertIn("event=models_discontinuity", self.daemon.log())
        self.assertEqual(self.ask(3), {3})
        self.assertEqual(self.ask(2), {2})

    def test_after_the_control_topic_was_replaced_commands_go_by_what_the_daemon_has(self):
        self.put([1, 2, 3])
        self.add(2)
        self.switch(2)
        broker.delete_topic(self.system.topic("models"))
        broker.create_topic(self.system.topic("models"), 1, {"cleanup.policy": "compact"})
        eventually(lambda: "event=models_discontinuity" in self.daemon.log(), "the new topic")
        self.daemon.ctl("model", "retire", "books", "2", code=2)  # it answers
        self.daemon.ctl("model", "add", "books", "--file", str(paths[3]), "--generation", "2", code=2)
        self.switch(1)
        self.assertEqual(self.ask(), {1})
        self.switch(2)
        self.assertEqual(self.ask(), {2})
        self.assertIn("books@3 is ready", self.daemon.ctl("model", "add", "books", "--file", str(paths[3])))
        self.switch(3)
        self.daemon.stop()
        self.daemon.start().wait_ready()
        self.assertEqual(self.ask(), {3})
        self.assertIn("books@2 is gone", self.daemon.ctl("model", "retire", "books", "2"))

    def test_two_who_add_at_the_same_time_do_not_both_get_the_number(self):
        self.put([1, 2, 3])
        said = [None, None]

        def add(i):
            said[i] = subprocess.run([build_dir() / "sluicectl", "--config", self.daemon.config_path, "model",
                                      "add", "books", "--file", str(paths[2 + i])], capture_output=True, text=True)
        threads = [threading.Thread(target=add, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ready = [done.stdout.split()[0] for done in said if done.returncode == 0]
        self.assertEqual(len(set(ready)), len(ready))
        for done in said:
            if done.returncode:
                self.assertRegex(done.stderr, "given to another model at the same time|is another model there")

    def test_without_the_catalogue_topic_the_rollout_goes_on(self):
        self.put([1, 2], range(50))
        broker.delete_topic(self.system.topic("catalogue"))
        eventually(lambda: "catalogue" in self.daemon.get("/readyz")[1], "the topic being away")
        self.write_record("books@2", {"add": {"path": str(paths[2]), "sha256": digest(paths[2])}})
        self.assertEqual(self.await_phase(2, "ready")["items"], 50)
        self.write_record("books", {"switches": [{"to": 2, "at_ms": int(time.time() * 1000)}]})
        eventually(lambda: self.current() == [2], "the switch")
        self.assertEqual(self.daemon.get("/readyz")[0], 503)

    def test_parts_that_a_model_cannot_use_are_counted_after_a_restart_too(self):
        self.put([1], range(20))
        item = pb.Item()
        item.parts["books@2"].vector.CopyFrom(wire.vector([0.5] * 3))
        for i in range(5):
            self.system.put(b"item-%d" % i, item)
        self.assertEqual(self.system.producer.flush(30), 0)
        eventually(lambda: self.daemon.status()["counters"]["applied"] == 25, "all items")
        self.add(2)
        for _ in range(2):
            self.assertEqual(self.rows()[2]["unusable_parts"], 5)
            self.assertIn("where the model needs 12", self.rows()[2]["problem"])
            self.daemon.stop()
            self.daemon.start().wait_ready()
        self.assertEqual(self.rows()[2]["unusable_parts"], 5)
        self.assertEqual(self.rows()[1]["unusable_parts"], 0)
        for i in range(2):  # now that the generation is known, its parts are checked
            self.system.put(b"item-%d" % i, item)
        self.assertEqual(self.system.producer.flush(30), 0)
        eventually(lambda: self.rows()[2]["refused_items"] == 2, "the refusals to be counted")
        self.assertIn('key "item-1": ', self.rows()[2]["refused"])
        self.assertEqual((self.rows()[1]["refused_items"], self.rows()[1]["refused"]), (0, None))
        self.assertIn("2 items were refused because of its part", self.daemon.ctl("model", "list"))

    def test_what_must_not_be_is_refused_with_the_reason(self):
        self.put([1, 2], range(20))
        self.put([1], range(20, 30))
        self.add(2)
        for words in (["retire", "books", "1"], ["retire", "books", "7"], ["switch", "books", "7"],
                      ["switch", "films", "2"], ["add", "books", "--file", str(paths[3]), "--generation", "2"],
                      *(["switch", "books", "2", f"--min-coverage={text}"] for text in ("-1", "100.1", "half", "nan"))):
            self.daemon.ctl("model", *words, code=2)
        for file, says in (("/no/such/file", "No such file"), ("/dev/zero", "is not a regular file")):
            command = [build_dir() / "sluicectl", "--config", self.daemon.config_path, "model", "add", "books", "--file"]
            done = subprocess.run([*command, file], capture_output=True, text=True, timeout=60 * SLOWNESS)
            self.assertEqual(done.returncode, 1)  # as `load`
            self.assertIn(file, done.stderr)
            self.assertIn(says, done.stderr)
        self.switch(2, "--min-coverage", "67", code=1)  # it has two thirds
        self.assertEqual(self.current(), [1])
        self.switch(2, "--min-coverage", "66")
        self.daemon.ctl("model", "retire", "books", "1")
        self.daemon.ctl("model", "switch", "books", "1", code=1)
        self.assertEqual(self.ask(), {2})

    def test_the_file_of_a_retired_configuration_is_not_needed(self):
        self.put([1, 2, 3])
        for generation, former in ((2, 1), (3, 2)):
            self.add(generation)
            self.switch(generation)
            self.daemon.ctl("model", "retire", "books", str(former))
            self.daemon.stop()
            with without_file(paths[1]):
                self.daemon.start().wait_ready()
            self.assertEqual((self.current(), self.rows()[1]["phase"]), ([generation], "removed"))
            self.assertEqual(self.rows()[generation]["digest"], digest(paths[generation]))
            self.assertEqual(self.rows()[generation]["problem"], None)
            self.assertEqual(self.ask(), {generation})
            self.put([generation], range(20))
            self.assertEqual(self.ask(generation), {generation})
        with without_file(paths[3]):  # then only the configuration's is there, which has no parts any more
            self.daemon.stop()
            self.daemon.start()
            eventually(lambda: "waiting for a model" in (self.daemon.get("/readyz") or (0, ""))[1], "the reason")
            self.assertEqual(self.daemon.get("/readyz")[0], 503)
            self.assertIn(str(paths[3]), self.await_phase(3, "failed")["problem"])
            queries = self.daemon.status()["counters"]["queries"]
            late = threading.Thread(target=lambda: self.assertEqual(self.ask(), {3}))
            late.start()
            time.sleep(1)
            self.assertEqual(self.daemon.status()["counters"]["queries"], queries)
        self.daemon.wait_ready()
        self.assertEqual(self.current(), [3])
        late.join()
        self.assertEqual(self.ask(), {3})

    def test_an_empty_store_is_filled_without_the_parts_of_a_retired_generation(self):
        self.put([1, 2], range(20))
        self.put([1], range(20, 25))
        self.add(2)
        self.switch(2, "--force")
        self.daemon.ctl("model", "retire", "books", "1")
        n_items = self.daemon.status()["items"]
        self.daemon.stop()
        shutil.rmtree(self.system.folder / "store")
        self.daemon.start().wait_ready()
        self.assertEqual((self.current(), self.rows()[2]["items"]), ([2], 20))
        self.assertEqual(self.daemon.status()["items"], n_items)
        self.assertEqual(self.daemon.status()["unknown_spaces"], [])
        self.assertEqual(self.ask(), {2})

    def test_kills_at_any_step_lose_nothing(self):
        """Kill the daemon again and again while a generation is added, filled, switched to and the former retired."""
        self.put([1, 2], range(N_ITEMS))
        now = int(time.time() * 1000)
        steps = [("books@2", {"add": {"path": str(paths[2]), "sha256": digest(paths[2])}}),
                 ("books", {"switches": [{"to": 2, "at_ms": now}]}),
                 ("books@1", {"retire": True}),
                 ("books@3", {"add": {"path": str(paths[3]), "sha256": digest(paths[3])}}),
                 ("books", {"switches": [{"to": 2, "at_ms": now}, {"to": 3, "at_ms": now}]})]
        rng = data.generator("kills")
        for key, value in steps:
            self.write_record(key, value)
            time.sleep(float(rng.uniform(0, 0.2)))
            self.daemon.kill()
            self.daemon.start().wait_ready()
        eventually(lambda: self.current() == [3], "generation 3")
        self.await_phase(1, "removed")
        self.put([3], range(100))
        self.assertEqual(self.ask(), {3})
        self.assertEqual(self.ask(2), {2})
        self.daemon.stop()
        self.daemon.ctl("verify", str(self.system.folder / "store"))
        self.daemon.start().wait_ready()

    def retrain(self, *words):
        environment = {**os.environ, "SLUICECTL": f"{build_dir() / 'sluicectl'} --config {self.daemon.config_path}"}
        return subprocess.run([data.ROOT / "examples" / "rollout" / "retrain", "books", *words], env=environment,
                              capture_output=True, text=True, timeout=120 * SLOWNESS)

    def test_the_script_rolls_out_one_model_after_the_other(self):
        """examples/rollout/retrain, twice, with two daemons: the generation before the former one is retired."""
        self.put([1])
        second, address = self.start_second()
        for generation in (2, 3):
            lines = []
            for i in range(N_ITEMS):
                part = wire.part_json(self.system.items.part(part_name(generation)))
                lines.append({"key": f"item-{i}", "value": {"parts": {"books": part}}})
            items = self.system.folder / "items.jsonl"
            items.write_text("".join(json.dumps(line) + "\n" for line in lines))
            done = self.retrain(paths[generation], items, address)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual((self.current(), self.current(second)), ([generation], [generation]))
            self.system.sync()
            self.assertEqual(self.ask(), {generation})
        self.assertEqual([self.rows(daemon)[1]["phase"] for daemon in (self.daemon, second)], ["removed"] * 2)
        self.assertEqual(self.ask(2), {2})
        second.stop()
        done = self.retrain(paths[2], items, address)  # the daemon that it names is not there
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(address, done.stderr)
        self.daemon.ctl("model", "retire", "books", "2", "--at-least", address, code=1)
        self.ask()  # whatever was written has been read
        self.assertEqual({g: row["phase"] for g, row in self.rows().items()}, {1: "removed", 2: "ready", 3: "ready"})

    def test_the_script_adds_nothing_if_the_items_cannot_be_read(self):
        items = self.system.folder / "wrong.jsonl"
        for text, reason in ((None, f"the items' file {items} cannot be read"),
                             ('{"key": "a", "value": null}\n{"key": \n', f"a line of {items} is not an item")):
            if text:
                items.write_text(text)
            done = self.retrain(paths[2], items)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn(reason, done.stderr)
            self.assertEqual(list(self.rows()), [1])


if __name__ == "__main__":
    data.main()
