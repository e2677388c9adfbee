#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of malicious messages, with a real broker.

A message may cost memory in proportion to its size only. The daemon must refuse it with a reason, and must not hold up
other messages.
"""

import json
import os
import re
import resource
import tempfile
import unittest
from pathlib import Path

import data
import models
import real_broker
import wire
from harness import Case, System, eventually
from wire import pb

MORE_MEMORY = 600 << 20  # address space in bytes that the daemon may add after it is ready
PROTOBUF = [("content-type", wire.PROTOBUF.encode())]
JSON = [("content-type", wire.JSON.encode())]


def setUpModule():
    global broker, folder, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"movies": data.golden_dir() / "small_uid" / "weights.safetensors",
             "codes": Path(folder.name) / "codes.safetensors"}
    models.random_recjpq(data.generator("wire models"), paths["codes"], m=8, b=256, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def merges(size, first, again):
    """Return about `size` bytes: one field of half that size, then many small repetitions to merge into it."""
    return first + again * ((size - len(first)) // len(again))


def vector_merges(number, size):
    return merges(size, field(number, field(3, bytes(size // 8 * 4))), field(number, b"\x1d\0\0\0\0"))


def value_merges(size):
    return merges(size, field(2, field(1, field(3, bytes(size // 8 * 4)))), field(2, field(1, b"\x1d\0\0\0\0")))


def memory_of(pid, name):
    return int(re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)[1]) << 10


class Wire(Case):
    """Tests that share one daemon with a memory limit. Every test leaves it running."""

    @classmethod
    def setUpClass(cls):
        system = cls.system = System(paths, spaces, None, broker.bootstrap, "wire", "wire")
        broker.create_topic(system.topic("catalogue"), 2, {"cleanup.policy": "compact"})
        for kind in ("queries", "answers"):
            broker.create_topic(system.topic(kind), 1)
        broker.create_topic(system.topic("dead-letters"), 1)
        cls.addClassCleanup(system.close)
        system.open()
        for i in range(500):
            system.put(b"item-%d" % i)
        system.check_catalogue()
        cls.pid = system.daemon.process.pid
        cls.rss = memory_of(cls.pid, "VmRSS")
        if not os.environ.get("LD_PRELOAD"):
            limit = memory_of(cls.pid, "VmSize") + MORE_MEMORY
            resource.prlimit(cls.pid, resource.RLIMIT_AS, (limit, limit))

    @classmethod
    def tearDownClass(cls):
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()

    def good_answers(self, count=4):
        names = list(spaces)
        self.system.ask([self.system.queries.draw(names[i % len(names)]) for i in range(count)])

    def assert_unharmed(self):
        self.good_answers()
        self.assertTrue(self.system.daemon.is_running())
        self.assertLess(memory_of(self.pid, "VmRSS"), self.rss + (200 << 20))

    def refused(self, query_id, value, headers, code="BAD_QUERY"):
        """Send a query that must be refused, and return the error message."""
        self.system.client.send(query_id, value, headers)
        answer = self.system.client.wait([query_id])[query_id]
        self.assertEqual(pb.Error.Code.Name(answer.error.code), code)
        return answer.error.message

    def refused_without_echo(self, key, value, headers):
        """Do the same for a query whose id cannot be echoed. The record's key identifies its answer."""
        client = self.system.client
        client.send("", value, headers, key=key)

        def found():
            client.poll(0.05)
            return [r.answer for r in client.replies.get("", []) if r.key == key]
        client.flush()
        eventually(found, "the answer without an id")
        answer = found()[0]
        self.assertEqual((answer.id, answer.space), ("", ""))
        self.assertEqual(pb.Error.Code.Name(answer.error.code), "BAD_QUERY")
        return answer.error.message

    def test_items_that_merge_a_field_again_and_again(self):
        """Such an item of 200 KB once took 2 GB. One of 990 KB crashed the daemon, again at every start."""
        system, bad = self.system, {}
        for i, size in enumerate((50_000, 200_000, 990_000)):
            for name, value in (("parts.value.vector", field(2, vector_merges(1, size))),
                                ("parts.value", value_merges(size))):
                system.put(b"before-%d" % i)
                bad[f"{name} {size}".encode()] = f"{name}: it occurs twice"
                system.put_raw(f"{name} {size}".encode(), field(1, field(1, b"movies") + value), PROTOBUF)
                system.put(b"after-%d" % i)
        lists = b'{"parts":{"movies":{"vector":[' + b"{}," * 300_000 + b"0]}}}"
        system.put_raw(b"bad-json", lists, JSON)
        bad[b"bad-json"] = "too many values"
        system.put_raw(b"bad-unknown", field(1, field(1, b"movies")) + b"\x78\x01" * 400_000, PROTOBUF)
        bad[b"bad-unknown"] = "bytes of memory to decode"
        system.put(b"last")
        system.check_catalogue()
        letters = system.wait_dead_letters({(system.topic("catalogue"), r.partition, r.offset)
                                            for r in system.records if r.key in bad})
        for record in letters.values():
            if record.key in bad:
                self.assertIn(bad[record.key], dict(record.headers)["sluice.reason"].decode())
        self.assert_unharmed()

    def test_queries_that_merge_a_field_again_and_again(self):
        for size in (50_000, 200_000, 990_000):
            value = field(1, b"merge-%d" % size) + field(2, b"movies") + vector_merges(5, size)
            self.assertIn("vector: it occurs twice", self.refused(f"merge-{size}", value, PROTOBUF))
        unknown = field(1, b"unknown") + b"\xa0\x06\x01" * 300_000  # field 100: a query has all numbers below 16
        self.assertIn("space", self.refused("unknown", unknown, PROTOBUF, "UNKNOWN_SPACE"))
        lists = b'{"id":"x","vector":[' + b"{}," * 300_000 + b"0]}"
        for i, value in enumerate((b'{"id":"x","vector":' + b"[" * 900_000, lists)):
            self.system.client.send(f"nobody's-{i}", value, JSON)
        self.system.client.flush()
        self.assert_unharmed()

    def test_fields_that_are_too_long_are_not_echoed(self):
        long = b"x" * 150_000
        for form in ("protobuf", "json"):
            for number, name in ((1, "id"), (2, "space")):
                key = f"long {name} {form}".encode()
                if form == "json":
                    value, headers = json.dumps({name: long.decode(), "k": 1}).encode(), JSON
                else:
                    value, headers = field(number, long), PROTOBUF
                self.assertIn(f"{name}: 150000 bytes, at most", self.refused_without_echo(key, value, headers))
            most = pb.Query(id=f"{form} exclude", space="codes", k=1, exclude=[b"abc"] * 100_001)
            at_least = pb.Query(id=f"{form} at_least", space="codes", k=1, at_least=[pb.Position()] * 4097)
            method = pb.Query(id=f"{form} method", space="codes", k=1, method="m" * 129)
            for query, message in ((most, "exclude: 100001 elements, at most 100000"),
                                   (at_least, "at_least: 4097 elements, at most 4096"),
                                   (method, "method: 129 bytes, at most 128")):
                value = query.SerializeToString() if form == "protobuf" else json.dumps(wire.query_json(query)).encode()
                self.assertEqual(self.refused(query.id, value, PROTOBUF if form == "protobuf" else JSON), message)
        self.assert_unharmed()

    def test_what_a_field_cannot_hold_is_answered_with_its_name(self):
        """All of these once became dead letters, and their clients never got an answer."""
        for i, (text, message) in enumerate((
                ('"k":9223372036854775808', "k: 9223372036854775808 is not between 0 and 4294967295"),
                ('"k":-1', "k: -1 is not between 0 and 4294967295"),
                ('"user_id":9223372036854775808', "user_id: 9223372036854775808 is not between"),
                ('"vector":[1e400]', "vector[0]: 1e400 does not fit in 32 bits"))):
            value = f'{{"id":"large-{i}","space":"codes",{text}}}'.encode()
            self.assertIn(message, self.refused(f"large-{i}", value, JSON))
        for number, name in ((2, "space"), (4, "method"), (12, "reply_topic")):
            value = field(number, b"a\0b") + field(1, b"zero " + name.encode())
            self.assertEqual(self.refused(f"zero {name}", value, PROTOBUF), f"{name}: text with a zero character")
            value = field(number, b"a\xff") + field(1, b"utf " + name.encode())
            self.assertIn(f"{name}: ", self.refused(f"utf {name}", value, PROTOBUF))
        self.assert_unharmed()


if __name__ == "__main__":
    unittest.main(verbosity=2)
