#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle itself: its scores match the reference implementation, and it refuses wrong answers."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np

import boosts
import data
import filters
import models
import safetensors_io
import wire
from oracle import Oracle, Record, check_epochs
from wire import pb


class Golden(unittest.TestCase):
    def test_scores_are_those_of_the_reference(self):
        for name in ("small_uid", "books", "edge"):
            with self.subTest(name):
                folder = data.golden_dir() / name
                model = models.load(folder / "weights.safetensors")
                inputs, _ = safetensors_io.read(folder / "inputs.safetensors")
                expected, _ = safetensors_io.read(folder / "expected.safetensors")
                items = inputs["item_embeddings"].astype(np.float64)
                g, item_gate = model.items(items)
                f, query_gate = model.queries(inputs["query_embeddings"].astype(np.float64), inputs["user_ids"])
                phi = np.stack([model.phi(f[b], query_gate[b], g, item_gate) for b in range(len(f))])
                self.assertLess(np.abs(g[:64] - expected["x_comp_f64"]).max(), 1e-11)
                self.assertLess(np.abs(f - expected["q_comp_f64"]).max(), 1e-11)
                self.assertLess(np.abs(phi - expected["phi_f64"]).max(), 1e-9)
                average = (f.sum(axis=1) @ g.sum(axis=1).T) / model.n_logits
                self.assertLess(np.abs(average - expected["avg_score_f64"]).max(), 1e-11)

    def test_top_items_through_the_messages_are_those_of_the_reference(self):
        for name in ("small_uid", "books"):
            with self.subTest(name):
                folder = data.golden_dir() / name
                inputs, _ = safetensors_io.read(folder / "inputs.safetensors")
                expected, _ = safetensors_io.read(folder / "expected.safetensors")
                model = models.load(folder / "weights.safetensors")
                rows = np.array([model.row_of(pb.Part(vector=wire.vector(x))) for x in inputs["item_embeddings"]])
                for b, q in enumerate(inputs["query_embeddings"]):
                    query = pb.Query(vector=wire.vector(q), user_id=int(inputs["user_ids"][b]))
                    order = np.argsort(-model.scores(query, rows), kind="stable")[:expected["top_pos"].shape[1]]
                    self.assertEqual(order.tolist(), expected["top_pos"][b].tolist())

    def test_bf16_rounds_as_the_reference_does(self):
        expected, _ = safetensors_io.read(data.golden_dir() / "small_uid" / "expected.safetensors")
        bits = safetensors_io.f32_to_bf16(expected["x_comp"].ravel())
        self.assertTrue((safetensors_io.bf16_to_f32(bits) == expected["x_comp_bf16"].ravel()).all())


class Wire(unittest.TestCase):
    def test_messages_survive_json(self):
        rng = data.generator("wire")
        for form in ("array", "values", "data"):
            item = pb.Item()
            item.parts["a"].vector.CopyFrom(wire.vector(rng.standard_normal(7)))
            item.parts["b"].codes = bytes(rng.integers(0, 256, 8, np.uint8))
            text = wire.dumps(wire.item_json(item, form))
            back = wire.decode_item(text, [])
            self.assertEqual(back.parts["b"].codes, item.parts["b"].codes)
            self.assertTrue((wire.floats_of(back.parts["a"].vector) == wire.floats_of(item.parts["a"].vector)).all())

    def test_attributes_of_hits_survive_json(self):
        shown = {"a": 9.0, "b": 9, "c": ["x", "y"], "d": False, "e": []}
        hit = wire.answer_from_json(wire.dumps({"hits": [{"key": "k", "score": 1, "attributes": shown}]})).hits[0]
        self.assertEqual({name: repr(wire.value_of(value)) for name, value in hit.attributes.items()},
                         {name: repr(value) for name, value in shown.items()})
        self.assertEqual(wire.query_json(pb.Query(attributes=["a", "b"]))["attributes"], ["a", "b"])

    def test_safetensors_survive_writing(self):
        rng = data.generator("safetensors")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.safetensors"
            tensors = {"b": rng.standard_normal((3, 5)).astype(np.float32), "a": np.arange(4),
                       "c": np.array([7], np.uint8)}
            safetensors_io.write(path, tensors, {"k": "v"})
            back, metadata = safetensors_io.read(path)
            self.assertEqual(metadata, {"k": "v"})
            for name, tensor in tensors.items():
                self.assertTrue((back[name] == tensor).all())


