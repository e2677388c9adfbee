# SPDX-License-Identifier: Apache-2.0
"""Daemons of one query group whose space gets new generations of its model.

    Retrained    a recjpq model that is trained again: items get new codes
    Derived      a mol model whose networks alone change: items keep their vectors
"""

import json
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

import models
import wire
from harness import QUIET, SLOWNESS, eventually, merged
from replicas import MODEL, SPACE, Replicas
from wire import pb

BOOKS = {"pq": 8, "px": 8, "d": 32, "dq": 64, "dx": 64, "uid_hash": (), "query_hidden": 512,
         "gating": (128, 128, 128)}


def part_name(generation):
    return f"{SPACE}@{generation}"


class Rollout(Replicas):
    """One daemon, and the models of all generations."""

    GENERATIONS = ()
    METHOD = ""  # of the load

    def __init__(self, broker, n_items, n_partitions):
        super().__init__(broker, 1, n_items, n_partitions)
        broker.create_topic(self.topic("models"), 1, {"cleanup.policy": "compact"})
        self.daemon = self.daemons[0]
        self.paths = {g: Path(self.folder.name) / f"codes-{g}.safetensors" for g in self.GENERATIONS[1:]}
        for path in self.paths.values():
            self._write_model(path)
        self.paths[1] = Path(self.base["spaces"][SPACE]["model"])
        self.models = {g: models.load(path) for g, path in self.paths.items()}

    def _daemon(self, number):
        self.base = merged(self.base, {"models": {"topic": self.topic("models")}})
        return super()._daemon(number)

    def row(self, generation):
        rows = self.daemon.status()["models"]["generations"]
        return next((row for row in rows if row["generation"] == generation), {})

    def await_read(self, timeout_s):
        """Wait until the daemon has applied all that was written."""
        eventually(lambda: all(p["lag"] == 0 for p in self.daemon.status()["catalogue_log"]), "the catalogue",
                   timeout_s)

    def memory_mib(self):
        """Return the daemon's anonymous memory. Pages of files, as those of the store, are the page cache's."""
        status = Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

    def parts_of(self, number):
        """Return the names of an item's parts in the store."""
        return set(json.loads(self.daemon.ctl("get", "--value", f"{number:08d}"))["parts"])

    def is_right(self, query, answer):
        """Is it the answer of the generation that it names?"""
        if answer.generation not in self.models or len(answer.hits) != query.k:
            return False
        keys = np.array([int(hit.key) for hit in answer.hits])
        scores = np.array([hit.score for hit in answer.hits])
        return len(set(keys)) == query.k and self._has_right_scores(query, answer.generation, keys, scores)


class Retrained(Rollout):
    GENERATIONS = (1, 2, 3)
    METHOD = "exact"

    def __init__(self, *arguments):
        self.codes = {}  # of each generation
        super().__init__(*arguments)

    def _write_items(self):
        self.write_parts(1)

    def write_parts(self, generation, transaction=None):
        """Write the generation's part of each item. With a transaction, they are there when it is committed."""
        codes = self.rng.integers(0, MODEL["b"], (self.n_items, MODEL["m"]), np.uint8)
        item = pb.Item()
        item.parts[part_name(generation)].codes = bytes(MODEL["m"])
        head = item.SerializeToString()[:-MODEL["m"]]  # the codes are the last bytes of the record
        producer = self.open_producer() if transaction is None else transaction  # with an empty queue it is false
        for number in range(self.n_items):
            self.write(producer, b"%08d" % number, head + codes[number].tobytes())
        assert producer.flush(600 * SLOWNESS) == 0, "items could not be written"
        self.codes[generation] = np.ascontiguousarray(codes.T)

    def write(self, producer, key, value):
        while True:
            try:
                producer.produce(self.topic("catalogue"), value, key)
                break
            except BufferError:
                producer.poll(0.1)

    def open_producer(self, **more):
        return Producer({**QUIET, "bootstrap.servers": self.broker.bootstrap, "linger.ms": 50, "acks": "all",
                         "queue.buffering.max.messages": 1000000, **more})

    def open_transaction(self):
        producer = self.open_producer(**{"transactional.id": self.prefix, "transaction.timeout.ms": 900000})
        producer.init_transactions(60)
        producer.begin_transaction()
        return producer

    def _has_right_scores(self, query, generation, keys, got):
        """Every item's score is computed: the hits are the best ones, too."""
        centroids = self.models[generation].centroids
        lookup = np.einsum("mbd,md->mb", centroids, wire.floats_of(query.vector).reshape(len(centroids), -1))
        scores = sum(values[column] for values, column in zip(lookup, self.codes[generation]))
        best = np.sort(np.partition(scores, -query.k)[-query.k:])[::-1]
        slack = 1e-5 * (scores.max() - scores.min())
        return all(np.abs(due - got).max() <= slack for due in (scores[keys], best))


class Derived(Rollout):
    GENERATIONS = (1, 2)
    METHOD = "average(4000)"

    def __init__(self, *arguments):
        self.vectors = []
        super().__init__(*arguments)

    def _write_model(self, path):
        models.random_mol(self.rng, path, **BOOKS)

    def _item(self):
        item = pb.Item()
        item.parts[SPACE].vector.CopyFrom(wire.vector(np.ones(BOOKS["dx"])))
        return item, 4 * BOOKS["dx"]

    def _random_bytes(self, n):
        self.vectors.append(self.rng.standard_normal(n // 4, np.float32))
        return self.vectors[-1].tobytes()

    def _has_right_scores(self, query, generation, keys, got):
        """The hits' scores alone: to compute those of all items would take minutes."""
        model = self.models[generation]
        components, gates = model.items(np.stack([self.vectors[key] for key in keys]).astype(np.float64))
        f, gate = model.queries(wire.floats_of(query.vector).astype(np.float64)[None], [])
        return np.abs(model.phi(f[0], gate[0], components, gates) - got).max() <= 1e-4 / model.tau
