#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of hits by maximal marginal relevance, through Kafka: each choice is checked in float64 against the hits of the
same query without it. test_shards.py has it with shards."""

import json
import tempfile
import unittest
from pathlib import Path

import numpy as np

import data
import filters
import models
import wire
from harness import Case, System
from wire import pb

N_ITEMS = 1500
TOLERANCE = 1e-5


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models with mmr")
    names = ("dot", "cosine", "bilinear", "mol", "recjpq")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in names}
    for name in names[:3]:
        models.random_vectors(rng, paths[name], name, rank=9 if name == "bilinear" else None)
    models.random_mol(rng, paths["mol"])
    models.random_recjpq(rng, paths["recjpq"], b=16)
    spaces = {name: models.load(path) for name, path in paths.items()}


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)


class Mmr(Case):
    def open(self):
        system = self.system = System(paths, spaces, name=self.id(), types=filters.TYPES)
        self.addCleanup(system.close)
        system.open()
        for i in range(N_ITEMS):
            system.put(b"item-%04d" % i)
        system.sync()
        return system

    def assert_chosen(self, query, answer, whole):
        """Each hit must be worth as much as any candidate that was left when it was chosen."""
        where = f"{query.space} {query.method} k {query.k} {query.mmr}"
        keys = [hit.key for hit in whole.hits]
        chosen = [keys.index(hit.key) for hit in answer.hits]
        self.assertEqual(len(set(chosen)), min(query.k, len(keys)), where)
        if not keys:
            return
        scores = np.array([hit.score for hit in whole.hits], np.float64)
        self.assertEqual([hit.score for hit in answer.hits], [scores[i] for i in chosen], where)
        relevance = (scores - scores[-1]) / (scores[0] - scores[-1]) if scores[0] > scores[-1] else np.ones(len(scores))
        space = self.system.oracle.state(self.system.oracle.end()).space(query.space)
        vectors = unit(spaces[query.space].vectors(space.rows[[space.index[key] for key in keys]]))
        closest, left = np.full(len(keys), -np.inf), np.ones(len(keys), bool)
        self.assertEqual(chosen[0], 0, where)
        for n, i in enumerate(chosen):
            worth = (1 - query.mmr.diversity) * relevance - query.mmr.diversity * (closest if n else 0)
            self.assertGreaterEqual(worth[i], worth[left].max() - TOLERANCE, f"hit {n} of {where}")
            left[i] = False
            closest = np.maximum(closest, vectors @ vectors[i])

    def ask(self, query):
        """Ask with and without mmr, and return both answers. The oracle checks the one without."""
        wide = pb.Query()
        wide.CopyFrom(query)
        wide.ClearField("mmr")
        wide.id, wide.k = query.id + " wide", query.mmr.candidates or 5 * query.k
        for each in (query, wide):
            each.at_least.extend(self.system.positions())
            self.system.send(each)
        answers = self.system.client.wait([query.id, wide.id])
        self.system.oracle.check(wide, answers[wide.id])
        return answers[query.id], answers[wide.id]

    def test_hits_are_chosen_among_those_of_the_same_query_without_mmr(self):
        system, reordered = self.open(), 0
        rng = system.rng
        for name in spaces:
            for method in spaces[name].methods():
                for _ in range(3):
                    k = int(rng.integers(1, 30))
                    query = system.queries.draw(name, method, k=k)
                    query.mmr.diversity = data.pick(rng, [0.3, 0.7, 1.0, 1 - rng.random()])
                    query.mmr.candidates = data.pick(rng, [0, k, 100, 1000])
                    if rng.random() < 0.5:
                        text, parameters = system.items.draw.filter()
                        query.filter = text
                        query.parameters.extend(wire.make_value(value) for value in parameters)
                    if rng.random() < 0.3:
                        query.max_per.attribute, query.max_per.n = "country", 2
                    answer, whole = self.ask(query)
                    self.assertFalse(answer.HasField("error"), answer.error.message)
                    self.assert_chosen(query, answer, whole)
                    self.assertEqual(answer.receipt, whole.receipt)
                    self.assertFalse(any(hit.vector for hit in answer.hits))
                    reordered += [hit.key for hit in answer.hits] != [hit.key for hit in whole.hits[:k]]
        self.assertGreater(reordered, 20)

    def test_candidates_that_were_not_chosen_are_explained(self):
        system = self.open()
        query = system.queries.draw("dot", "exact", k=3)
        query.mmr.diversity, query.mmr.candidates = 1, 16
        whole = self.ask(query)[1]
        again = pb.Query()
        again.CopyFrom(query)
        again.id = "explained"
        again.explain.extend(hit.key for hit in whole.hits)
        answer = system.client.wait([system.send(again).id])[again.id]
        ranks = {hit.key: rank for rank, hit in enumerate(answer.hits, 1)}
        self.assertEqual([(e.key, e.rank, pb.Explanation.Verdict.Name(e.verdict)) for e in answer.explanations],
                         [(hit.key, ranks.get(hit.key, 0), "HIT" if hit.key in ranks else "PASSED_OVER")
                          for hit in whole.hits])

    def test_sluicectl_asks_with_mmr(self):
        system = self.open()
        plain = system.queries.draw("recjpq", "exact", k=5)
        same = pb.Query()
        same.CopyFrom(plain)
        same.mmr.diversity, same.mmr.candidates = 0.5, 40
        answer, whole = self.ask(same)
        chosen = [hit.key for hit in answer.hits]
        passed = next(hit.key for hit in whole.hits if hit.key not in chosen)
        words = ["query", "--json", wire.dumps(wire.query_json(plain)).decode()]
        printed = json.loads(system.daemon.ctl(*words, "--mmr", "0.5:40", "--format", "json"))
        self.assertEqual([hit["key"].encode() for hit in printed["hits"]], chosen)
        usual = json.loads(system.daemon.ctl(*words, "--mmr", "0.5", "--format", "json"))
        self.assertEqual(len(usual["hits"]), 5)
        self.assertIn("it is among the candidates of mmr, and others were chosen",
                      system.daemon.ctl("explain", wire.dumps(wire.query_json(same)).decode(), passed.decode()))

    def test_wrong_queries_are_errors_and_good_ones_beside_them_are_answered(self):
        system = self.open()
        wrong = [(2, pb.Mmr(candidates=5), r"mmr\.diversity is missing, or 0"),
                 (2, pb.Mmr(diversity=1.01), r"mmr\.diversity: 1\.01; it must be above 0, and at most 1"),
                 (2, pb.Mmr(diversity=float("nan")), r"mmr\.diversity: -?nan"),
                 (7, pb.Mmr(diversity=1, candidates=6), r"mmr\.candidates: 6; it must be from k, which is 7, to 1000"),
                 (7, pb.Mmr(diversity=1, candidates=1001), r"mmr\.candidates: 1001; it must be from k"),
                 (1001, pb.Mmr(diversity=1), r"k is 1001; with mmr it must be from 1 to 1000")]
        queries = []
        for k, mmr, _ in wrong:
            queries.append(system.queries.draw("mol", "exact", k=k, mmr=mmr))
            system.send(queries[-1], "protobuf")
        good = system.send(system.queries.draw("mol", "exact", k=200, mmr=pb.Mmr(diversity=0.5)))
        answers = system.client.wait([query.id for query in queries] + [good.id])
        for query, (_, _, message) in zip(queries, wrong):
            system.oracle.check_error(query, answers[query.id], "BAD_QUERY")
            self.assertRegex(answers[query.id].error.message, message)
        self.assertEqual(len(answers[good.id].hits), 200)


if __name__ == "__main__":
    unittest.main()