class Filters(unittest.TestCase):
    def test_worked_examples_admit_what_the_document_says(self):
        text = (data.ROOT / "docs" / "filters.md").read_text()
        examples = text[text.index("## Worked examples"):]
        types = dict(re.findall(r"^  (\w+): (\w+)$", examples, re.M))
        items = [json.loads(line) for line in re.findall(r"^\{.*\}$", examples, re.M)]
        rows = re.findall(r"^\| `(.+?)` \| (?:`(.+?)`)? ?\| (.+?) \|$", examples, re.M)
        attributes = filters.Items(item["attributes"] for item in items)
        self.assertEqual((len(types), len(items)), (6, 4))
        self.assertGreater(len(rows), 15)
        for text, parameters, due in rows:
            with self.subTest(filter=text):
                admitted = attributes.admitted(text, json.loads(parameters or "[]"), types)
                found = [item["id"] for item, is_in in zip(items, admitted) if is_in]
                self.assertEqual(", ".join(found) or "nothing", due)


class Replay(unittest.TestCase):
    def setUp(self):
        rng = data.generator("replay")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = Path(self.folder.name) / "codes.safetensors"
        models.random_recjpq(rng, path, m=2, b=10, d=4)
        self.oracle = Oracle({"x": models.load(path), "y": models.load(path)})

    def put(self, offset, key, value, partition=0):
        self.oracle.feed([Record(partition, offset, key, value)])

    @staticmethod
    def item(**codes):
        item = pb.Item()
        for space, values in codes.items():
            item.parts[space].codes = bytes(values)
        return item.SerializeToString()

    def keys(self, space, **watermark):
        return self.oracle.state({int(p[1:]): n for p, n in watermark.items()}).space(space).keys

    def test_updates_deletes_and_partial_updates(self):
        self.put(0, b"a", self.item(x=[1, 2], y=[3, 4]))
        self.put(1, b"b", self.item(x=[5, 6]))
        self.put(3, b"a", self.item(x=[7, 8]))
        self.put(4, b"b", None)
        self.put(5, b"b", self.item(y=[1, 1]))
        self.put(0, b"c", self.item(x=[1, 1]), partition=1)
        self.assertEqual(self.keys("x", p0=2), [b"a", b"b"])
        self.assertEqual(self.keys("x", p0=5, p1=1), [b"a", b"c"])
        self.assertEqual(self.keys("y", p0=6), [b"a", b"b"])
        self.assertEqual(self.keys("x", p0=6), [b"a"])
        model, state = self.oracle.spaces["x"], self.oracle.state({0: 6})
        self.assertEqual(model.rows["codes"][state.space("x").rows[0]].tolist(), [7, 8])
        self.assertEqual(self.keys("x", p0=1), [b"a"])

    def test_bad_records_change_nothing(self):
        self.put(0, b"a", self.item(x=[1, 2]))
        for offset, (key, value) in enumerate([
                (b"a", b""), (b"a", b"\xff\xff"), (b"a", self.item(z=[1, 2])), (b"a", self.item(x=[1, 10])),
                (b"a", self.item(x=[3, 3], y=[1])), (None, self.item(x=[1, 2])), (b"", None), (b"k" * 257, None),
                (b"b", b"{}")], 1):
            self.put(offset, key, value)
        self.assertEqual(sorted(self.oracle.rejected), [(0, o) for o in range(1, 10)])
        self.assertEqual(self.keys("x", p0=99), [b"a"])
        self.assertEqual(list(self.oracle.state({0: 99}).items), [b"a"])


