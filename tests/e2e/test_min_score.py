#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of a least score, through Kafka: hits, receipts and explanations beside those of the same query without it,
which the oracle checks. test_shards.py has it with shards."""

import json
import tempfile
import unittest
from pathlib import Path

import numpy as np

import boosts
import data
import filters
import models
import wire
from harness import Case, System
from wire import pb

N_ITEMS = 1500


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models with least scores")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in ("dot", "bilinear", "mol", "recjpq")}
    models.random_vectors(rng, paths["dot"], "dot")
    models.random_vectors(rng, paths["bilinear"], "bilinear", rank=9)
    models.random_mol(rng, paths["mol"])
    models.random_recjpq(rng, paths["recjpq"], b=16)
    spaces = {name: models.load(path) for name, path in paths.items()}


class MinScore(Case):
    def open(self):
        system = self.system = System(paths, spaces, name=self.id(), types=filters.TYPES)
        self.addCleanup(system.close)
        system.open()
        for i in range(N_ITEMS):
            system.put(b"item-%04d" % i)
        system.sync()
        return system

    def ask(self, query):
        return self.system.client.wait([self.system.send(query).id])[query.id]

    def ask_without(self, query):
        query.at_least.extend(self.system.positions())
        answer = self.ask(query)
        self.system.oracle.check(query, answer)
        return answer

    def with_least(self, query, min_score):
        same = pb.Query()
        same.CopyFrom(query)
        same.id, same.min_score = f"{query.id} from {min_score}", min_score
        return same

    def draw_least(self, whole):
        """Return a score that leaves all, some or none of the hits; if it can prove the answer, just the one above the
        bound."""
        scores = [hit.score for hit in whole.hits] or [0.0]
        above = np.nextafter(np.float32(data.pick(self.system.rng, scores)), np.inf)
        if not whole.receipt.exact and whole.receipt.bound < scores[0]:
            return np.nextafter(np.float32(whole.receipt.bound), np.inf)
        return np.float32(data.pick(self.system.rng, [data.pick(self.system.rng, scores), scores[0] + 1,
                                                      scores[-1] - 1, above]))

    def draw_query(self, name, method):
        rng, query = self.system.rng, self.system.queries.draw(name, method, k=int(self.system.rng.integers(1, 60)))
        if rng.random() < 0.5:
            query.filter, parameters = self.system.items.draw.filter()
            query.parameters.extend(wire.make_value(value) for value in parameters)
        if rng.random() < 0.3:
            query.max_per.attribute, query.max_per.n = "country", 2
        if rng.random() < 0.3:
            boosts.Draw(rng, filters.TYPES).add(query)
            if query.boosts and not query.HasField("now_unix_ms"):
                query.now_unix_ms = filters.Draw.NOW  # otherwise it is that of each record
        return query

    def assert_cut(self, query, answer, whole):
        where = f"{query.space} {query.method} k {query.k} from {query.min_score}"
        self.assertFalse(answer.HasField("error"), answer.error.message)
        left = [hit for hit in whole.hits if hit.score >= query.min_score]
        self.assertEqual(list(answer.hits), left, where)
        bound = whole.receipt.bound if whole.receipt.HasField("bound") else -np.inf
        is_proven = whole.receipt.exact or bound < query.min_score
        is_all = bound == -np.inf and len(left) == len(whole.hits)
        if len(left) < query.k:
            bound = max(bound, query.min_score)
        self.assertEqual(answer.receipt.exact, is_proven, where)
        if not query.HasField("max_per"):  # then what is too low may have been crowded out as well
            self.assertEqual(answer.receipt.HasField("bound"), not is_all, where)
        self.assertEqual(answer.receipt.bound, bound if answer.receipt.HasField("bound") else 0, where)

    def test_hits_are_those_of_the_same_query_that_reach_it(self):
        self.open()
        n_cut = n_proven = 0
        for name, model in spaces.items():
            for method in model.methods():
                for _ in range(6):
                    query = self.draw_query(name, method)
                    whole = self.ask_without(query)
                    least = self.with_least(query, self.draw_least(whole))
                    answer = self.ask(least)
                    self.assert_cut(least, answer, whole)
                    n_cut += len(answer.hits) < len(whole.hits)
                    n_proven += answer.receipt.exact and not whole.receipt.exact
        print(f" [{n_cut} answers were cut, {n_proven} were proven by that] ", end="", flush=True)
        self.assertGreater(n_cut, 20)

    def test_what_is_too_low_is_explained(self):
        self.open()
        query = self.system.queries.draw("dot", "exact", k=12)
        whole = self.ask_without(query)
        least = self.with_least(query, whole.hits[5].score)
        least.explain.extend([*(hit.key for hit in whole.hits), b"nothing"])
        got = {e.key: (pb.Explanation.Verdict.Name(e.verdict), e.rank, e.score) for e in self.ask(least).explanations}
        due = {hit.key: ("HIT", i + 1, hit.score) if hit.score >= least.min_score else ("TOO_LOW", 0, hit.score)
               for i, hit in enumerate(whole.hits)}
        self.assertEqual(got, {**due, b"nothing": ("NO_ITEM", 0, 0)})

    def test_mmr_chooses_among_what_reaches_it(self):
        self.open()
        n_other = 0
        for _ in range(8):
            query = self.system.queries.draw("dot", "exact", k=20)
            whole = self.ask_without(query)
            least = self.with_least(query, whole.hits[9].score)
            least.k, least.mmr.diversity, least.mmr.candidates = 5, 0.7, 20
            among = pb.Query()  # the same candidates
            among.CopyFrom(query)
            among.id, among.k, among.mmr.diversity = query.id + " among as many", 5, 0.7
            among.mmr.candidates = sum(hit.score >= least.min_score for hit in whole.hits)
            answer = self.ask(least)
            self.assertEqual(list(answer.hits), list(self.ask(among).hits))
            n_other += [hit.key for hit in answer.hits] != [hit.key for hit in whole.hits[:5]]
        self.assertGreater(n_other, 0)  # of one query the five best may differ most

    def test_sluicectl_asks_with_it(self):
        self.open()
        query = self.system.queries.draw("recjpq", "exact", k=9)
        hits = self.ask_without(query).hits
        words = ["query", "--json", wire.dumps(wire.query_json(query)).decode()]
        printed = json.loads(self.system.daemon.ctl(*words, "--min-score", repr(hits[4].score), "--format", "json"))
        self.assertEqual([hit["key"].encode() for hit in printed["hits"]], [hit.key for hit in hits[:5]])
        least = wire.dumps(wire.query_json(self.with_least(query, hits[4].score))).decode()
        said = self.system.daemon.ctl("explain", least, hits[7].key.decode())
        self.assertIn("its score is below min_score", said)


if __name__ == "__main__":
    unittest.main()
