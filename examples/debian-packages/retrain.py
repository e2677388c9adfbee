#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the MoL model of prepare.py again, as one would after a week: with other random numbers, and with the pairs
that the first training held out.

    retrain.py DIRECTORY            read items.jsonl, which prepare.py has written; write packages-mol-2.safetensors and
                                    items-2.jsonl: the parts of space `packages` alone, for examples/rollout/retrain
"""

import base64
import json
import os
import sys

sys.dont_write_bytecode = True  # write no files but the outputs

import numpy as np

import aptlists
import mol
import relation
import safetensors
from prepare import DIMS, RANK, SEED, say

STEPS = 100


def read_parts(path):
    """Return the names of the items, and their parts of space `packages`."""
    names, parts = [], []
    with open(path, encoding="utf-8") as f:
        for line in f:
            item = json.loads(line)
            names.append(item["key"])
            parts.append(item["value"]["parts"]["packages"])
    return names, parts


def vectors_of(parts):
    data = b"".join(base64.b64decode(part["vector"]["data"]) for part in parts)
    return np.frombuffer(data, "<f2").reshape(len(parts), -1).astype(np.float32)


def known_pairs(names):
    """Return the related pairs of the packages that there are vectors of: the lists may be newer than these."""
    packages = aptlists.read_packages()
    return relation.pairs({name: packages.get(name, {}) for name in names})


def train(x, pairs, weight, rng):
    model = mol.Mol([DIMS] * len(RANK), DIMS, rng=rng)
    mol.train(model, x, pairs, weight, rng, STEPS, rates=(3e-4, 5e-3),
              report=lambda step, loss: say(f"step {step} of {STEPS}: loss {loss:.3f}"))
    return model


def write_items(path, names, parts):
    with open(path, "w", encoding="utf-8") as f:
        for name, part in zip(names, parts):
            f.write(json.dumps({"key": name, "value": {"parts": {"packages": part}}}, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    directory = sys.argv[1]
    names, parts = read_parts(os.path.join(directory, "items.jsonl"))
    pairs, weight = known_pairs(names)
    say(f"{len(names):,} packages and {len(pairs):,} pairs")
    model = train(vectors_of(parts), pairs, weight, np.random.default_rng(SEED + 1))
    safetensors.write(os.path.join(directory, "packages-mol-2.safetensors"), model.w, model.metadata())
    write_items(os.path.join(directory, "items-2.jsonl"), names, parts)
    say("written: packages-mol-2.safetensors, items-2.jsonl")


if __name__ == "__main__":
    main()
