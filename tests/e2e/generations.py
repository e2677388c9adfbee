# SPDX-License-Identifier: Apache-2.0
"""Generations of a model for tests: their files, the records of the control topic, and what daemons say of them."""

import hashlib
import json
import time
from pathlib import Path

import models


def part_name(generation):
    """The name of a generation's part of "books": generation 1 has the plain one."""
    return "books" if generation == 1 else f"books@{generation}"


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write_models(rng, folder, numbers, similarity="bilinear", **shape):
    """Write a random model for each generation. Return their paths by number."""
    paths = {number: Path(folder) / f"{number}.safetensors" for number in numbers}
    for path in paths.values():
        models.random_vectors(rng, path, similarity, **shape)
    return paths


def rows(daemon):
    """Return what a daemon says of each generation, by number; {}: it does not listen."""
    answer = daemon.get("/status")
    found = json.loads(answer[1])["models"] if answer and answer[0] == 200 else None
    return {row["generation"]: row for row in found["generations"]} if found else {}


def current(daemon):
    return next((number for number, row in rows(daemon).items() if row["current"]), None)


class ControlTopic:
    """Writes the control topic of one space, as sluicectl does, and knows what it has asked for."""

    def __init__(self, system, space, paths):
        self.system, self.space, self.paths = system, space, paths
        self.live, self.retired, self.switches = {1}, set(), []

    def write(self, key, value):
        self.system.producer.produce(self.system.topic("models"), json.dumps(value).encode(), key.encode())
        assert self.system.producer.flush(30) == 0, "the control topic cannot be written"

    def wanted(self):
        return self.switches[-1]["to"] if self.switches else 1

    def add(self, number):
        path = self.paths[number]
        self.write(f"{self.space}@{number}", {"add": {"path": str(path), "sha256": digest(path)}})
        self.live.add(number)

    def switch(self, number):
        self.switches.append({"to": number, "at_ms": int(time.time() * 1000)})
        self.write(self.space, {"switches": self.switches})

    def retire(self, number):
        self.write(f"{self.space}@{number}", {"retire": True})
        self.live.discard(number)
        self.retired.add(number)
