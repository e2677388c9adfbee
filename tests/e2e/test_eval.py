#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of sluicectl eval.

Answers are compared with the reference implementation and with double precision, and receipts with brute force.
Files that cannot be used must give an error that says why.
"""

import collections
import json
import os
import re
import resource
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

import data
import filters
import models
import safetensors_io
import wire
from oracle import Oracle
from wire import pb

CTL = Path(os.environ.get("SLUICE_BUILD") or data.ROOT / "build" / "dev") / "sluicectl"
# Maximum score error against double precision, as tests/golden/README.md suggests for Mixture-of-Logits.
TOLERANCE = 1e-4


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-eval-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.rng = data.generator(self.id())

    def write(self, name, tensors, metadata=None, types=None):
        path = self.folder / name
        safetensors_io.write(path, tensors, metadata or {}, types)
        return path

    def run_eval(self, model, items, queries, *arguments):
        return subprocess.run([CTL, "eval", "--model", model, "--items", items, "--queries", queries,
                               *map(str, arguments)], capture_output=True, text=True, timeout=300)

    def evaluate(self, model, items, queries, *arguments):
        done = self.run_eval(model, items, queries, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def answers(self, model, items, queries, method, k, *arguments):
        """Run eval, and return the tensors of its answer file."""
        output = self.folder / "answers.safetensors"
        self.evaluate(model, items, queries, "--method", method, "-k", k, "--output", output, *arguments)
        tensors, metadata = safetensors_io.read(output)
        self.assertEqual(metadata["model"], str(model))
        self.assertEqual(metadata["k"], str(k))
        self.assertEqual({name: (tensor.dtype, tensor.ndim) for name, tensor in tensors.items()},
                         {"top_ids": (np.int64, 2), "top_scores": (np.float32, 2), "exact": (np.uint8, 1),
                          "bound": (np.float32, 1)})
        self.assertEqual(tensors["top_ids"].shape[1], k)
        return tensors

    def assert_receipts(self, answers, ids, scores, tolerance):
        """Check each query's receipt. scores [queries, items]: the scores of all items in double precision."""
        row_of = {int(item): row for row, item in enumerate(ids)}
        for q, found in enumerate(answers["top_ids"]):
            rows = np.array([row_of[int(item)] for item in found if item != -1], int)
            left = np.delete(scores[q], rows)
            self.assertEqual(len(set(rows)), len(rows))
            np.testing.assert_allclose(answers["top_scores"][q][:len(rows)], scores[q][rows], rtol=0, atol=tolerance)
            self.assertTrue(np.all(answers["top_scores"][q][len(rows):] == -np.inf))
            self.assertTrue(np.all(found[len(rows):] == -1))
            if len(left):
                self.assertLessEqual(left.max(), answers["bound"][q] + tolerance)
            else:
                self.assertEqual(answers["bound"][q], -np.inf)
            if answers["exact"][q]:
                self.assertEqual(len(rows), min(len(found), len(ids)))
                best = -np.sort(-scores[q])[:len(rows)]
                np.testing.assert_allclose(np.sort(scores[q][rows])[::-1], best, rtol=0, atol=2 * tolerance)


