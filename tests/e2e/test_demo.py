#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the demo of shards, with a small catalogue and the embedded broker."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import data
import harness
import models

N_ITEMS, N_QUERIES, N_SHARDS = 400, 6, 4


class Shards(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-demo-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
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

    def test_it_shows_the_same_answers_and_what_is_said_when_processes_die(self):
        self.write_data()
        command = [data.ROOT / "ops" / "demo_shards.py", "--shards", str(N_SHARDS), "--build", harness.build_dir(),
                   "--data", self.folder, "--work", self.folder / "work"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300 * harness.SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in (f"{N_QUERIES} queries: one daemon and {N_SHARDS} shards give the same hits, scores and receipts",
                     f"with allow_partial: 3 of {N_SHARDS} shards have answered, exact: false",
                     f"{N_QUERIES} queries at once are all answered",
                     "all have stopped cleanly, with status 0"):
            self.assertIn(line, done.stdout)
        victim = re.search(r"shard-([0-9]), which has the best hit, is killed", done.stdout)[1]
        self.assertIn(f"error PARTIAL: shards {victim} of {N_SHARDS} have not answered", done.stdout)

    def test_a_layout_that_it_cannot_show_is_refused(self):
        for words, reason in ((["--shards", "1"], "from 2 to 16"), (["--shards", "4", "--keep"], "do not go together")):
            done = subprocess.run([data.ROOT / "ops" / "demo", *words], capture_output=True, text=True,
                                  timeout=60 * harness.SLOWNESS)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    data.main()
