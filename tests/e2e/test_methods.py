#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of every method of every similarity, on one catalogue that changes between rounds of queries."""

import tempfile
import unittest
from pathlib import Path

import data
import models
from harness import Case, System
from oracle import check_epochs
from wire import pb

N_ITEMS = 2000
N_CHANGED = 100
N_ROUNDS = 3
# Methods that the error message for an unknown method must list, by similarity.
VECTOR_METHODS = ("exact", "brute_force")
METHODS = {
    "dot": VECTOR_METHODS, "cosine": VECTOR_METHODS, "weighted_dot": VECTOR_METHODS,
    "matrix": (*VECTOR_METHODS, "low_rank(R)"), "factors": (*VECTOR_METHODS, "low_rank(R)"),
    "mol": ("exact", "brute_force", "two_pass", "average(N)", "per_embedding(N)", "combined(N1,N2)"),
    "recjpq": ("exact", "default", "pqtopk", "prune(BS)", "prune_inflated(BS,PERCENT)", "prune_limited(BS,ITERATIONS)"),
}


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    rng = data.generator("models of every similarity")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in METHODS}
    for name in ("dot", "cosine", "weighted_dot"):
        models.random_vectors(rng, paths[name], name)
    models.random_vectors(rng, paths["matrix"], "bilinear", n=40)
    models.random_vectors(rng, paths["factors"], "bilinear", rank=8)
    models.random_mol(rng, paths["mol"], uid_hash=(13,), glu=data.pick(rng, ["geglu", "swiglu"]))
    models.random_recjpq(rng, paths["recjpq"], m=8, b=64, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class Methods(Case):
    @classmethod
    def setUpClass(cls):
        cls.system = System(paths, spaces, name="methods")
        cls.addClassCleanup(cls.system.close)
        cls.system.open()
        cls.keys = [b"item-%04d" % i for i in range(N_ITEMS)]
        for key in cls.keys:
            cls.system.put(key)
        cls.system.sync()

    @classmethod
    def tearDownClass(cls):
        check_epochs(cls.system.answers)
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()
        print(f"\n{cls.system.oracle.checked} answers checked; the worst score is off by "
              f"{cls.system.oracle.worst_error:.1e} of the range", flush=True)

    def change(self):
        """Write random changes: puts, updates of all parts or of one, new parts and deletes."""
        system, some = self.system, list(self.keys)
        system.rng.shuffle(some)
        for i in range(0, 5 * N_CHANGED, 5):
            name = data.pick(system.rng, list(spaces))
            system.put(some[i])
            system.put(some[i + 1], system.items.item(list(spaces)))
            system.put(some[i + 2], system.items.item([name]))
            system.put_raw(some[i + 3], None)
            system.put_raw(some[i + 4], None)
            system.put(some[i + 4], system.items.item([name]))

    def methods_of(self, query, name, **fields):
        """Return copies of the query, one for each method of its space."""
        queries = []
        for method in spaces[query.space].methods():
            queries.append(pb.Query(**fields))
            queries[-1].MergeFrom(query)
            queries[-1].id, queries[-1].method = f"{query.id} {name} {method}", method
        return queries

    def draw(self, name, **fields):
        """Draw a query for a space, and return it with each method. Each waits for all changes so far."""
        return self.methods_of(self.system.queries.draw(name, at_least=self.system.positions(), **fields), "by")

    def ask_all(self):
        """Check every method of every space: with few hits, many hits, all items, and the best items excluded."""
        state = self.system.oracle.state(self.system.oracle.end())
        firsts = [query for name in spaces for query in self.draw(name, k=10)]
        self.system.ask(firsts)
        queries = []
        for name in spaces:
            keys = state.space(name).keys
            first = next(query for query in firsts if query.space == name)
            best = [hit.key for hit in self.system.client.replies[first.id][0].answer.hits]
            queries += self.draw(name, k=1) + self.draw(name, k=100) + self.draw(name, k=len(keys) + 7)
            queries += self.draw(name, k=10, exclude=[*keys[::3], b"nobody"])
            queries += self.methods_of(first, "without the best", exclude=best[::2])
        self.system.ask(queries)

    def test_rounds_of_changes(self):
        self.ask_all()
        for _ in range(N_ROUNDS):
            self.change()
            # These are answered from the current epoch, while the changes are still being applied.
            crowd = [self.system.queries.draw(name, method) for name in spaces for method in spaces[name].methods()]
            for query in crowd:
                self.system.send(query)
            self.system.check(crowd)
            self.ask_all()

    def test_all_but_a_few_items_go_and_come_back(self):
        for key in self.keys[5:]:
            self.system.put_raw(key, None)
        self.system.sync()
        self.system.ask([query for name in spaces for query in self.draw(name, k=3) + self.draw(name, k=20)])
        for key in self.keys[5:]:
            self.system.put(key)
        self.system.sync()
        self.system.ask([query for name in spaces for query in self.draw(name, k=20)])

    def test_queries_of_zeros_tie_everywhere(self):
        state = self.system.oracle.state(self.system.oracle.end())
        for name, model in spaces.items():
            if model.similarity == "mol":
                continue
            zeros = pb.Vector(values=[0] * (model.d if model.similarity == "recjpq" else model.dq))
            query = self.system.queries.draw(name, k=30, exclude=state.space(name).keys[3:5])
            query.vector.CopyFrom(zeros)
            queries = self.methods_of(query, "by")
            self.system.ask(queries)
            due = [key for i, key in enumerate(state.space(name).keys) if i not in (3, 4)][:30]
            for query in queries:
                answer = self.system.client.replies[query.id][0].answer
                if answer.receipt.exact:
                    with self.subTest(space=name, method=query.method):
                        self.assertEqual([(hit.key, hit.score) for hit in answer.hits], [(key, 0) for key in due])

    def test_a_method_that_is_not_there_is_answered_with_those_that_are(self):
        wrong = {name: ["nearest", "exact(3)", "low_rank", "Exact", "average()", "brute_force(1)"] for name in spaces}
        for name in ("dot", "cosine", "weighted_dot"):
            wrong[name] += ["low_rank(3)", "average(10)", "pqtopk"]
        wrong["matrix"] += ["low_rank(0)", "low_rank(41)", "low_rank(1,2)", "average(10)"]
        wrong["factors"] += ["low_rank(0)", "low_rank(25)"]
        wrong["mol"] += ["average", "average(0)", "per_embedding(1,2)", "combined(3)", "combined(0,3)", "prune(8)"]
        wrong["recjpq"] += ["prune", "prune(0)", "prune(257)", "prune_inflated(8,99)", "prune_inflated(8)",
                            "prune_limited(8)", "prune_limited(8,0)", "average(10)", "two_pass"]
        queries = [self.system.queries.draw(name, method) for name in spaces for method in wrong[name]]
        for query in queries:
            self.system.send(query)
        answers = self.system.client.wait([query.id for query in queries])
        for query in queries:
            with self.subTest(space=query.space, method=query.method):
                self.system.oracle.check_error(query, answers[query.id], "UNKNOWN_METHOD")
                for method in (query.method, *METHODS[query.space]):
                    self.assertIn(method, answers[query.id].error.message)


if __name__ == "__main__":
    data.main()