class Golden(Case):
    def setUp(self):
        super().setUp()
        self.folders = {name: data.golden_dir() / name for name in ("books", "small_uid", "edge")}

    def load(self, name):
        folder = self.folders[name]
        return (folder / "weights.safetensors", folder / "inputs.safetensors",
                safetensors_io.read(folder / "inputs.safetensors")[0],
                safetensors_io.read(folder / "expected.safetensors")[0])

    def test_exact_finds_what_the_reference_finds(self):
        for name in ("books", "small_uid"):
            model, path, inputs, expected = self.load(name)
            for method in ("exact", "brute_force"):
                answers = self.answers(model, path, path, method, 100)
                np.testing.assert_array_equal(answers["top_ids"], expected["top_ids"])
                self.assertTrue(np.all(answers["exact"] == 1))
                self.assert_receipts(answers, inputs["item_ids"], expected["phi_f64"], TOLERANCE)

    def test_average_finds_what_the_reference_finds(self):
        for name in ("books", "small_uid"):
            model, path, inputs, expected = self.load(name)
            answers = self.answers(model, path, path, "average(200)", 100)
            np.testing.assert_array_equal(answers["top_ids"], inputs["item_ids"][expected["avg_top_pos"]])
            self.assert_receipts(answers, inputs["item_ids"], expected["phi_f64"], TOLERANCE)

    def test_edge_equals_the_reference_up_to_ties(self):
        model, path, inputs, expected = self.load("edge")
        ids = inputs["item_ids"]
        for method in ("exact", "average(60)", "average(119)", "average(120)", "average(4000)"):
            answers = self.answers(model, path, path, method, 50)
            self.assert_receipts(answers, ids, expected["phi_f64"], TOLERANCE)
            if method in ("exact", "average(120)", "average(4000)"):  # all items are candidates
                self.assertTrue(np.all(answers["exact"] == 1))
                np.testing.assert_allclose(answers["top_scores"], expected["top_phi_f64"], rtol=0, atol=TOLERANCE)
            for found, scores in zip(answers["top_ids"], answers["top_scores"]):
                order = np.lexsort((found, -scores))
                np.testing.assert_array_equal(found, found[order])  # ties are ordered by id

    def test_answers_do_not_depend_on_batch_threads_or_arithmetic(self):
        model, path, _, _ = self.load("small_uid")
        files = []
        for method, more in (("exact", [["--isa", "ref"]]), ("average(70)", []), ("brute_force", []), ("two_pass", []),
                             ("per_embedding(20)", []), ("combined(10,40)", [])):
            for options in ([], ["--batch", 1], ["--batch", 3, "--threads", 3], ["--threads", 3, "--batch", 1],
                            ["--batch", 1000, "--threads", 40], ["--threads-per-search", 1],
                            ["--threads-per-search", 2, "--batch", 1000], ["--threads-per-search", 3],
                            ["--threads", 2, "--threads-per-search", 2, "--batch", 7], *more):
                self.answers(model, path, path, method, 64, *options)
                files.append((self.folder / "answers.safetensors").read_bytes())
            self.assertEqual(len(set(files)), 1, method)
            files.clear()

    def test_queries_without_user_ids_are_told_of(self):
        model, path, inputs, _ = self.load("small_uid")
        queries = self.write("q", {"query_embeddings": inputs["query_embeddings"]})
        done = self.evaluate(model, path, queries)
        self.assertIn('no tensor "user_ids"', done.stderr)
        self.assertNotIn("user_ids", self.evaluate(model, path, path).stderr)
        books, books_path, books_inputs, _ = self.load("books")
        queries = self.write("q", {"query_embeddings": books_inputs["query_embeddings"],
                                   "user_ids": np.zeros(3, np.float32)})  # this model ignores it, whatever its type
        self.assertEqual(self.evaluate(books, books_path, queries).stderr, "")

    def test_embeddings_may_be_of_any_floating_type(self):
        model, path, inputs, _ = self.load("books")
        ids, x = inputs["item_ids"], inputs["item_embeddings"]
        bits = safetensors_io.f32_to_bf16(x)
        for stored, as_f32, types in ((x.astype(np.float64), x, None),
                                      (x.astype(np.float16), x.astype(np.float16).astype(np.float32), None),
                                      (bits, safetensors_io.bf16_to_f32(bits), {"item_embeddings": "BF16"})):
            safetensors_io.NAMES.setdefault(np.dtype("<u2"), "U16")
            items = self.write("i", {"item_ids": ids, "item_embeddings": stored}, types=types)
            plain = self.write("p", {"item_ids": ids, "item_embeddings": as_f32})
            one = self.answers(model, items, path, "exact", 30)
            other = self.answers(model, plain, path, "exact", 30)
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])

    def test_a_k_far_above_the_items_takes_no_memory(self):
        model, path, _, _ = self.load("books")
        done = self.evaluate(model, path, path, "--method", "exact", "-k", 10000000)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1 << 20)  # KiB, of the largest so far
        self.assertIn("have fewer than 10000000 hits (fewest: 500)", done.stdout)
        most, more = (self.answers(model, path, path, "exact", k) for k in (500, 503))
        np.testing.assert_array_equal(more["top_ids"], np.pad(most["top_ids"], ((0, 0), (0, 3)), constant_values=-1))
        np.testing.assert_array_equal(more["top_scores"],
                                      np.pad(most["top_scores"], ((0, 0), (0, 3)), constant_values=-np.inf))

    def test_the_table_compares_with_exact(self):
        model, path, _, _ = self.load("books")
        methods = ["average(60)", "average(150)", "average(500)"]
        arguments = [word for method in methods for word in ("--method", method)]
        done = self.evaluate(model, path, path, *arguments, "-k", 100)
        self.assertIn("exact is searched too", done.stderr)
        lines = done.stdout.splitlines()
        (head,) = [i for i, line in enumerate(lines) if line.startswith("method ")]
        self.assertEqual(re.findall(r"recall@\d+", lines[head]), ["recall@1", "recall@10", "recall@100"])
        self.assertNotIn("HR@", done.stdout)  # the files have no held-out items
        names = [line.split("  ")[0] for line in lines[head + 1:head + 5]]
        self.assertEqual(names[0], "exact")
        self.assertEqual(names[1:], methods)
        self.assertIn("average(60): 16 of 16 queries have fewer than 100 hits (fewest: 60)", done.stdout)
        self.assertNotIn("average(150):", done.stdout)
        self.assertTrue(lines[-1].startswith("Choose the fastest row"))

        done = self.evaluate(model, path, path, "--method", "exact", *arguments, "-k", 100, "--json", "--batch", 5)
        self.assertEqual(done.stderr, "")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["method"] for row in rows], ["exact"] + methods)
        exact = self.answers(model, path, path, "exact", 100)["top_ids"]
        for row in rows:
            found = self.answers(model, path, path, row["method"], 100)
            for n in (1, 10, 100):
                recall = np.mean([len(set(exact[q, :n]) & set(found["top_ids"][q, :n])) / n for q in range(len(exact))])
                self.assertAlmostEqual(row[f"recall_at_{n}"], recall)
            self.assertEqual(row["recall_at_k"], row["recall_at_100"])
            self.assertEqual([name for name in row if name.startswith("hr_")], [])
            self.assertAlmostEqual(row["proven_exact"], found["exact"].mean())
            self.assertEqual(row["short_queries"], int((found["top_ids"][:, -1] == -1).sum()))
            self.assertEqual((row["items"], row["queries"], row["batch"], row["threads"]), (500, 16, 5, 1))
            self.assertGreaterEqual(row["timed_batches"], 1)
            self.assertGreater(row["p95_ms"], 0)
            self.assertGreaterEqual(row["p95_ms"], row["median_ms"])
        self.assertEqual([row["candidates"] for row in rows[1:]], [60, 150, 500])

    def target_files(self):
        """Prepare a golden model with a held-out item for each query; some rank near the top and some far below."""
        model, path, inputs, expected = self.load("books")
        ids, scores = inputs["item_ids"], expected["phi_f64"]
        order = np.argsort(-scores, axis=1)
        places = self.rng.choice([0, 1, 3, 6, 20, 60, 99, 100, 300], len(order))
        targets = ids[order[np.arange(len(order)), places]]
        queries = self.write("targets", {"query_embeddings": inputs["query_embeddings"], "target_ids": targets})
        return model, path, queries, ids, scores, targets

    def test_hit_rates_are_those_of_numpy(self):
        model, path, queries, ids, scores, targets = self.target_files()
        methods = ["exact", "average(60)", "average(150)", "per_embedding(5)"]
        arguments = [word for method in methods for word in ("--method", method)]
        done = self.evaluate(model, path, queries, *arguments, "-k", 100, "--targets", "--json")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        # exact's hit rates follow from the double-precision scores, the other methods' from their answers.
        rank = (scores > scores[np.arange(len(targets)), np.searchsorted(ids, targets)][:, None]).sum(axis=1)
        exact = {n: np.mean(rank < n) for n in (1, 5, 10, 50, 100)}
        for row in rows:
            found = self.answers(model, path, queries, row["method"], 100)["top_ids"]
            for n, of_exact in exact.items():
                rate = np.mean((found[:, :n] == targets[:, None]).any(axis=1))
                if row["method"] == "exact":
                    self.assertAlmostEqual(rate, of_exact)
                self.assertAlmostEqual(row[f"hr_at_{n}"], rate)
                if of_exact:
                    self.assertAlmostEqual(row[f"hr_ratio_at_{n}"], rate / of_exact)
                else:
                    self.assertIsNone(row[f"hr_ratio_at_{n}"])
        table = self.evaluate(model, path, queries, *arguments, "-k", 100, "--targets").stdout
        (head,) = [line for line in table.splitlines() if "HR@1 " in line]
        columns = [word for n in exact for word in (f"HR@{n}", "ratio")]
        self.assertEqual(head.split(), ["method", *columns, "median", "ms"])
        (row,) = [line.split() for line in table.split(head)[1].splitlines()[:5] if line.startswith("average(150)")]
        self.assertEqual(row[1:11:2], [f"{rows[2][f'hr_at_{n}']:.3f}" for n in exact])
        self.assertIn("recall@100", table)

    def test_targets_that_are_no_items_are_refused(self):
        model, path, queries, ids, _, targets = self.target_files()
        vectors = safetensors_io.read(queries)[0]["query_embeddings"]
        stray = targets.copy()
        stray[5] = ids.max() + 1
        for change, words in ((None, ['no tensor "target_ids"', "I64 [queries]"]),
                              (stray, ['"target_ids"', f"row 5: item {stray[5]} is not among the items of {path}"]),
                              (targets[1:], ['"target_ids"', "[15]", "[16] is needed"]),
                              (targets.astype(np.int32), ['"target_ids"', "I32", "I64 can be used"])):
            tensors = {"query_embeddings": vectors, **({} if change is None else {"target_ids": change})}
            done = self.run_eval(model, path, self.write("q", tensors), "--targets")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            for word in words:
                self.assertIn(word, done.stderr)
            if change is not None:  # without --targets, eval ignores the tensor
                self.evaluate(model, path, self.folder / "q")

    def test_each_method_that_is_asked_for_has_a_row(self):
        model, path, _, _ = self.load("small_uid")
        for asked, shown in ((["average(9)"], ["exact", "average(9)"]),
                             (["average(9)", "exact"], ["average(9)", "exact"]),
                             (["exact", "average(9)", "exact", ""], ["exact", "average(9)", "exact", "exact"]),
                             ([], ["exact"])):
            arguments = [word for method in asked for word in ("--method", method)]
            done = self.evaluate(model, path, path, *arguments, "--json")
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([row["method"] for row in rows], shown)
            self.assertEqual([row["recall_at_k"] == 1 for row in rows], [name == "exact" for name in shown])
            self.assertEqual("exact is searched too" in done.stderr, "exact" not in asked and bool(asked))