class Checker(unittest.TestCase):
    """A correct answer passes. The same answer with one change fails."""

    NOW = 1790000000000

    def setUp(self):
        rng = data.generator("checker")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = Path(self.folder.name) / "mol.safetensors"
        models.random_mol(rng, path)
        self.oracle = Oracle({"m": models.load(path)}, {"year": "integer", "made": "time"})
        self.model = self.oracle.spaces["m"]
        vectors = rng.standard_normal((300, self.model.dx))
        vectors[1:3] = vectors[0]
        for i, x in enumerate(vectors):
            item = pb.Item()
            item.parts["m"].vector.CopyFrom(wire.vector(x))
            item.attributes["year"].integer = i % 2
            if i % 3 == 0:
                item.attributes["made"].integer = self.NOW - i * 1000
            self.oracle.feed([Record(0, i, b"k%03d" % i, item.SerializeToString())])
        self.query = pb.Query(id="q", space="m", k=20, user_id=5)
        self.query.vector.CopyFrom(wire.vector(rng.standard_normal(self.model.dq)))

    def right_answer(self, hit_count=None, watermark=300):
        space = self.oracle.state({0: watermark}).space("m")
        similarities = self.model.scores(self.query, space.rows).astype(np.float32)
        sums = boosts.Sums(self.query, space.attributes, self.oracle.types, self.NOW).sums
        scores = (similarities + sums).astype(np.float32)
        excluded = set(self.query.exclude)
        order = [i for i in np.lexsort((np.arange(len(scores)), -scores)) if space.keys[i] not in excluded]
        hits, rest = order[:hit_count or self.query.k], order[hit_count or self.query.k:]
        answer = pb.Answer(id="q", space="m", method="brute_force", epoch=3)
        for i in hits:
            answer.hits.add(key=space.keys[i], score=scores[i])
            if self.query.boosts:
                answer.hits[-1].similarity = similarities[i]
                answer.now_unix_ms = self.NOW
        for key in self.query.explain:
            self.explain(answer, key, scores[space.index[key]])
        answer.receipt.exact = True
        if rest:
            answer.receipt.bound = scores[rest[0]]
        answer.watermark.add(partition=0, next=watermark)
        answer.counts.items = answer.counts.scored = len(space.keys)
        return answer

    @staticmethod
    def explain(answer, key, score):
        keys = [hit.key for hit in answer.hits]
        if key in keys:
            answer.explanations.add(key=key, score=score, verdict="HIT", rank=keys.index(key) + 1)
        else:
            answer.explanations.add(key=key, score=score, verdict="OUTRANKED",
                                    below_last_hit=np.float32(answer.hits[-1].score) - score)

    def refused(self, answer, words):
        with self.assertRaisesRegex(AssertionError, words):
            self.oracle.check(self.query, answer, self.NOW)

    def test_the_right_answer_passes(self):
        self.oracle.check(self.query, self.right_answer())
        self.query.k = 500
        self.oracle.check(self.query, self.right_answer())
        self.query.exclude.extend([b"k000", b"k299", b"nobody"])
        self.oracle.check(self.query, self.right_answer())

    def test_hits_and_counts_that_the_filter_does_not_admit(self):
        self.query.filter, self.query.k = "year = $1", 500
        self.query.parameters.add(integer=3)
        self.refused(self.right_answer(), "is not admitted")
        self.query.parameters[0].integer = 1
        odd = [b"k%03d" % i for i in range(1, 300, 2)]
        due = self.right_answer()
        for hit in [hit for hit in due.hits if hit.key not in odd]:
            due.hits.remove(hit)
        self.oracle.check(self.query, due)
        due.counts.admitted = 150
        self.oracle.check(self.query, due)
        due.counts.admitted = 151
        self.refused(due, "151 items admitted, 150 were due")
        # The attribute changes, and is then removed.
        for offset, value in [(300, pb.Value(integer=2)), (301, pb.Value())]:
            item = pb.Item()
            item.attributes["year"].CopyFrom(value)
            self.oracle.feed([Record(0, offset, b"k001", item.SerializeToString())])
            due.watermark[0].next = offset + 1
            self.refused(due, "b'k001' is not admitted")

    def test_a_wrong_score_a_swap_and_a_missing_hit(self):
        answer = self.right_answer()
        answer.hits[3].score += 3e-4 * max(1, abs(answer.hits[3].score))
        self.refused(answer, "has the score|wrong order")
        answer = self.right_answer()
        answer.hits[0].key, answer.hits[19].key = answer.hits[19].key, answer.hits[0].key
        self.refused(answer, "has the score")
        answer = self.right_answer(21)
        del answer.hits[0]
        self.refused(answer, "is missing")
        answer = self.right_answer()
        del answer.hits[-1]
        self.refused(answer, "hits, 20 were due")

    def test_boosts(self):
        for weights in ((3, 2), (1e6, 0), (1e-6, -5), (0, 1e9)):
            del self.query.boosts[:]
            self.query.boosts.add(weight=weights[0], attribute="year")
            self.query.boosts.add(weight=weights[1], attribute="made", half_life_ms=50000)
            self.query.boosts.add(weight=0.5, filter="year = 0 and has(made)")
            right = self.right_answer()
            self.oracle.check(self.query, right, self.NOW)
            answer = pb.Answer()
            for change, words in [
                    (lambda: answer.ClearField("now_unix_ms"), "time of ages"),
                    (lambda: setattr(answer, "now_unix_ms", self.NOW + 1), f"{self.NOW + 1}, not to {self.NOW}"),
                    (lambda: answer.hits[3].ClearField("similarity"), "has a similarity"),
                    (lambda: setattr(answer.hits[3], "similarity", answer.hits[3].similarity + 3e-3), "has the score"),
                    # The error of 2^-x is far below the last bit of a score.
                    (lambda: setattr(answer.hits[0], "score", np.nextafter(np.float32(answer.hits[0].score),
                                                                           np.float32(np.inf))), "has the sum")]:
                answer.CopyFrom(right)
                change()
                self.refused(answer, words)
            answer = self.right_answer(self.query.k + 1)
            del answer.hits[5]
            self.refused(answer, "is missing|ties with")
            # The hits are those of another weight.
            self.query.boosts[0].weight += 1000
            self.refused(right, "has the sum|is missing")

    def test_attributes_of_hits(self):
        self.query.attributes.extend(["made", "year"])
        right = self.right_answer()
        space = self.oracle.state({0: 300}).space("m")
        for hit in right.hits:
            for name, value in space.attributes[space.index[hit.key]].items():
                hit.attributes[name].integer = value
        self.oracle.check(self.query, right)
        answer = pb.Answer()
        for change in (lambda hit: hit.attributes.clear(), lambda hit: hit.attributes.pop("year"),
                       lambda hit: setattr(hit.attributes["year"], "integer", hit.attributes["year"].integer + 1),
                       lambda hit: setattr(hit.attributes["year"], "number", float(hit.attributes["year"].integer)),
                       lambda hit: hit.attributes["more"].CopyFrom(wire.make_value(1))):
            answer.CopyFrom(right)
            change(answer.hits[7])
            self.refused(answer, " shows ")
        self.query.attributes.pop()
        self.refused(right, " shows ")

    def test_sums_that_tie_only_by_rounding(self):
        self.query.boosts.add(weight=1e9, attribute="year")
        right = self.right_answer()
        self.oracle.check(self.query, right)
        self.assertEqual([hit.key for hit in right.hits], [b"k%03d" % i for i in range(1, 40, 2)])
        right.hits[-1].key = b"k041"
        right.hits[-1].similarity = self.model.scores(self.query, self.oracle.state({0: 300}).space("m").rows)[41]
        self.refused(right, "b'k039' ties with b'k041' and comes before it")

    def test_boosts_that_are_cut_off(self):
        query = pb.Query(boosts=[pb.Boost(weight=weight, attribute="n") for weight in (1e9, -1e9, 1)])
        items = [{"n": 1e300}, {"n": -1e300}, {"n": 2.0}, {}]
        self.assertEqual(boosts.Sums(query, items, {"n": "number"}, 0).sums.tolist(), [1e30, -1e30, 2.0, 0.0])

    def test_explanations(self):
        self.query.explain.extend([b"k005", b"k000", b"k033"])
        for boosted in (False, True):
            if boosted:
                self.query.boosts.add(weight=10, filter="year = 1")
            right = self.right_answer()
            self.oracle.check(self.query, right)
            outranked = next(i for i, e in enumerate(right.explanations) if e.HasField("below_last_hit"))
            for i, field, value, words in [(outranked, "score", 77.0, "with the score"),
                                           (outranked, "below_last_hit", 0.001, "below the last hit"),
                                           (outranked, "rank", 3, "rank"), (0, "verdict", 6, "is said to be SEEN"),
                                           (0, "verdict", 10, "is said to be MISSED"), (0, "key", b"k1", "other keys")]:
                answer = pb.Answer()
                answer.CopyFrom(right)
                setattr(answer.explanations[i], field, value)
                self.refused(answer, words)
        self.query.explain.append(b"nobody")
        right.explanations.add(key=b"nobody", verdict="NO_ITEM")
        self.oracle.check(self.query, right)
        right.explanations[-1].verdict = pb.Explanation.NO_PART
        self.refused(right, "is said to be NO_PART")

    def test_ties_out_of_order(self):
        self.query.k = 300
        answer = self.right_answer()
        place = [i for i, hit in enumerate(answer.hits) if hit.key in (b"k000", b"k001")]
        answer.hits[place[0]].key, answer.hits[place[1]].key = b"k001", b"k000"
        self.refused(answer, "tie")

    def test_a_tie_at_the_end_that_keeps_the_larger_key(self):
        self.query.k = 300
        first = [hit.key for hit in self.right_answer().hits].index(b"k000")
        self.query.k = first + 2
        answer = self.right_answer()
        self.oracle.check(self.query, answer)
        answer.hits[first + 1].key = b"k002"
        self.refused(answer, "ties with")

    def test_an_item_that_is_not_there_yet_excluded_or_twice(self):
        answer = self.right_answer()
        top = int(answer.hits[0].key[1:])
        answer.watermark[0].next = top
        self.refused(answer, "not an item of this state")
        answer = self.right_answer()
        self.query.exclude.append(answer.hits[2].key)
        self.refused(answer, "is not admitted")
        del self.query.exclude[:]
        answer = self.right_answer()
        answer.hits[1].CopyFrom(answer.hits[0])
        self.refused(answer, "twice")

    def test_a_receipt_that_lies(self):
        answer = self.right_answer()
        answer.receipt.bound = answer.hits[-1].score - 5
        self.refused(answer, "over the bound")
        answer = self.right_answer()
        answer.receipt.ClearField("bound")
        self.refused(answer, "bound missing")
        answer = self.right_answer()
        answer.receipt.exact = False
        self.refused(answer, "receipt is not exact")
        self.query.k = 300
        answer = self.right_answer()
        answer.receipt.bound = 3
        self.refused(answer, "bound given")

    def test_counts_method_and_at_least(self):
        answer = self.right_answer()
        answer.counts.items = 299
        self.refused(answer, "items counted")
        answer = self.right_answer()
        answer.method = "average(10)"
        self.refused(answer, "not an exact method")
        self.query.at_least.add(partition=0, next=301)
        self.refused(self.right_answer(), "at_least")

    def average_answer(self, n):
        space = self.oracle.state({0: 300}).space("m")
        averages, _ = self.model.averages(self.query, space.rows)
        candidates = np.argsort(-averages)[:n]
        scores = self.model.scores(self.query, space.rows).astype(np.float32)
        order = candidates[np.lexsort((candidates, -scores[candidates]))][:self.query.k]
        answer = self.right_answer()
        del answer.hits[:]
        for i in order:
            answer.hits.add(key=space.keys[i], score=scores[i])
        answer.method, answer.receipt.exact, answer.receipt.bound = f"average({n})", False, 20
        answer.counts.scored = answer.counts.candidates = n
        return answer

    def test_average(self):
        self.query.method = "average(60)"
        self.oracle.check(self.query, self.average_answer(60))
        answer = self.average_answer(60)
        answer.receipt.exact = True
        self.refused(answer, "is missing")
        answer = self.average_answer(60)
        found = {hit.key for hit in answer.hits}
        answer.receipt.bound = next(h.score for h in self.right_answer(300).hits if h.key not in found) - 1
        self.refused(answer, "over the bound")
        answer = self.average_answer(60)
        answer.counts.scored = answer.counts.candidates = 61
        self.refused(answer, "candidates")
        answer = self.average_answer(60)
        answer.counts.scored = 61
        self.refused(answer, "more than the 60 candidates")
        answer = self.average_answer(300)
        answer.method, answer.counts.scored, answer.counts.candidates = "average(60)", 60, 60
        self.refused(answer, "is below the candidates' lists")

    def test_errors_and_epochs(self):
        error = pb.Answer(id="q", error=pb.Error(code="BAD_QUERY", message="k is 0"))
        self.oracle.check_error(self.query, error, "BAD_QUERY")
        with self.assertRaisesRegex(AssertionError, "not one of"):
            self.oracle.check_error(self.query, error, "NOT_SEEN")
        with self.assertRaisesRegex(AssertionError, "no error"):
            self.oracle.check_error(self.query, self.right_answer(), "NOT_SEEN")
        self.refused(error, "BAD_QUERY")
        early, late = self.right_answer(watermark=200), self.right_answer()
        late.epoch = 4
        check_epochs([late, early])
        early.epoch = 5
        with self.assertRaisesRegex(AssertionError, "went back"):
            check_epochs([late, early])
        early.epoch = 4
        with self.assertRaisesRegex(AssertionError, "has the watermarks"):
            check_epochs([late, early])


