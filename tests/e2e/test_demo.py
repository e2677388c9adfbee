#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the demo, with small catalogues, on the embedded broker and on Kafka."""

import base64
import json
import os
import re
import subprocess
import tempfile
import unittest
from datetime import datetime
from pathlib import Path

import numpy as np

import data
import harness
import models
import real_broker
import wire
from wire import pb

N_ITEMS, N_QUERIES = 400, 6
DIM = 256      # of the vectors that the example makes
N_GROUPS = 60  # of packages that are related
ASKED = ("gimp", "firefox-esr", "postgresql", "python3-numpy", "nginx")  # packages that the demo asks about


class Shards(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-demo-")
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.folder = self.work / "data"
        self.folder.mkdir()
        self.rng = data.generator("demo")
        models.random_mol(self.rng, self.folder / "packages-mol.safetensors")
        models.random_recjpq(self.rng, self.folder / "packages-pq.safetensors", m=8, b=64, d=64)

    def write_data(self):
        """The files that the example writes for the demo, with random numbers."""
        spaces = {"packages": models.load(self.folder / "packages-mol.safetensors"),
                  "packages-pq": models.load(self.folder / "packages-pq.safetensors")}
        mol, pq = spaces.values()
        with open(self.folder / "items.jsonl", "w", encoding="utf-8") as out:
            for i in range(N_ITEMS):
                parts = {"packages": {"vector": self.rng.standard_normal(mol.dx).round(4).tolist()},
                         "packages-pq": {"codes": self.rng.integers(0, 64, 8).tolist()}}
                out.write(json.dumps({"key": f"package-{i}", "value": {"parts": parts}}) + "\n")
        with open(self.folder / "queries.jsonl", "w", encoding="utf-8") as out:
            for i in range(N_QUERIES):
                space, n = (("packages", mol.dq), ("packages-pq", pq.d))[i % 2]
                out.write(json.dumps({"id": f"query {i}", "space": space, "k": 8,
                                      "vector": self.rng.standard_normal(n).round(4).tolist()}) + "\n")

    def check_demo(self, n, *options):
        self.write_data()
        command = [data.ROOT / "ops" / "demo", "--shards", str(n), *options, "--prepared", harness.build_dir(),
                   self.work]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300 * harness.SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in (f"{N_QUERIES} queries: one daemon and {n} shards give the same hits, scores and receipts",
                     f"with allow_partial: {n - 1} of {n} shards have answered, exact: false",
                     f"{N_QUERIES} queries at once are all answered",
                     "all have stopped cleanly, with status 0", "demo: everything worked"):
            self.assertIn(line, done.stdout)
        victim = re.search(r"shard-([0-9]), which has the best hit, is killed", done.stdout)[1]
        self.assertIn(f"error PARTIAL: shard {victim} has not answered in time (the shards are 0 to {n - 1})",
                      done.stdout)

    def test_it_shows_the_same_answers_and_what_is_said_when_processes_die(self):
        self.check_demo(4)

    def test_it_shows_the_same_with_a_kafka_of_its_own(self):
        real_broker.require()
        self.check_demo(2, "--kafka")
        self.assertFalse((self.work / "kafka").exists(), "the broker's data is still there")

    def test_a_layout_that_it_cannot_show_is_refused(self):
        for words, reason in ((["--shards", "1"], "from 2 to 16"), (["--shards", "4", "--keep"], "do not go together")):
            done = subprocess.run([data.ROOT / "ops" / "demo", *words], capture_output=True, text=True,
                                  timeout=60 * harness.SLOWNESS)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(reason, done.stderr)


class Rollout(unittest.TestCase):
    """The whole demo, with a second model."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-demo-")
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.data = self.work / "data"
        self.data.mkdir()
        self.rng = data.generator("rollout demo")
        self.names = [*ASKED, *(f"package-{i}" for i in range(N_ITEMS - len(ASKED)))]
        self.vectors = self.rng.standard_normal((N_ITEMS, DIM)).astype("<f2")
        models.random_mol(self.rng, self.data / "packages-mol.safetensors", dq=DIM, dx=DIM, uid_hash=())
        models.random_recjpq(self.rng, self.data / "packages-pq.safetensors", m=8, b=64, d=64)
        self.write_items()
        self.write_queries()
        (self.data / "summaries.tsv").write_text("".join(f"{name}\tthe package {name}\n" for name in self.names))
        (self.work / "of_Packages").write_text("".join(f"Package: {name}\nProvides: group-{i % N_GROUPS}\n\n"
                                                       for i, name in enumerate(self.names)))

    def write_items(self):
        with open(self.data / "items.jsonl", "w", encoding="utf-8") as out:
            for i, (name, row) in enumerate(zip(self.names, self.vectors)):
                vector = {"type": "F16", "data": base64.b64encode(row.tobytes()).decode()}
                value = {"parts": {"packages": {"vector": vector},
                                   "packages-pq": {"codes": self.rng.integers(0, 64, 8).tolist()}},
                         "attributes": self.attributes(i)}
                out.write(json.dumps({"key": name, "value": value}, separators=(",", ":")) + "\n")

    @staticmethod
    def attributes(i):
        return {"section": ("graphics", "web")[i % 2], "size": 200_000 * i,
                "priority": ("optional", "required", "extra")[i % 3]}

    def write_queries(self):
        with open(self.data / "queries.jsonl", "w", encoding="utf-8") as out:
            for name in ASKED:
                for space, tag, n in (("packages", "mol", DIM), ("packages-pq", "pq", 64)):
                    query = {"id": f"packages like {name} ({tag})", "space": space, "k": 8, "exclude": [name],
                             "vector": self.rng.standard_normal(n).round(4).tolist()}
                    out.write(json.dumps(query, separators=(",", ":")) + "\n")

    def check_answer(self, answers, model, generation):
        """The demo's question before or after the rollout was answered by this generation, with its best hits."""
        answer = json.loads((self.work / answers).read_text())
        model = models.load(self.data / model)
        query = json.loads((self.data / "queries.jsonl").read_text().splitlines()[0])
        rows = [model.row_of(pb.Part(vector=wire.vector(row.astype(np.float32)))) for row in self.vectors]
        scores = model.scores(pb.Query(vector=wire.vector(np.array(query["vector"], np.float32))), np.array(rows))
        got = [scores[self.names.index(hit["key"])] for hit in answer["hits"]]
        self.assertEqual(answer.get("generation", 1), generation)
        np.testing.assert_allclose(got, np.sort(scores[1:])[:-9:-1], atol=1e-3)  # gimp, the first, is excluded

    def hits(self, answers):
        return [hit["key"] for hit in json.loads((self.work / answers).read_text())["hits"]]

    def check_filters(self):
        """Only small packages that the filter admits are hits, then without the two that were seen or have expired."""
        filtered, left = self.hits("filtered.jsonl"), self.hits("left.jsonl")
        admitted = [name for i, name in enumerate(self.names) if i % 2 == 0 and i % 3 != 1 and 200_000 * i < 5_000_000]
        self.assertEqual(sorted(filtered), sorted(set(admitted) - {"gimp"}))
        self.assertEqual(left, filtered[2:])

    def check_load(self, printed):
        """Queries were asked from before the second model came until after the last switch, and all were answered."""
        log = (self.work / "sluiced.log").read_text()
        times = [datetime.fromisoformat(line.split()[0]) for line in log.splitlines()
                 if " event=model_switched " in line or "packages@2 phase=loading" in line]
        self.assertEqual([line.rpartition(" to=")[2] for line in log.splitlines() if "event=model_switched" in line],
                         ["2", "1", "2"])
        n, took, unit = re.search(r"sent +([0-9,]+) in ([0-9.,]+) (m?s)", printed).groups()
        self.assertIn(f"answered  {n}; 0 with an error; 0 open or missing at the end", printed)
        self.assertGreater(float(took.replace(",", "")) / (1000 if unit == "ms" else 1),
                           (times[-1] - times[0]).total_seconds())

    def test_a_second_model_is_trained_and_switched_to_and_no_query_is_lost(self):
        command = [data.ROOT / "ops" / "demo", "--rollout", "--prepared", harness.build_dir(), self.work]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300 * harness.SLOWNESS,
                              env={**os.environ, "APT_LISTS": str(self.work)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_answer("former.jsonl", "packages-mol.safetensors", 1)
        self.check_answer("latter.jsonl", "packages-mol-2.safetensors", 2)
        self.check_load(done.stdout)
        self.check_filters()


if __name__ == "__main__":
    data.main()