class Recjpq(Case):
    """Tests with random catalogues. Item ids are arbitrary 64-bit numbers in any order."""

    def draw(self, n, centroids, n_queries=20):
        m, b, width = centroids.shape
        ids = self.rng.choice(2 ** 62, n, replace=False) * self.rng.choice([-2, 2], n)
        codes = self.rng.integers(0, b, (n, m)).astype(np.uint8)
        codes[n // 2:] = codes[self.rng.integers(0, n // 2 + 1, n - n // 2)]  # half of the items repeat others
        queries = np.round(self.rng.standard_normal((n_queries, m * width)) * 4).astype(np.float32) / 4
        model = self.write("m", {"centroids": centroids}, {"sluice.similarity": "recjpq"})
        items = self.write("i", {"item_ids": ids, "codes": codes,
                                 "item_embeddings": np.zeros((2, 2), np.float32)})  # a recjpq model ignores it
        table = np.einsum("mbw,qmw->qmb", centroids.astype(np.float64),
                          queries.astype(np.float64).reshape(n_queries, m, width))
        scores = sum(table[:, split, codes[:, split]] for split in range(m))
        return model, items, self.write("q", {"query_embeddings": queries}), ids, scores

    def assert_exact(self, n, centroids, k):
        model, items, queries, ids, scores = self.draw(n, centroids)
        for method in ("exact", "pqtopk", "prune(8)", "prune(1)"):
            answers = self.answers(model, items, queries, method, k)
            self.assertTrue(np.all(answers["exact"] == 1), method)
            self.assert_receipts(answers, ids, scores, 1e-4)
            yield answers, ids, scores

    def test_every_method_finds_the_best(self):
        centroids = self.rng.standard_normal((8, 256, 8)).astype(np.float32)
        for _ in self.assert_exact(9000, centroids, 100):
            pass

    def test_equal_scores_are_ordered_by_id(self):
        centroids = self.rng.integers(-2, 3, (4, 5, 3)).astype(np.float32)  # sums are exact, with many ties
        for answers, ids, scores in self.assert_exact(5000, centroids, 40):
            for q, found in enumerate(answers["top_ids"]):
                np.testing.assert_array_equal(found, ids[np.lexsort((ids, -scores[q]))[:40]])

    def test_fewer_items_than_k_give_what_there_is(self):
        centroids = self.rng.standard_normal((2, 7, 4)).astype(np.float32)
        for answers, ids, _ in self.assert_exact(9, centroids, 30):
            self.assertTrue(np.all((answers["top_ids"] != -1).sum(axis=1) == len(ids)))
        done = self.evaluate(*(self.folder / name for name in "miq"), "-k", 30)
        self.assertIn("because there are only 9 items to find", done.stdout)


class Refused(Case):
    """Tests of unusable files. Each gets a line with the file, the tensor and the remedy, and nothing is written."""

    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        models.random_mol(self.rng, self.model, dq=6, dx=5)
        self.items = {"item_ids": np.arange(7), "item_embeddings": np.ones((7, 5), np.float32)}
        self.queries = {"query_embeddings": np.ones((3, 6), np.float32), "user_ids": np.arange(3)}

    def assert_refused(self, files, arguments, code, *words):
        output = self.folder / "out"
        done = self.run_eval(*files, *arguments, "--output", output)
        said = [line for line in done.stderr.splitlines() if "exact is searched" not in line]
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(said), 1 if code == 1 else 2, done.stderr)
        for word in words:
            self.assertIn(word, said[0])
        self.assertFalse(output.exists())
        self.assertEqual(done.stdout, "")

    def test_items(self):
        queries = self.write("queries", self.queries)
        nan = np.ones((7, 5), np.float32)
        nan[4, 2] = np.nan
        far = np.ones((7, 5))
        far[6, 0] = 1e300
        rows = [
            ({"item_ids": None}, ['no tensor "item_ids"', "I64 [items]"]),
            ({"item_embeddings": None}, ['no tensor "item_embeddings"', "F32 [items, dimension]"]),
            ({"item_ids": np.arange(7, dtype=np.int32)}, ['"item_ids"', "I32", "I64 can be used"]),
            ({"item_ids": np.arange(7, dtype=np.float32)}, ['"item_ids"', "F32", "I64 can be used"]),
            ({"item_ids": np.arange(6)}, ['"item_embeddings"', "[7, 5]", "6 items"]),
            ({"item_ids": np.arange(7)[:, None]}, ['"item_ids"', "shape [items]"]),
            ({"item_ids": np.arange(0)}, ['"item_ids"', "at least one item"]),
            ({"item_ids": np.array([5, 9, -3, 2, 9, 1, 0])}, ['"item_ids"', "rows 1 and 4", "item 9"]),
            ({"item_ids": np.zeros(7, np.int64)}, ['"item_ids"', "rows 0 and 1", "item 0"]),
            ({"item_embeddings": np.ones((7, 5), np.uint8)}, ['"item_embeddings"', "U8", "F32, F64, F16 or BF16"]),
            ({"item_embeddings": np.ones(35, np.float32)}, ['"item_embeddings"', "[35]", "a row for each item"]),
            ({"item_embeddings": np.ones((7, 4), np.float32)}, ['"item_embeddings"', "row 0", "4 numbers", "needs 5"]),
            ({"item_embeddings": np.ones((7, 0), np.float32)}, ['"item_embeddings"', "row 0", "5 numbers are needed"]),
            ({"item_embeddings": nan}, ['"item_embeddings"', "row 4 (item 4)", "number 2 is nan"]),
            ({"item_embeddings": far}, ['"item_embeddings"', "row 6 (item 6)", "number 0 is inf"]),
        ]
        for change, words in rows:
            with self.subTest(words):
                tensors = {name: tensor for name, tensor in {**self.items, **change}.items() if tensor is not None}
                items = self.write("items", tensors)
                self.assert_refused((self.model, items, queries), [], 1, str(items), *words)

    def test_queries(self):
        items = self.write("items", self.items)
        endless = np.ones((3, 6), np.float32)
        endless[1, 5] = np.inf
        rows = [
            ({"query_embeddings": None}, ['no tensor "query_embeddings"', "F32 [queries, dimension]"]),
            ({"query_embeddings": np.ones((3, 6), np.int64)}, ['"query_embeddings"', "I64", "F32, F64, F16 or BF16"]),
            ({"query_embeddings": np.ones((3, 7), np.float32)},
             ['"query_embeddings"', "row 0", "7 numbers", "needs 6"]),
            ({"query_embeddings": np.ones((0, 6), np.float32)}, ['"query_embeddings"', "at least one query"]),
            ({"query_embeddings": np.ones(6, np.float32)}, ['"query_embeddings"', "shape [queries, dimension]"]),
            ({"query_embeddings": endless}, ['"query_embeddings"', "row 1", "number 5 is inf"]),
            ({"user_ids": np.arange(3, dtype=np.int32)}, ['"user_ids"', "I32", "I64 can be used"]),
            ({"user_ids": np.arange(4)}, ['"user_ids"', "[4]", "[3] is needed"]),
        ]
        for change, words in rows:
            with self.subTest(words):
                tensors = {name: tensor for name, tensor in {**self.queries, **change}.items() if tensor is not None}
                queries = self.write("queries", tensors)
                self.assert_refused((self.model, items, queries), [], 1, str(queries), *words)

    def test_models_and_codes(self):
        items, queries = self.write("items", self.items), self.write("queries", self.queries)
        strange = self.write("strange", {"v": np.ones(3, np.float32)}, {"sluice.similarity": "nearest"})
        nameless = self.write("nameless", {"v": np.ones(3, np.float32)})
        empty = self.write("empty", {}, {"sluice.similarity": "recjpq"})
        pq = self.write("pq", {"centroids": np.ones((3, 4, 2), np.float32)}, {"sluice.similarity": "recjpq"})
        short = self.folder / "short"
        short.write_bytes(self.model.read_bytes()[:-9])
        self.assert_refused((strange, items, queries), [], 1, str(strange), '"nearest"', "recjpq")
        self.assert_refused((nameless, items, queries), [], 1, str(nameless), '"sluice.similarity"', "set it to")
        self.assert_refused((short, items, queries), [], 1, str(short), "cut short")
        self.assert_refused((self.folder / "absent", items, queries), [], 1, "absent", "No such file")
        self.assert_refused((self.folder, items, queries), [], 1, "is not a regular file")
        self.assert_refused((self.model, self.folder / "absent", queries), [], 1, "absent", "No such file")
        self.assert_refused((pq, items, queries), [], 1, str(items), 'no tensor "codes"', "U8 [items, splits]")
        for codes, words in ((np.ones((7, 2), np.uint8), ["row 0", "2 sub-items", "needs 3"]),
                             (np.full((7, 3), 4, np.uint8), ["row 0", "code 0 is 4", "0 to 3"]),
                             (np.ones((7, 3), np.int64), ["I64", "U8 can be used"])):
            coded = self.write("coded", {"item_ids": np.arange(7), "codes": codes})
            self.assert_refused((pq, coded, queries), [], 1, str(coded), '"codes"', *words)
        self.assert_refused((empty, self.write("coded", {"item_ids": np.arange(7), "codes": np.ones((7, 3), np.uint8)}),
                             queries), [], 1, str(empty), '"centroids"')

    def test_more_items_than_the_machine_can_hold(self):
        models.random_mol(self.rng, self.model, pq=1, px=64, d=2048, dq=2, dx=2, uid_hash=(), query_hidden=-1,
                          gating=(1, 1, 1))  # 1 MB per item, in each of two arenas
        n = 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 ** 20
        items = self.write("items", {"item_ids": np.arange(n), "item_embeddings": np.ones((n, 2), np.float16)})
        queries = self.write("queries", {"query_embeddings": np.ones((1, 2), np.float32)})
        self.assert_refused((self.model, items, queries), [], 1, str(items), f"its {n:,} items cannot be held")

    def test_command_lines(self):
        files = (self.model, self.write("items", self.items), self.write("queries", self.queries))
        self.assert_refused(files, ["--method", "nearest(3)"], 1, '"nearest(3)"', "average(N)")
        self.assert_refused(files, ["--method", "average("], 1, "average(", "name(N)")
        self.assert_refused(files, ["--method", "exact", "--method", "average(3)"], 2, "--output", "one method")
        for option, value in (("-k", "0"), ("-k", "-1"), ("-k", "x"), ("--batch", "0"), ("--threads", "0"),
                              ("--threads-per-search", "0"), ("--isa", "sse"), ("--method", "exact stray")):
            if option == "--method":
                self.assert_refused(files, ["stray"], 2, "stray")
            else:
                self.assert_refused(files, [option, value], 2, option, f'"{value}"')
        for missing in ("--model", "--items", "--queries"):
            words = [word for option, path in zip(("--model", "--items", "--queries"), files) if option != missing
                     for word in (option, str(path))]
            done = subprocess.run([CTL, "eval", *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{missing} is missing", done.stderr)

    def test_an_output_that_cannot_be_written_is_refused_at_once(self):
        files = (self.model, self.write("items", self.items), self.write("queries", self.queries))
        for output in (self.folder, self.folder / "absent" / "o", "/dev/null"):
            done = self.run_eval(*files, "--output", output)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{output} cannot be written", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_attributes_that_have_no_end_are_refused(self):
        files = (self.model, self.write("items", self.items), self.write("queries", self.queries))
        for path, says in (("/dev/zero", "is neither a regular file nor a pipe"), (self.folder / "absent", "No such file")):
            self.assert_refused(files, ["--attributes", path, "--attribute", "price:number"], 1, f"{path} ", says)

    def test_an_output_that_is_an_input_is_refused_and_left_alone(self):
        files = (self.model, self.write("items", self.items), self.write("queries", self.queries))
        lines = self.folder / "lines"
        lines.write_text('{"id": 1, "attributes": {"price": 2}}\n')
        for link, what, path in zip((None, os.link, os.symlink, os.link), ("model", "items", "queries", "attributes"),
                                    (*files, lines)):
            output, before = path, path.read_bytes()
            if link:
                output = self.folder / f"link-to-{what}"
                link(path, output)
            done = self.run_eval(*files, "--attributes", lines, "--attribute", "price:number", "--output", output)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--output: {output} has the {what}: name another file", done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(path.read_bytes(), before)


class Filters(Case):
    """eval with a filter, compared with an evaluator in Python and with double precision."""

    N = 3000

    def setUp(self):
        super().setUp()
        self.draw = filters.Draw(self.rng)
        self.types = [word for name, kind in filters.TYPES.items() for word in ("--attribute", f"{name}:{kind}")]
        self.ids = np.sort(self.rng.choice(2 ** 40, self.N, replace=False)) - 2 ** 39
        self.rng.shuffle(self.ids)
        self.attributes = {int(i): self.draw.attributes() for i in self.ids if self.rng.random() < 0.9}

    def write_attributes(self, lines=None):
        path = self.folder / "attributes.jsonl"
        if lines is None:
            lines = [json.dumps({"id": i, "attributes": attributes}, ensure_ascii=bool(self.rng.random() < 0.5))
                     for i, attributes in self.attributes.items()]
            self.rng.shuffle(lines)
        path.write_text("\n".join(lines) + "\n")
        return path

    def files(self, similarity):
        """Return a random model, items and queries, and the scores. The same for Python: self.model, rows, queries."""
        path, more = self.folder / "model", {}
        if similarity == "recjpq":
            models.random_recjpq(self.rng, path, b=64)
            items = {"codes": self.rng.integers(0, 64, (self.N, 8), np.uint8)}
        else:
            items = {"item_embeddings": self.rng.standard_normal((self.N, 64)).astype(np.float32)}
            if similarity == "mol":
                models.random_mol(self.rng, path, dq=64, dx=64)
                more = {"user_ids": self.rng.integers(0, 1000, 10)}
            else:
                models.random_vectors(self.rng, path, similarity, 64)
        queries = self.rng.standard_normal((10, 64)).astype(np.float32)
        self.model = models.load(path)
        parts = ([pb.Part(codes=row.tobytes()) for row in items["codes"]] if "codes" in items else
                 [pb.Part(vector=wire.vector(row)) for row in items["item_embeddings"]])
        self.rows = np.array([self.model.row_of(part) for part in parts])
        self.queries = [pb.Query(vector=wire.vector(query)) for query in queries]
        for query, user in zip(self.queries, more.get("user_ids", ())):
            query.user_id = user
        return (path, self.write("items", {"item_ids": self.ids, **items}),
                self.write("queries", {"query_embeddings": queries, **more}),
                np.array([self.model.scores(query, self.rows) for query in self.queries]))

    def at_most(self, n, attribute, scores, k):
        """Return the scores of the k best items of which at most n have the same value, best first."""
        counts, found = collections.Counter(), []
        for i in np.argsort(-scores):
            value = self.attributes.get(int(self.ids[i]), {}).get(attribute)
            counts[value] += value is not None
            if counts[value] <= n:
                found.append(scores[i])
        return found[:k]

    def test_at_most_n_hits_of_a_value(self):
        path = self.write_attributes()
        for similarity in ("dot", "recjpq"):
            *files, scores = self.files(similarity)
            for attribute, n in (("seller", 1), ("country", 3), ("available", 2)):
                more = ["--max-per", f"{attribute}:{n}", "--attributes", path, *self.types]
                with self.subTest(similarity=similarity, attribute=attribute):
                    found = self.answers(*files, "exact", 50, *more)
                    self.assertTrue(np.all(found["exact"] == 1))
                    for got, row in zip(found["top_scores"], scores):
                        due = self.at_most(n, attribute, row, 50)
                        np.testing.assert_allclose(got[:len(due)], due, rtol=0, atol=2e-6 * np.abs(scores).max())
                        self.assertTrue(np.all(np.isneginf(got[len(due):])))
        out = self.evaluate(*files, *more).stdout
        self.assertIn("limit    at most 2 hits with the same available\n", out)
        row = json.loads(self.evaluate(*files, *more, "--json").stdout.splitlines()[0])
        self.assertEqual(row["max_per"], {"attribute": "available", "n": 2})

    def test_a_least_score(self):
        for similarity, methods in (("dot", ("exact",)), ("recjpq", ("exact", "prune_limited(4,2)"))):
            *files, scores = self.files(similarity)
            least = float(np.float32(np.sort(scores[0])[-20]))
            tolerance = 2e-6 * np.abs(scores).max()
            for method in methods:
                with self.subTest(similarity=similarity, method=method):
                    found = self.answers(*files, method, 50, "--min-score", repr(least))
                    self.assertTrue(np.all((found["top_scores"] >= least) | np.isneginf(found["top_scores"])))
                    if method != "exact":
                        continue
                    n_hits = (found["top_ids"] != -1).sum(axis=1)
                    for n, row in zip(n_hits, scores):
                        self.assertTrue(min(50, (row > least + tolerance).sum()) <= n)
                        self.assertTrue(n <= (row > least - tolerance).sum())
                    self.assertIn(n_hits[0], (19, 20, 21))
        out = self.evaluate(*files, "--min-score", repr(least), "-k", "50").stdout
        self.assertIn("limit    no hit scores below 0.7\n", self.evaluate(*files, "--min-score", "0.7").stdout)
        row = json.loads(self.evaluate(*files, "--min-score", "0.75", "--json").stdout.splitlines()[0])
        self.assertEqual(row["min_score"], 0.75)
        self.assertIn("because no others can be: --max-per, --min-score or the filter", out)
        done = self.run_eval(*files, "--min-score", "high")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--min-score expects a number", done.stderr)

    def assert_differ(self, query, ids, scores, chosen, diversity):
        """Each hit must be worth as much as any candidate that was left when it was chosen.

        ids, scores  of the candidates, best first
        """
        row_of = {int(item): row for row, item in enumerate(self.ids)}
        vectors = self.model.vectors(self.rows[[row_of[int(item)] for item in ids]])
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        relevance = (scores - scores[-1]) / (scores[0] - scores[-1])
        closest, left = np.zeros(len(ids)), np.ones(len(ids), bool)
        for n, item in enumerate(chosen):
            at = list(ids).index(item)
            worth = (1 - diversity) * relevance - diversity * closest
            self.assertGreaterEqual(worth[at], worth[left].max() - 1e-6, f"query {query}, hit {n}")
            left[at] = False
            closest = np.maximum(closest if n else -1, vectors @ vectors[at])

    def test_hits_that_differ(self):
        for similarity in ("dot", "mol"):
            *files, _ = self.files(similarity)
            with self.subTest(similarity=similarity):
                candidates = self.answers(*files, "exact", 60)
                found = self.answers(*files, "exact", 12, "--mmr", "0.4:60")
                usual = self.answers(*files, "exact", 12, "--mmr", "0.4")
                self.assertTrue(np.all(found["exact"] == 1))
                self.assertTrue(np.array_equal(found["top_ids"], usual["top_ids"]))  # 5 candidates for each hit
                self.assertFalse(np.array_equal(found["top_ids"], candidates["top_ids"][:, :12]))
                for q, chosen in enumerate(found["top_ids"]):
                    self.assert_differ(q, candidates["top_ids"][q], candidates["top_scores"][q].astype(np.float64),
                                       chosen, 0.4)
        out = self.evaluate(*files, "-k", "12", "--mmr", "0.4", "--method", "average(200)").stdout
        self.assertIn("chosen   among the best 60, with diversity 0.4\n", out)
        rows = self.evaluate(*files, "-k", "12", "--mmr", "0.4", "--json").stdout.splitlines()
        self.assertEqual([json.loads(row)["mmr"] for row in rows], [{"diversity": 0.4, "candidates": 60}] * len(rows))
        self.assertNotIn("mmr", self.evaluate(*files, "--json").stdout)
        for text, code, says in (("0.4:11", 1, "--boost-if: mmr.candidates: 11; it must be from k, which is 12, to 1000"),
                                 ("0", 2, "--mmr expects a number above 0"), ("0.5:", 2, "--mmr expects a number")):
            done = self.run_eval(*files, "-k", "12", "--mmr", text)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(says, done.stderr)

    def boosts_of(self, attributes, now):
        """What the boosts of the next test add to the score of an item."""
        added = 0.0
        if "price" in attributes:
            added += -0.03 * attributes["price"]
        if "expires" in attributes:
            added += 2.5 * 2 ** (-max(0, now - attributes["expires"]) / (6 * 3_600_000))
        if attributes.get("country") in ("de", "at"):
            added += 1.5
        if "year" in attributes:
            added += 0.001 * attributes["year"]
        return added

    def test_boosts(self):
        now = filters.Draw.NOW
        for attributes in self.attributes.values():  # with numbers such as 1e300 there would be no tolerance
            for name in ("price", "year"):
                if abs(attributes.get(name, 0)) > 1e4:
                    del attributes[name]
        path = self.write_attributes()
        added = np.array([self.boosts_of(self.attributes.get(int(i), {}), now) for i in self.ids])
        more = ["--boost", "-0.03:price", "--boost", "2.5:expires:6h", "--boost-if", "1.5:country in ('de', 'at')",
                "--boost", "0.001:year", "--attributes", path, *self.types]
        at_now = [*more, "--now", "2026-09-21T14:13:20Z"]
        for similarity, method in (("dot", "brute_force"), ("recjpq", "pqtopk"), ("recjpq", "prune(4)")):
            *files, scores = self.files(similarity)
            with self.subTest(similarity=similarity, method=method):
                found = self.answers(*files, method, 50, *at_now)
                self.assertTrue(np.all(found["exact"] == 1))
                self.assert_receipts(found, self.ids, scores + added, 4e-6 * np.abs(scores + added).max())
                metadata = safetensors_io.read(self.folder / "answers.safetensors")[1]
                self.assertEqual(metadata["now_unix_ms"], str(now))
                rows = [json.loads(line) for line in self.evaluate(
                    *files, "--json", "--method", "exact", "--method", method, *at_now).stdout.splitlines()]
                self.assertEqual([(row["recall_at_k"], row["now_unix_ms"]) for row in rows], [(1, now)] * len(rows))
        out = self.evaluate(*files, *at_now).stdout
        self.assertIn("boosts   -0.03:price\n         2.5:expires:6h\n         1.5:country in ('de', 'at')\n"
                      "         0.001:year\nnow      2026-09-21T14:13:20.000Z: ages in boosts are counted to it\n", out)
        # Without --now, the time is in the output, and makes the run repeatable.
        found = self.answers(*files, "exact", 50, *more)
        used = int(safetensors_io.read(self.folder / "answers.safetensors")[1]["now_unix_ms"])
        self.assertLess(abs(used / 1000 - time.time()), 600)
        again = self.answers(*files, "exact", 50, *more, "--now", used)
        np.testing.assert_array_equal(found["top_scores"], again["top_scores"])
        self.assertNotIn("now_unix_ms", self.evaluate(*files, "--json").stdout)

    def assert_candidates(self, method, k, admitted, found):
        """Check that the hits of a method that is not exact are among its candidates, and no fewer than these."""
        for query, ids in zip(self.queries, found["top_ids"]):
            query.k = k
            stages = self.model.stages(query, self.rows, admitted, *models.parse_method(method))
            sure, possible = Oracle.members(stages, admitted) if stages else (admitted, admitted)
            hits = np.isin(self.ids, ids[ids != -1])
            self.assertFalse(np.any(hits & ~possible))
            self.assertTrue(min(k, sure.sum()) <= hits.sum() <= min(k, possible.sum()))

    def test_random_filters_by_every_method(self):
        path = self.write_attributes()
        items = filters.Items(self.attributes.get(int(i), {}) for i in self.ids)
        for similarity in ("dot", "bilinear", "mol", "recjpq"):
            *files, scores = self.files(similarity)
            tolerance = TOLERANCE if similarity == "mol" else 2e-6 * np.abs(scores).max()
            methods = self.model.methods()[1:]
            for _ in range(3):
                text, parameters = self.draw.filter()
                left = items.admitted(text, parameters, filters.TYPES)
                more = ["--filter", text, "--attributes", path, *self.types]
                if parameters:
                    more += ["--parameters", json.dumps(parameters)]
                for method in methods:
                    with self.subTest(similarity=similarity, method=method, filter=text, parameters=parameters):
                        found = self.answers(*files, method, 50, *more)
                        self.assert_receipts(found, self.ids[left], scores[:, left], tolerance)
                        if models.parse_method(method)[0] in self.model.exact_methods:
                            self.assertTrue(np.all(found["exact"] == 1))
                            self.assertTrue(np.all((found["top_ids"] != -1).sum(axis=1) == min(50, left.sum())))
                        else:
                            self.assert_candidates(method, 50, left, found)
                with self.subTest(similarity=similarity, filter=text, parameters=parameters):
                    more += [word for method in methods for word in ("--method", method)]
                    rows = [json.loads(line) for line in self.evaluate(*files, "--json", *more).stdout.splitlines()]
                    self.assertEqual([row["method"] for row in rows], methods)
                    self.assertEqual({row["admitted"] for row in rows}, {int(left.sum())})
                    for row in rows:
                        if row["proven_exact"] == 1:
                            self.assertEqual(row["recall_at_k"], 1)

    def test_lifetimes(self):
        """Items that are expired or embargoed at a time are never hits, with a filter and without one."""
        at, day = 1_790_000_000_000, 86_400_000
        times = {int(i): {name: at + int(self.rng.integers(-day, day)) for name in ("begins", "ends")
                          if self.rng.random() < 0.8} for i in self.ids}
        times[int(self.ids[0])] = {"ends": at}      # expired from this moment on
        times[int(self.ids[1])] = {"begins": at}    # no longer embargoed
        path = self.write_attributes([json.dumps({"id": i, "attributes": row}) for i, row in times.items()])
        words = ["--attributes", path, "--attribute", "begins:time", "--attribute", "ends:time", "--at",
                 "2026-09-21T14:13:20Z"]
        def check(left, *more):
            for similarity in ("dot", "recjpq"):
                *files, scores = self.files(similarity)
                found = self.answers(*files, "exact", 50, *words, *more)
                self.assert_receipts(found, self.ids[left], scores[:, left], 2e-6 * np.abs(scores).max())
                self.assertTrue(np.all(found["top_ids"] != -1))
            out = self.evaluate(*files, *words, *more).stdout
            self.assertIn(f"alive    {due.sum():,} of 3,000 items at 2026-09-21T14:13:20.000Z", out)
        ends, begins = (np.array([times[int(i)].get(name) for i in self.ids], float) for name in ("ends", "begins"))
        due = ~(ends <= at)
        check(due, "--expires", "ends")
        due = ~(begins > at)
        check(due, "--not-before", "begins")
        due = ~(ends <= at) & ~(begins > at)
        check(due, "--expires", "ends", "--not-before", "begins")
        check(due & (begins > at - day // 2), "--expires", "ends", "--not-before", "begins",
              "--filter", "begins > $1", "--parameters", json.dumps([at - day // 2]))

    def test_the_report_says_how_many_items_are_admitted(self):
        *files, _ = self.files("dot")
        path = self.write_attributes()
        due = sum(attributes.get("country") == "de" for attributes in self.attributes.values())
        more = ["--filter", "country = $1", "--parameters", '["de"]', "--attributes", path]
        out = self.evaluate(*files, *more, *self.types, "-k", 2900).stdout
        self.assertIn(f"filter   country = $1: {due} of 3,000 items admitted", out)
        self.assertIn(f"because the filter admits only {due} items", out)
        self.assertIn('"admitted":3000', self.evaluate(*files, "--json").stdout)
        config = self.folder / "sluice.yaml"
        config.write_text("embedded_broker:\n  enabled: true\nstore:\n  path: /tmp/none\nspaces:\n  x:\n    model: x\n"
                          "attributes:\n" + "".join(f"  {name}: {kind}\n" for name, kind in filters.TYPES.items()))
        model, items, queries = files
        command = [CTL, "--config", config, "eval", "--model", model, "--items", items, "--queries", queries, "--json"]
        done = subprocess.run([*command, *map(str, more)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["admitted"], due)

    def test_files_that_cannot_be_used(self):
        *files, _ = self.files("dot")
        a, b = map(int, self.ids[:2])
        good = json.dumps({"id": a, "attributes": {"price": 1}})
        for line, words in (
                ("nonsense", ["cannot be read as JSON: invalid token"]),
                ('{"id": 1e400}', ["a number is beyond 64 bits"]),
                ("[]", ["expected an object"]), ('{"id": 1.5}', ["id: expected"]),
                ('{"id": 5, "attributes": {}}', ["item 5 is not among the items of", "remove the line"]),
                (good, [f"item {a} is on line 1 too", "keep one line"]),
                (json.dumps({"id": b}), ["attributes: expected an object"]),
                (json.dumps({"id": b, "attributes": {}, "colour": 1}), ['unknown member "colour"']),
                (json.dumps({"id": b, "attributes": {"colour": 1}}), ['["colour"]', "--attribute colour:TYPE"]),
                (json.dumps({"id": b, "attributes": {"price": "1"}}), ['attributes["price"]', "expected", 'text "1"']),
                (json.dumps({"id": b, "attributes": {"year": 1.5}}), ['attributes["year"]', "expected", "number 1.5"]),
                (json.dumps({"id": b, "attributes": {"tags": [None]}}), ['attributes["tags"]', "no null in a list"]),
                (json.dumps({"id": b, "attributes": {"tags": {}}}), ['attributes["tags"]', "or a list of these"]),
                ('{"id": %d, "attributes": {"year": 1, "year": 2}}' % b, ["cannot be read as JSON", "duplicate"])):
            with self.subTest(line=line):
                path = self.write_attributes([good, "", line])
                done = self.run_eval(*files, "--filter", "price < 3", "--attributes", path, *self.types)
                self.assertEqual(done.returncode, 1)
                for word in (f"{path}, line 3: ", *words):
                    self.assertIn(word, done.stderr)

    def test_command_lines(self):
        *files, _ = self.files("dot")
        path = self.write_attributes()
        with_types = ["--attributes", path, *self.types]
        for more, code, *words in (
                (["--filter", "price < 3"], 2, "--filter needs --attributes"),
                (["--filter", "", *with_types], 2, "--filter expects a condition"),
                (["--parameters", "[]", *with_types], 2, "--parameters needs --filter"),
                (["--max-per", "year:1"], 2, "--max-per needs --attributes"),
                (["--max-per", "tags:1", *with_types], 1, "--max-per, --mmr, --boost or --boost-if: max_per.attribute:",
                 "'tags' is of type keywords"),
                (["--boost", "1:year"], 2, "--boost and --boost-if need --attributes"),
                (["--now", "0", *with_types], 2, "--now is for --boost"),
                (["--boost", "x:year", *with_types], 2, "--boost expects a weight, an attribute"),
                (["--boost", "1:yaer", *with_types], 1, "--max-per, --mmr, --boost or --boost-if: boosts[0]",
                 "not an attribute; the nearest is 'year'"),
                (["--boost", "1:expires", *with_types], 1, "boosts[0].half_life_ms is missing: 'expires' is a time"),
                (["--boost", "1:year", "--boost-if", "1:price << 3", *with_types], 1,
                 "boosts[1].filter: at character 8"),
                (self.types, 2, "--attribute needs --attributes"),
                (["--expires", "expires", *self.types], 2, "--expires needs --attributes"),
                (["--at", "1h", *with_types], 2, "--at is for --expires"),
                (["--expires", "price", *with_types], 2, "--expires: price is not an attribute of type time"),
                (["--not-before", "absent", *with_types], 2, "give it as --attribute absent:time"),
                (["--attribute", "price"], 2, "NAME:TYPE"),
                (["--attribute", "price:text"], 2, "--attribute price", "there is no type", "number"),
                (["--attribute", "a:bool", "--attribute", "a:time"], 2, '"a" is given twice'),
                (["--filter", "price << 3", *with_types], 1, "filter: at character 8"),
                (["--filter", "price < $1", *with_types], 1, "$1 has no value"),
                (["--filter", "price in $1", "--parameters", json.dumps([[1] * 10001]), *with_types], 1,
                 "parameters: 10001 values, at most 10000"),
                (["--filter", "price < $1", "--parameters", "[1", *with_types], 2,
                 "--parameters: cannot be read as JSON"),
                (["--filter", "price < $1", "--parameters", "{}", *with_types], 2, "--parameters: expected a list"),
                (["--filter", "price < 3", "--attributes", self.folder / "absent", *self.types], 1, "absent cannot be"),
                (["--filter", "price < 3", "--attributes", path], 1, "--attribute NAME:TYPE", "--config")):
            with self.subTest(more=more):
                done = self.run_eval(*files, *more)
                self.assertEqual(done.returncode, code, done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    data.main()
