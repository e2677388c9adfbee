#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of sluicectl load: arrays of .npy and .safetensors files, checks before the first record, and --resume."""

import json
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import data
import harness
import models
import safetensors_io
from harness import Daemon, eventually


def setUpModule():
    """Start one daemon with the embedded broker."""
    global daemon, folder, rng
    temporary = tempfile.TemporaryDirectory(prefix="sluice-load-")
    unittest.addModuleCleanup(temporary.cleanup)
    folder = Path(temporary.name)
    rng = data.generator("arrays to load")
    models.random_vectors(rng, folder / "films.safetensors", "dot", 3)
    models.random_recjpq(rng, folder / "coded.safetensors", m=2, b=16, d=4)
    daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                     "spaces": {name: {"model": f"{name}.safetensors"} for name in ("films", "coded")},
                     "catalogue": {"kafka": {"fetch.wait.max.ms": 1}}}, folder)
    unittest.addModuleCleanup(daemon.kill)
    daemon.start().wait_ready()


def written():
    """Return the keys of the catalogue's topic, one for each record."""
    bootstrap = daemon.status()["kafka"]["bootstrap"]
    return [record.key.decode() for record in harness.TopicReader(bootstrap, "sluice.catalogue").read()]


class Loads(unittest.TestCase):
    def ctl(self, *words, code=0, **more):
        done = subprocess.run([harness.build_dir() / "sluicectl", "--config", daemon.config_path, *map(str, words)],
                              capture_output=True, text=True, timeout=120 * harness.SLOWNESS, **more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def npy(self, name, array):
        np.save(folder / f"{name}.npy", array)
        return folder / f"{name}.npy"

    def part(self, key, space="films"):
        return json.loads(self.ctl("get", "--value", key))["parts"][space]


class Arrays(Loads):
    def test_vectors_of_every_type(self):
        vectors = rng.integers(-8, 8, (5, 3)).astype(np.float32)  # exact in every type
        (folder / "keys.txt").write_text("".join(f"key {i}\n" for i in range(5)))
        for kind in ("float32", "float16", "float64"):
            said = self.ctl("load", self.npy(kind, vectors.astype(kind)), "--space", "films", "--key-prefix", f"{kind}:",
                            "--keys", folder / "keys.txt")
            self.assertIn("sent 5 records", said)
            for i in range(5):
                self.assertEqual(self.part(f"{kind}:key {i}")["vector"], vectors[i].tolist())
        path = folder / "half.safetensors"
        safetensors_io.write(path, {"v": safetensors_io.f32_to_bf16(vectors)}, {}, {"v": "BF16"})
        self.ctl("load", path, "--space", "films", "--key-prefix", "row-")
        self.assertEqual(self.part("row-4")["vector"], vectors[4].tolist())

    def test_a_generation_may_be_named(self):
        path = self.npy("named", np.ones((1, 3), np.float32))
        self.ctl("load", path, "--space", "films@1", "--key-prefix", "named-")
        self.assertEqual(self.part("named-0")["vector"], [1, 1, 1])
        self.assertIn('no space "films@2"', self.ctl("load", path, "--space", "films@2", code=2))

    def test_codes_with_integers_as_keys(self):
        codes = np.array([[0, 15], [3, 7]])
        for kind in ("uint8", "int64", "int16"):
            self.ctl("load", self.npy("codes", codes.astype(kind)), "--space", "coded", "--keys",
                     self.npy("ids", np.array([17, -5])), "--key-prefix", kind)
            self.assertEqual(self.part(f"{kind}-5", "coded"), {"codes": [3, 7]})
        path = folder / "both.safetensors"  # such as those of sluicectl eval
        safetensors_io.write(path, {"item_ids": np.array([100, 200]), "codes": codes.astype(np.uint8)}, {})
        self.ctl("load", path, "--space", "coded", "--keys", path)
        self.assertEqual(self.part("200", "coded"), {"codes": [3, 7]})

    def test_nothing_is_sent_if_anything_is_wrong(self):
        good = np.zeros((4, 3), np.float32)
        bad = good.copy()
        bad[3, 1] = np.nan
        path = folder / "two.safetensors"
        safetensors_io.write(path, {"a": good, "b": good}, {})
        (folder / "same.txt").write_text("a\nb\nc\nb\n")
        before = len(written())
        for words, says in {
            (self.npy("wide", np.zeros((4, 5), np.float32)),): "have 5 numbers where space films needs 3",
            (self.npy("flat", np.zeros(4, np.float32)),): "it must have 2 dimensions",
            (self.npy("nan", bad),): "row 3: number 1 is nan",
            (self.npy("whole", np.zeros((4, 3), np.int64)),): "space films needs vectors",
            (self.npy("good", good), "--keys", self.npy("few", np.arange(3))): "has 3 keys, but the array has 4 rows",
            (self.npy("good", good), "--keys", self.npy("same", np.array([7, 8, -9, 8]))):
                'rows 1 and 3 have the same key "8"',
            (self.npy("good", good), "--keys", folder / "same.txt"): 'lines 2 and 4 have the same key "b"',
            (self.npy("none", good[:0]),): "nothing to load",
            (folder / "absent.npy",): "No such file",
            (path, "--tensor", "c"): 'there is no tensor "c"',
        }.items():
            self.assertIn(says, self.ctl("load", *words, "--space", "films", code=1))
        codes = self.npy("codes", np.array([[1, 2], [3, 16]]))
        self.assertIn("row 1: code 1 is 16; space coded has sub-items 0 to 15",
                      self.ctl("load", codes, "--space", "coded", code=1))
        self.assertIn("space coded needs codes", self.ctl("load", folder / "good.npy", "--space", "coded", code=1))
        self.assertIn("--tensor NAME", self.ctl("load", path, "--space", "films", code=2))
        self.assertIn("say which: --space NAME, of films, coded", self.ctl("load", folder / "good.npy", code=2))
        self.assertIn('no space "x"', self.ctl("load", folder / "good.npy", "--space", "x", code=2))
        self.assertIn("are for a .npy", self.ctl("load", "-", "--space", "films", code=2, input=""))
        self.assertIn("read again", self.ctl("load", "-", "--resume", folder / "r", code=2, input=""))
        self.assertEqual(len(written()), before)


class Resumed(Loads):
    def kill_when_some_are_sent(self, words, resume):
        with subprocess.Popen([harness.build_dir() / "sluicectl", "--config", daemon.config_path, *map(str, words)],
                              stderr=subprocess.DEVNULL) as process:
            try:
                eventually(lambda: resume.exists() and sum(self.bits(resume)) >= 20, "twenty rows", 60)
                self.assertIsNone(process.poll(), "it ended before it was killed")
            finally:
                process.send_signal(signal.SIGKILL)

    @staticmethod
    def bits(resume):
        return np.unpackbits(np.frombuffer(resume.read_bytes()[4096:], np.uint8), bitorder="little")

    def check(self, name, path, n, more):
        resume = folder / f"{name}.resume"
        words = ["load", path, "--resume", resume, *more]
        self.kill_when_some_are_sent([*words, "--rate", "100"], resume)
        noted = np.flatnonzero(self.bits(resume))
        said = self.ctl(*words)
        self.assertIn(f"{len(noted):,} were there from an earlier run", said)
        sent = [key for key in written() if key.startswith(f"{name}-")]
        self.assertEqual(set(sent), {f"{name}-{i}" for i in range(n)})
        for row in noted:
            self.assertEqual(sent.count(f"{name}-{row}"), 1)
        self.assertIn("sent 0 records", self.ctl(*words))

    def test_an_array_goes_on_after_kill_9(self):
        path = self.npy("large", rng.standard_normal((3000, 3)).astype(np.float32))
        self.check("array", path, 3000, ["--space", "films", "--key-prefix", "array-"])
        self.assertIn("it has", self.ctl("load", path, "--resume", folder / "array.resume", "--space", "films",
                                         "--key-prefix", "other-", code=1))

    def test_lines_go_on_after_kill_9(self):
        path = folder / "lines.jsonl"
        path.write_text("".join(json.dumps({"key": f"line-{i}", "value": {"parts": {"films": {"vector": [i, 0, 1]}}}})
                                + "\n" for i in range(3000)))
        self.check("line", path, 3000, [])

    def test_the_lines_of_another_file_are_counted_rightly(self):
        lines = [json.dumps({"key": f"few-{i}", "value": {}}) for i in range(3)]
        path, resume = folder / "few.jsonl", folder / "few.resume"
        resume.write_bytes(b"another")
        for text in ("\n".join(lines), "\n".join(lines) + "\n"):
            path.write_text(text)
            said = self.ctl("load", path, "--resume", resume, code=1)
            self.assertIn("is not of this load, which has 3 lines: name another file", said)

    def test_a_file_that_has_grown_is_not_resumed(self):
        path, resume = folder / "grown.jsonl", folder / "grown.resume"
        line = json.dumps({"key": "grown", "value": None}) + "\n"
        for n in (1, 2, 20):
            path.write_text(line * n)
            if n == 1:
                self.ctl("load", path, "--resume", resume)
                continue
            said = self.ctl("load", path, "--resume", resume, code=1)
            self.assertIn(f"({len(line)} bytes then, {n * len(line)} bytes now): if all was sent then, load what was",
                          said)

    def test_standard_input_cannot_be_resumed_even_if_it_is_a_file(self):
        path = folder / "input.jsonl"
        path.write_text(json.dumps({"key": "input", "value": {}}))
        with path.open(encoding="utf-8") as stdin:
            said = self.ctl("load", "-", "--resume", folder / "input.resume", code=2, stdin=stdin)
        self.assertIn("--resume needs a file that can be read again, not standard input or a pipe", said)


if __name__ == "__main__":
    data.main()