class Approximate(unittest.TestCase):
    """A correct answer of an approximate method passes. The same answer with one change fails."""

    N = 400

    def make(self, similarity, draw, k, method):
        """Set up a model, an oracle with N items, a query for the method, and the items' scores."""
        rng = data.generator(f"approximate {similarity}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "x.safetensors"
        draw(rng, path)
        self.model = models.load(path)
        self.oracle = Oracle({"x": self.model})
        items = data.Items(rng, {"x": self.model})
        for i in range(self.N):
            self.oracle.feed([Record(0, i, b"k%03d" % i, items.item(["x"]).SerializeToString())])
        self.space = self.oracle.state({0: self.N}).space("x")
        self.name, self.arguments = models.parse_method(method)
        queries = data.Queries(rng, {"x": self.model}, "q")
        self.query = queries.draw("x", method, k)
        while not self.is_clear():
            self.query = queries.draw("x", method, k)
        self.scores = self.model.scores(self.query, self.space.rows)

    def is_clear(self):
        """True if rounding cannot change which items are candidates. Otherwise no answer could be shown wrong."""
        everything = np.ones(self.N, bool)
        stages = self.model.stages(self.query, self.space.rows, everything, self.name, self.arguments)
        if stages is None:
            return True
        sure, possible = self.oracle.members(stages, everything)
        return (sure == possible).all()

    def answer(self, candidates, bound, exact=False):
        """Return an answer with the best candidates. candidates: a mask; bound: the receipt's bound on other items."""
        order = np.flatnonzero(candidates)
        # Messages hold f32 scores, so ties are decided in f32.
        order = order[np.lexsort((order, -self.scores[order].astype(np.float32)))][:self.query.k]
        out = pb.Answer(id=self.query.id, space="x", method=self.query.method,
                        hits=[pb.Hit(key=self.space.keys[i], score=self.scores[i]) for i in order],
                        watermark=[pb.Position(partition=0, next=self.N)])
        out.receipt.exact = exact
        out.receipt.bound = max([bound] + [out.hits[-1].score] * (len(order) == self.query.k))
        out.counts.items, out.counts.scored, out.counts.candidates = self.N, candidates.sum(), candidates.sum()
        return out

    def ceiling(self, left):
        everything = np.ones(self.N, bool)
        return self.model.ceiling(self.query, self.space.rows, everything, left, 0, self.name, self.arguments)

    def stage_answer(self, candidates):
        left = np.ones(self.N, bool)
        left[np.flatnonzero(candidates)[np.argsort(-self.scores[candidates])][:self.query.k]] = False
        return self.answer(candidates, self.ceiling(left))

    def refused(self, answer, words):
        with self.assertRaisesRegex(AssertionError, words):
            self.oracle.check(self.query, answer)

    def refuses_wrong_candidates_and_bounds(self, candidates):
        self.oracle.check(self.query, self.stage_answer(candidates))
        best = np.flatnonzero(candidates)[np.argmax(self.scores[candidates])]
        fewer = candidates.copy()
        fewer[best] = False
        self.refused(self.stage_answer(fewer), "due|is missing")
        more = np.ones(self.N, bool)
        more[best] = False
        answer = self.stage_answer(more)
        known = {self.space.keys[i] for i in np.flatnonzero(candidates)}
        has_stranger = any(hit.key not in known for hit in answer.hits)  # if false, only the best item is missing
        self.refused(answer, "below the candidates' lists" if has_stranger else "is missing")
        answer = self.stage_answer(candidates)
        answer.receipt.bound += 0.01 * np.ptp(self.scores)
        self.refused(answer, "is a bound too")
        answer = self.stage_answer(candidates)
        del answer.hits[-1]
        self.refused(answer, "due|is missing")

    def test_low_rank(self):
        self.make("bilinear", lambda rng, path: models.random_vectors(rng, path, "bilinear"), 10, "low_rank(2)")
        cut = self.model.cut_scores(self.query, self.space.rows, 2)
        candidates = np.isin(np.arange(self.N), np.argsort(-cut)[:10])
        self.refuses_wrong_candidates_and_bounds(candidates)
        # The rank-2 scores use the two largest singular values only.
        u, s, vt = np.linalg.svd(self.model.w)
        rotated = (wire.floats_of(self.query.vector) @ u[:, :2]) * s[:2]
        np.testing.assert_allclose(cut, (self.space_vectors() @ vt[:2].T) @ rotated, atol=1e-9)

    def space_vectors(self):
        return self.model.rows["vector"][self.space.rows]

    def test_lists_of_pairs(self):
        for method, average in (("per_embedding(4)", 0), ("combined(4,30)", 30)):
            self.make("mol", models.random_mol, 10, method)
            lists = [np.argsort(-dots)[:4] for dots in self.model.dots(self.query, self.space.rows).T]
            if average:
                lists.append(np.argsort(-self.model.averages(self.query, self.space.rows)[0])[:average])
            self.refuses_wrong_candidates_and_bounds(np.isin(np.arange(self.N), np.concatenate(lists)))

    def test_prune_limited(self):
        self.make("recjpq", lambda rng, path: models.random_recjpq(rng, path, b=64), 10, "prune_limited(2,6)")
        met, sigma = self.model.visit(self.query, self.space.rows, 2, 6)
        self.assertTrue(10 < met.sum() < self.N and self.scores[~met].max() < sigma)
        self.refuses_wrong_candidates_and_bounds(met)

    def test_prune_inflated_must_fill_its_hits(self):
        self.make("recjpq", lambda rng, path: models.random_recjpq(rng, path, b=64), 10, "prune_inflated(2,150)")
        some = np.ones(self.N, bool)
        some[np.argsort(self.scores)[-9]] = False
        worst = np.sort(self.scores[some])[-10]
        bound = worst + 0.5 * abs(worst)
        self.oracle.check(self.query, self.answer(some, bound))
        answer = self.answer(some, bound * 1.01)
        self.refused(answer, "is a bound too")
        answer = self.answer(some, bound)
        del answer.hits[-1]
        self.refused(answer, "9 hits, 10 were due")


if __name__ == "__main__":
    data.main()
