# SPDX-License-Identifier: Apache-2.0
"""Random items and queries for the tests.

One seed determines all of them. It is printed at the start; setting SLUICE_SEED to it repeats the run.
"""

import os
import secrets
import sys
import unittest
import zlib
from pathlib import Path

import numpy as np

import filters
import wire
from wire import pb

ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("SLUICE_SEED") or secrets.randbelow(2 ** 31))
QUICK = os.environ.get("E2E_QUICK") == "1"
CI = os.environ.get("CI") == "true"
print(f"SLUICE_SEED={SEED}", file=sys.stderr, flush=True)


def golden_dir():
    return Path(os.environ.get("SLUICE_GOLDEN") or ROOT / "tests" / "golden")


def generator(name):
    """Return a test's own random stream: the test draws the same data whether it runs alone or with others."""
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


def main():
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    # ctest reads exit status 77 as "skipped".
    sys.exit(77 if result.skipped and not result.testsRun else 0)


def pick(rng, options):
    return options[rng.integers(len(options))]


def some(rng, options):
    """Return some of the options, each once, in random order."""
    return [str(option) for option in rng.permutation(list(options))[:rng.integers(1, len(options) + 1)]]


class Items:
    """Draw random items. spaces: {name: model}; types: {attribute: type}, or None: items without attributes."""

    def __init__(self, rng, spaces, types=None):
        self.rng, self.spaces = rng, spaces
        self.draw = filters.Draw(rng, types) if types else None
        self.past = {name: [] for name in spaces}

    def part(self, name):
        """Return a random part. One in 25 repeats an earlier part, which makes scores tie."""
        past = self.past[name]
        if past and self.rng.random() < 0.04:
            return pick(self.rng, past)
        part = self._new_part(self.spaces[name])
        if len(past) < 1000:
            past.append(part)
        return part

    def _new_part(self, model):
        rng = self.rng
        if model.similarity == "recjpq":
            return pb.Part(codes=rng.integers(0, model.b, model.m, np.uint8).tobytes())
        kind = pick(rng, ["F32", "F32", "F32", "F16", "BF16", "VALUES"])
        vector = rng.standard_normal(model.dx).astype(np.float32)
        if rng.random() < 0.04:
            vector[:] = 0
        if model.similarity != "mol" or rng.random() < 0.9:
            return pb.Part(vector=wire.vector(vector, kind))
        components, gate = model.items(vector.astype(np.float64)[None])
        return pb.Part(components=wire.vector(components[0]), item_gate=wire.vector(gate[0]))

    def item(self, names=None):
        """Return an item with a part in each named space. By default that is one random space or all of them."""
        if names is None:
            names = list(self.spaces)
            if self.rng.random() < 0.3:
                names = [pick(self.rng, names)]
        item = pb.Item()
        for name in names:
            item.parts[name].CopyFrom(self.part(name))
        if self.draw:
            self.set_attributes(item, self.draw.attributes())
        return item

    @staticmethod
    def set_attributes(item, attributes):
        for name, value in attributes.items():
            item.attributes[name].CopyFrom(wire.make_value(value))
        return item

    def encode(self, item):
        """Return (value, headers) in a random one of the encodings that a producer may use."""
        form = pick(self.rng, ["protobuf"] * 4 + ["bare"] * 3 + ["array", "values", "data"])
        if form in ("protobuf", "bare"):
            return item.SerializeToString(), [("content-type", wire.PROTOBUF.encode())] if form == "protobuf" else []
        headers = [("content-type", wire.JSON.encode())] if self.rng.random() < 0.5 else []
        return wire.dumps(wire.item_json(item, form)), headers


def awkward_keys():
    """Return keys that a text format may not handle correctly."""
    return [b"\xff\xfe\x00raw", b'quo"te', b"back\\slash", b"tab\tnew\nline", b"a\x00b",
            "\u00fcml\u00e4ut \U0001f600".encode(), b"/slash</script>", b" ", b"k" * 256, b"\x01\x02", b"\xed\xa0\x80"]


class Queries:
    """Draw random queries. spaces: {name: model}."""

    def __init__(self, rng, spaces, prefix):
        self.rng, self.spaces, self.prefix = rng, spaces, f"{prefix}-{secrets.token_hex(3)}"
        self.count = 0

    def methods(self, name):
        return self.spaces[name].methods()

    def draw(self, name, method=None, k=None, **fields):
        rng, model = self.rng, self.spaces[name]
        self.count += 1
        if method is None:
            method = pick(rng, self.methods(name))
        query = pb.Query(id=f"{self.prefix}-{self.count}", space=name, method=method, k=k or int(rng.integers(1, 101)),
                         **fields)
        if model.similarity == "recjpq":
            query.vector.CopyFrom(wire.vector(rng.standard_normal(model.d), pick(rng, ["F32", "F16", "VALUES"])))
            return query
        if model.similarity != "mol":
            query.vector.CopyFrom(wire.vector(rng.standard_normal(model.dq), pick(rng, ["F32", "BF16", "VALUES"])))
            return query
        vector = rng.standard_normal(model.dq)
        vector = ((vector - vector.mean()) / vector.std()).astype(np.float32)
        user = pick(rng, [0, 5, -3, 2 ** 40 + 3, int(rng.integers(-2 ** 62, 2 ** 62))])
        if rng.random() < 0.8:
            query.vector.CopyFrom(wire.vector(vector, pick(rng, ["F32", "BF16", "VALUES"])))
            if model.uid_hash:
                query.user_id = user
        else:
            components, gate = model.queries(vector.astype(np.float64)[None], [user])
            query.components.CopyFrom(wire.vector(components[0]))
            query.query_gate.CopyFrom(wire.vector(gate[0]))
        return query

    def encode(self, query, form=None):
        """Return (value, headers) in an encoding; by default a random one.

        form: "protobuf", "bare" (protobuf without a content-type header), or JSON with its vectors as an "array",
            "values" or "data".
        """
        form = form or pick(self.rng, ["protobuf", "bare", "array", "values", "data"])
        if form in ("protobuf", "bare"):
            return query.SerializeToString(), [("content-type", wire.PROTOBUF.encode())] if form == "protobuf" else []
        text = wire.query_json(query, form, self.rng.random() < 0.3, self.rng.random() < 0.3)
        return wire.dumps(text), [("content-type", wire.JSON.encode())] if self.rng.random() < 0.5 else []
