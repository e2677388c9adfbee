# SPDX-License-Identifier: Apache-2.0
"""Generations of a model for tests: their files, the records of the control topic, what daemons say of them, and queries
that never pause."""

import hashlib
import json
import threading
import time
from pathlib import Path

import models


def part_name(generation):
    """The name of a generation's part of "books": generation 1 has the plain one."""
    return "books" if generation == 1 else f"books@{generation}"


def name_of(generation):
    """The name of a generation's part that says which one it is, of the first one too."""
    return f"books@{generation}"


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write_models(rng, folder, numbers, similarity="bilinear", **shape):
    """Write a random model for each generation. Return their paths by number."""
    paths = {number: Path(folder) / f"{number}.safetensors" for number in numbers}
    for path in paths.values():
        if similarity == "mol":
            models.random_mol(rng, path, **shape)
        elif similarity == "recjpq":
            models.random_recjpq(rng, path, **shape)
        else:
            models.random_vectors(rng, path, similarity, **shape)
    return paths


def rows(daemon, space="books"):
    """Return what a daemon says of each generation of a space, by number; {}: it does not listen."""
    answer = daemon.get("/status")
    found = json.loads(answer[1])["models"] if answer and answer[0] == 200 else None
    return {row["generation"]: row for row in found["generations"] if row["space"] == space} if found else {}


def current(daemon):
    return next((number for number, row in rows(daemon).items() if row["current"]), None)


class ControlTopic:
    """Writes the control topic of one space, as sluicectl does, and knows what it has asked for."""

    def __init__(self, system, space, paths):
        self.system, self.space, self.paths = system, space, paths
        self.live, self.retired, self.switches = {1}, set(), []
        self.derived = {}  # {generation: the one that it derives from}

    def write(self, key, value):
        self.system.producer.produce(self.system.topic("models"), json.dumps(value).encode(), key.encode())
        assert self.system.producer.flush(30) == 0, "the control topic cannot be written"

    def wanted(self):
        return self.switches[-1]["to"] if self.switches else 1

    def root(self, number):
        """Return the generation whose parts this one uses."""
        return self.root(self.derived[number]) if number in self.derived else number

    def users(self, root):
        """Return the live generations that use its parts."""
        return {number for number in self.live if self.root(number) == root}

    def add(self, number, derive=None, **more):
        path = self.paths[number]
        if derive:
            self.derived[number] = derive
        self.write(f"{self.space}@{number}", {"add": {"path": str(path), "sha256": digest(path), **more,
                                                      **self.derive_of(number)}})
        self.live.add(number)

    def derive_of(self, number):
        return {"derive": self.derived[number]} if number in self.derived else {}

    def switch(self, number, ahead_ms=0):
        self.switches.append({"to": number, "at_ms": int(time.time() * 1000) + ahead_ms})
        self.write(self.space, {"switches": self.switches[-64:]})

    def retire(self, number):
        self.write(f"{self.space}@{number}", {"retire": True, **self.derive_of(number)})
        self.live.discard(number)
        self.retired.add(number)


class Load:
    """Asks queries all the time, until it is stopped. draw() makes one."""

    def __init__(self, system, draw, pause_s):
        self.system, self.draw, self.pause_s, self.queries = system, draw, pause_s, []
        self.is_stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def run(self):
        while not self.is_stopping.wait(self.pause_s):
            self.queries.append(self.system.send(self.draw()))

    def __exit__(self, *exc):
        self.is_stopping.set()
        self.thread.join()
