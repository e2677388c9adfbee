#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the daemon with its embedded broker: catalogue changes, bad records, all query encodings, bad queries."""

import base64
import json
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

import data
import harness
import models
import safetensors_io
import wire
from harness import SLOWNESS, Case, Kcat, System, eventually
from oracle import check_epochs
from wire import pb

N_ITEMS = 400 if data.QUICK else 5000
N_QUERIES = 12 if data.QUICK else 60
MAX_K = 50000
AT_LEAST_TIMEOUT_MS = int(1500 * SLOWNESS)


def setUpModule():
    global folder, paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    rng = data.generator("embedded models")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in ("taste", "codes")}
    models.random_mol(rng, paths["taste"], uid_hash=(13, 7), glu=data.pick(rng, ["geglu", "swiglu"]),
                      item_hidden=data.pick(rng, [-1, 40]), query_hidden=data.pick(rng, [-1, 48]))
    models.random_recjpq(rng, paths["codes"], m=8, b=100, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


def tearDownModule():
    folder.cleanup()


def key_for_people(key):
    """A key of a JSON answer, as sluicectl prints it in its table."""
    if isinstance(key, dict):
        return "base64:" + key["base64"]
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", key)


class Embedded(Case):
    @classmethod
    def setUpClass(cls):
        cls.system = System(paths, spaces, {"query": {"at_least_timeout_ms": AT_LEAST_TIMEOUT_MS},
                                             "catalogue": {"unknown_spaces": "refuse"}}, name="embedded")
        cls.addClassCleanup(cls.system.close)
        cls.system.open()
        cls.kcat = Kcat(cls.system.bootstrap)
        cls.addClassCleanup(cls.kcat.close)
        cls.keys = [b"item-%05d" % i for i in range(N_ITEMS - len(data.awkward_keys()))] + data.awkward_keys()
        for key in cls.keys:
            cls.system.put(key)
        cls.caught_up()

    @classmethod
    def tearDownClass(cls):
        check_epochs(cls.system.answers)
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()
        print(f"\n{cls.system.oracle.checked} answers checked; the worst score is off by "
              f"{cls.system.oracle.worst_error:.1e} of the range", flush=True)

    @classmethod
    def caught_up(cls):
        """Wait until the daemon has applied everything that was written."""
        cls.system.sync()

        def has_seen():
            seen = {p["partition"]: p["next"] for p in cls.system.daemon.status()["watermark"]}
            return all(seen.get(p, 0) >= n for p, n in cls.system.oracle.end().items())
        eventually(has_seen, "the daemon to see the whole log")

    def draw(self, count, **fields):
        names = list(spaces)
        return [self.system.queries.draw(names[i % len(names)], **fields) for i in range(count)]

    def remove(self, keys):
        for key in keys:
            self.system.put_raw(key, None)
        self.caught_up()

    # ------------------------------------------------------------------------------------------ good queries

    def test_every_method_in_every_format(self):
        queries = [self.system.queries.draw(name, method) for name in spaces
                   for method in self.system.queries.methods(name)]
        for form in ("protobuf", "bare", "array", "values", "data"):
            with self.subTest(form):
                for i, query in enumerate(queries):
                    query.id = f"{self.system.queries.prefix}-{form}-{i}"
                self.system.ask(queries, form)

    def test_many_queries_at_once(self):
        self.system.ask(self.draw(4 * N_QUERIES))

    def test_json_through_kcat(self):
        answers = self.kcat.follow(self.system.topic("answers"))
        queries = {f"kcat {q.id}".encode(): q for q in self.draw(N_QUERIES)}
        lines = [(key, wire.dumps(wire.query_json(q))) for key, q in queries.items()]
        half = len(lines) // 2
        self.kcat.produce(self.system.topic("queries"), lines[:half])
        self.kcat.produce(self.system.topic("queries"), lines[half:], [("content-type", wire.JSON)])
        waiting, deadline = dict(queries), time.monotonic() + 30 * SLOWNESS
        while waiting:
            # The topic also holds other tests' answers, some of which are not text.
            key, value = answers.get(timeout=max(0.1, deadline - time.monotonic()))
            query = waiting.pop(key, None)
            if query:
                self.system.oracle.check(query, wire.answer_from_json(value))

    def test_items_through_kcat(self):
        items = {b"kcat-%d" % i: self.system.items.item() for i in range(20)}
        self.kcat.produce(self.system.topic("catalogue"),
                          [(key, wire.dumps(wire.item_json(item))) for key, item in items.items()])
        self.caught_up()
        self.assertIn(b"kcat-3", self.system.oracle.state(self.system.oracle.end()).items)
        self.system.check_catalogue()
        self.kcat.produce(self.system.topic("catalogue"), [(key, None) for key in items])
        self.caught_up()
        self.assertNotIn(b"kcat-3", self.system.oracle.state(self.system.oracle.end()).items)
        self.system.check_catalogue()

    def test_the_whole_catalogue(self):
        self.system.check_catalogue()
        # Check JSON answers too. They encode keys that are not text differently.
        self.system.ask([self.system.queries.draw(name, "exact", k=MAX_K) for name in spaces], "array", 60)

    def test_exclude(self):
        for name in spaces:
            first = self.system.queries.draw(name, "exact", k=30)
            self.system.ask([first])
            best = [hit.key for hit in self.system.client.replies[first.id][0].answer.hits]
            queries = []
            for method in self.system.queries.methods(name):
                query = pb.Query()
                query.CopyFrom(first)
                query.id, query.method = f"{first.id}-without-{method}", method
                query.exclude.extend([*best[::2], b"nobody", best[0], *data.awkward_keys()])
                queries.append(query)
            self.system.ask(queries)

    def test_k_larger_than_the_catalogue_and_every_item_excluded(self):
        state = self.system.oracle.state(self.system.oracle.end())
        for name in spaces:
            keys = state.space(name).keys
            self.system.ask([self.system.queries.draw(name, "exact", k=len(keys) + 1),
                             self.system.queries.draw(name, "exact", k=len(keys)),
                             self.system.queries.draw(name, "exact", k=5, exclude=keys),
                             self.system.queries.draw(name, "exact", k=5, exclude=keys[1:])], "protobuf")

    # ----------------------------------------------------------------------------------------------- changes

    def test_updates_partial_updates_and_deletes(self):
        rng, some = self.system.rng, list(self.keys)
        rng.shuffle(some)
        third = len(some) // 10
        for key in some[:third]:
            self.system.put(key)
        for key in some[third:2 * third]:
            self.system.put(key, self.system.items.item([data.pick(rng, list(spaces))]))
        for key in some[2 * third:3 * third]:
            self.system.put_raw(key, None)
        for key in some[2 * third:2 * third + third // 2]:
            self.system.put(key, self.system.items.item(["codes"]))
        for i in range(50):
            self.system.put(b"busy", None) if i % 2 else self.system.put_raw(b"busy", None)
        self.system.put_raw(b"never-was-there", None)
        self.caught_up()
        self.system.check_catalogue()
        self.system.ask(self.draw(N_QUERIES))

    def test_at_least_sees_its_own_write(self):
        times = []
        for i in range(10):
            self.system.put(b"fresh-%d" % i)
            self.system.sync()
            started = time.monotonic()
            query = self.system.queries.draw(list(spaces)[i % 2], at_least=self.system.positions())
            self.system.ask([query])
            times.append(self.system.client.replies[query.id][0].arrived - started)
        print(f" [answer that has seen a write: median {np.median(times) * 1e3:.1f} ms] ", end="", flush=True)

    # ------------------------------------------------------------------------------------------- bad records

    def bad_records(self):
        """Return rows of (what is wrong, key, value, headers)."""
        rng, taste, codes = self.system.rng, spaces["taste"], spaces["codes"]
        good = self.system.items.item(["taste", "codes"])
        good_bytes = good.SerializeToString()
        x = rng.standard_normal(taste.dx).astype(np.float32)

        def with_part(space="taste", **fields):
            item = pb.Item()
            item.parts[space].CopyFrom(pb.Part(**fields))
            return item

        def with_number(value, kind):
            y = x.copy()
            y[int(rng.integers(taste.dx))] = value
            if kind == "BF16":
                bits = bytearray(wire.vector(x, "BF16").data)
                bits[2:4] = b"\xc0\x7f" if np.isnan(value) else b"\x80\x7f"
                return with_part(vector=pb.Vector(type="BF16", data=bytes(bits)))
            return with_part(vector=wire.vector(y, kind))

        unit = wire.vector(np.ones(taste.px * taste.d))
        gate = wire.vector(np.ones(taste.n_logits))
        both = pb.Vector(data=x.tobytes(), values=x.tolist())
        messages = {
            "unknown space": with_part("nowhere", vector=wire.vector(x)),
            "one number short": with_part(vector=wire.vector(x[1:])),
            "one number more": with_part(vector=wire.vector(np.append(x, 1))),
            "half a number": with_part(vector=pb.Vector(data=x.tobytes()[:-2])),
            "odd bytes of F16": with_part(vector=pb.Vector(type="F16", data=x.astype("<f2").tobytes() + b"\0")),
            "F16 said, F32 sent": with_part(vector=pb.Vector(type="F16", data=x.tobytes())),
            "an empty vector": with_part(vector=pb.Vector()),
            "an empty part": with_part(),
            "NaN": with_number(np.nan, "F32"), "infinity": with_number(np.inf, "F32"),
            "minus infinity": with_number(-np.inf, "VALUES"), "NaN in F16": with_number(np.nan, "F16"),
            "infinity in F16": with_number(np.inf, "F16"), "NaN in BF16": with_number(np.nan, "BF16"),
            "infinity in BF16": with_number(np.inf, "BF16"), "NaN in values": with_number(np.nan, "VALUES"),
            "data and values": with_part(vector=both),
            "components without gate": with_part(components=unit),
            "gate without components": with_part(item_gate=gate),
            "components too short": with_part(components=wire.vector(np.ones(taste.px * taste.d - 1)), item_gate=gate),
            "gate too long": with_part(components=unit, item_gate=wire.vector(np.ones(taste.n_logits + 1))),
            "codes for mol": with_part(codes=bytes(8)),
            "vector for recjpq": with_part("codes", vector=wire.vector(x)),
            "a code out of range": with_part("codes", codes=bytes([0] * (codes.m - 1) + [codes.b])),
            "the largest code": with_part("codes", codes=b"\xff" * codes.m),
            "a code too few": with_part("codes", codes=bytes(codes.m - 1)),
            "a code too many": with_part("codes", codes=bytes(codes.m + 1)),
        }
        half_good = pb.Item()
        half_good.CopyFrom(good)
        half_good.parts["codes"].codes = bytes(3)
        messages["one good part and a bad one"] = half_good
        rows = [(what, b"bad", item.SerializeToString(), []) for what, item in messages.items()]

        good_json = wire.dumps(wire.item_json(good))
        one = wire.item_json(with_part(vector=wire.vector(x)))["parts"]["taste"]["vector"]

        def json_vector(value):
            return wire.dumps({"parts": {"taste": {"vector": value}}})

        def json_codes(value):
            return wire.dumps({"parts": {"codes": {"codes": value}}})

        texts = {
            "cut off": good_json[:-3], "text behind": good_json + b"x", "an unknown field": b'{"parts":{},"colour":1}',
            "an unknown field in a part": b'{"parts":{"taste":{"colour":[1]}}}', "parts of text": b'{"parts":"all"}',
            "an array": b"[1,2]", "no JSON at all": b"{]", "deep nesting": b'{"parts":' * 5000,
            "too deep arrays": b'{"parts":{"taste":{"vector":' + b"[" * 100000,
            "numbers as text": json_vector([str(v) for v in one]), "a null": json_vector([None] + one[1:]),
            "over the range of a float": json_vector(one[1:]).replace(b"[", b"[1e39,"),
            "over the range of a double": json_vector(one[1:]).replace(b"[", b"[1e999,"),
            "the word NaN": json_vector(one[1:]).replace(b"[", b"[NaN,"),
            "vector too short in JSON": json_vector(one[1:]),
            "not base64": json_vector({"type": "F32", "data": "***"}),
            "an unknown type": json_vector({"type": "F8", "data": "AAAA"}),
            "NaN in base64": json_vector({"type": "F32", "data": base64.b64encode(
                np.full(taste.dx, np.nan, np.float32).tobytes()).decode()}),
            "code 256": json_codes([256] + [0] * 7), "code -1": json_codes([-1] + [0] * 7),
            "code 1.5": json_codes([1.5] + [0] * 7), "code 100 of 100": json_codes([0] * 7 + [100]),
            "codes of words": json_codes(["one"] * 8),
        }
        rows += [(what, b"bad", text, [("content-type", b"application/json")]) for what, text in texts.items()]
        rows += [
            ("no key", None, good_bytes, []), ("an empty key", b"", good_bytes, []),
            ("a key of 257 bytes", b"k" * 257, good_bytes, []), ("a tombstone with no key", None, None, []),
            ("a tombstone with a long key", b"k" * 257, None, []),
            ("an empty value", b"bad", b"", []),
            ("an empty value said to be JSON", b"bad", b"", [("content-type", b"application/json")]),
            ("noise", b"bad", b"\xff" * 40, []), ("cut off protobuf", b"bad", good_bytes[:-1], []),
            ("protobuf said to be JSON", b"bad", good_bytes, [("content-type", b"application/json")]),
            ("JSON said to be protobuf", b"bad", good_json, [("content-type", b"application/x-protobuf")]),
        ]
        return rows

    def test_bad_records_become_dead_letters_and_their_neighbours_are_applied(self):
        written, rows = {}, self.bad_records()
        counted = self.system.daemon.status()["counters"]["dead_letters"]
        for i, (what, key, value, headers) in enumerate(rows):
            key = b"bad: " + what.encode() if key == b"bad" else key
            self.system.put(b"left-%d" % i)

            def remember(error, message, what=what, key=key, value=value):
                self.assertIsNone(error)
                written[message.partition(), message.offset()] = what, key, value
            self.system.put_raw(key, value, headers, on_delivery=remember)
            self.system.put(b"right-%d" % i)
        self.caught_up()
        self.assertEqual(len(written), len(rows))
        passed = [what for where, (what, _, _) in written.items() if where not in self.system.oracle.rejected]
        self.assertFalse(passed, "the oracle of the test accepts these bad records")
        # If the daemon accepts a bad record, the next test must not see it.
        self.addCleanup(self.remove, [key for _, key, _ in written.values() if key and len(key) <= 256])
        self.system.check_catalogue()

        topic = self.system.topic("catalogue")
        letters = self.system.wait_dead_letters({(topic, *where) for where in written})
        of_catalogue = {where[1:]: record for where, record in letters.items() if where[0] == topic}
        good = [where for where in of_catalogue if where not in self.system.oracle.rejected]
        self.assertFalse(good, "good records became dead letters")
        for where, (what, key, value) in written.items():
            with self.subTest(what):
                record = of_catalogue[where]
                # librdkafka's producer does not always distinguish an empty key from no key.
                self.assertEqual(record.key or None, key or None)
                self.assertEqual(record.value, value)
        self.assertEqual(self.system.daemon.status()["counters"]["dead_letters"], counted + len(rows))

    # ------------------------------------------------------------------------------------------- bad queries

    def bad_queries(self):
        """Return rows of (what is wrong, the query, the allowed error codes)."""
        draw = self.system.queries.draw
        taste, codes = spaces["taste"], spaces["codes"]
        bad, method = ("BAD_QUERY",), ("UNKNOWN_METHOD",)
        either = ("UNKNOWN_METHOD", "BAD_QUERY")

        def bent(name, **fields):
            query = draw(name, "exact", k=5)
            for field in ("vector", "components", "query_gate"):
                query.ClearField(field)
            query.user_id = 1
            for field, value in fields.items():
                getattr(query, field).CopyFrom(value)
            return query

        def vector_with(n, value, kind="F32"):
            x = np.ones(n, np.float32)
            x[0] = value
            return wire.vector(x, kind)

        rows = [
            ("unknown space", pb.Query(id=f"{self.system.queries.prefix}-nowhere", space="nowhere", k=5,
                                       vector=wire.vector(np.ones(64))), ("UNKNOWN_SPACE",)),
            ("no space", pb.Query(id=f"{self.system.queries.prefix}-no-space", k=5, vector=wire.vector(np.ones(64))),
             ("UNKNOWN_SPACE", "BAD_QUERY")),
            ("k too large", draw("taste", "exact", k=MAX_K + 1), bad),
            ("k huge", draw("codes", "exact", k=2 ** 32 - 1), bad),
            ("unknown method", draw("taste", "magic", k=5), method),
            ("another similarity's method", draw("taste", "pqtopk", k=5), method),
            ("another similarity's method", draw("codes", "average(10)", k=5), method),
            ("no argument", draw("taste", "average", k=5), either),
            ("argument 0", draw("taste", "average(0)", k=5), either),
            ("an argument of text", draw("taste", "average(ten)", k=5), either),
            ("no bracket", draw("taste", "average(10", k=5), either),
            ("two arguments", draw("taste", "average(10,20)", k=5), either),
            ("argument over 32 bits", draw("taste", "average(99999999999)", k=5), either),
            ("an argument too many", draw("codes", "pqtopk(3)", k=5), either),
            ("a long method", draw("codes", "m" * 5000, k=5), either),
            ("a number short", bent("taste", vector=wire.vector(np.ones(taste.dq - 1))), bad),
            ("a number more", bent("codes", vector=wire.vector(np.ones(codes.d + 1))), bad),
            ("no vector", bent("taste"), bad), ("no vector", bent("codes"), bad),
            ("an empty vector", bent("codes", vector=pb.Vector()), bad),
            ("components without gate", bent("taste", components=wire.vector(np.ones(taste.pq * taste.d))), bad),
            ("components for recjpq", bent("codes", components=wire.vector(np.ones(64)),
                                           query_gate=wire.vector(np.ones(8))), bad),
            ("components too short", bent("taste", components=wire.vector(np.ones(3)),
                                          query_gate=wire.vector(np.ones(taste.n_logits))), bad),
            ("NaN", bent("taste", vector=vector_with(taste.dq, np.nan)), bad),
            ("infinity", bent("codes", vector=vector_with(codes.d, -np.inf)), bad),
            ("NaN in F16", bent("codes", vector=vector_with(codes.d, np.nan, "F16")), bad),
            ("deadline passed", draw("codes", "exact", k=5, deadline_unix_ms=int(time.time() * 1000) - 1000),
             ("DEADLINE_PASSED",)),
            ("deadline in 1970", draw("taste", "exact", k=5, deadline_unix_ms=1), ("DEADLINE_PASSED",)),
        ]
        zero = draw("taste", "exact", k=5)
        zero.k = 0
        return [("k 0", zero, bad), *rows]

    def test_bad_queries_are_answered_with_an_error_that_says_why(self):
        for form in ("protobuf", "data"):
            rows = self.bad_queries()
            for _, query, _ in rows:
                query.id += f"-{form}"
                self.system.send(query, form)
            answers = self.system.client.wait([query.id for _, query, _ in rows])
            for what, query, codes in rows:
                with self.subTest(what=what, form=form):
                    self.system.oracle.check_error(query, answers[query.id], *codes)
                    self.assertEqual(len(self.system.client.replies[query.id]), 1)

    def test_bad_json_queries_are_answered_with_an_error(self):
        text = wire.query_json(self.system.queries.draw("codes", "exact", k=5))
        changes = {"an unknown field": {"colour": 1}, "k below 0": {"k": -1}, "k a fraction": {"k": 1.5},
                   "k of text": {"k": "ten"}, "a vector of text": {"vector": "all ones"},
                   "a vector with null": {"vector": [None] * 64},
                   "a number over the range": {"vector": [1e39] * 64}, "exclude that is no list": {"exclude": "a"},
                   "at_least that is no position": {"at_least": [7]},
                   "a position with an unknown field": {"at_least": [{"x": 1}]},
                   "a user id over 64 bits": {"user_id": str(2 ** 70)},
                   "attributes that are no list": {"attributes": "title"},
                   "attributes where there are none": {"attributes": ["title"]}}
        sent = {}
        for i, (what, change) in enumerate(changes.items()):
            query = pb.Query(id=f"{text['id']}-bad-{i}", space="codes")
            self.system.client.send(query.id, wire.dumps({**text, **change, "id": query.id}), [])
            sent[what] = query
        answers = self.system.client.wait([query.id for query in sent.values()])
        for what, query in sent.items():
            with self.subTest(what):
                self.system.oracle.check_error(query, answers[query.id], "BAD_QUERY")

    def test_undecodable_queries_become_dead_letters(self):
        values = {b"noise": (b"\xff" * 30, []), b"broken": (b'{"id":', []),
                  b"not an object": (b"[1]", [("content-type", b"application/json")]),
                  b"deep": (b'{"exclude":' + b"[" * 100000, []),
                  b"misnamed": (b"\x0a\x01x", [("content-type", b"application/json")])}
        written = {}

        def remember(error, message):
            self.assertIsNone(error)
            where = self.system.topic("queries"), message.partition(), message.offset()
            written[where] = message.key(), message.value()
        for key, (value, headers) in values.items():
            self.system.client.producer.produce(self.system.topic("queries"), value, key, headers=headers,
                                                on_delivery=remember)
        self.system.client.flush()
        letters = self.system.wait_dead_letters(written.keys())
        for where, (key, value) in written.items():
            self.assertEqual((letters[where].key, letters[where].value), (key, value))
        self.system.ask(self.draw(4))

    def test_what_is_never_seen_is_said_in_time_and_holds_up_nobody(self):
        end = dict(self.system.oracle.end())
        never = [pb.Position(partition=0, next=end.get(0, 0) + 10 ** 9)]
        waiting = self.system.queries.draw("codes", at_least=never)
        hurried = self.system.queries.draw("codes", at_least=never,
                                           deadline_unix_ms=int(time.time() * 1000) + AT_LEAST_TIMEOUT_MS // 5)
        plain = self.system.queries.draw("codes")
        started = time.monotonic()
        for query in (waiting, hurried, plain):
            # One key puts all queries in one partition, where the last is behind the others.
            self.system.send(query, key=b"one partition")
        self.system.check([plain])
        self.system.client.wait([waiting.id, hurried.id])
        took = {q.id: self.system.client.replies[q.id][0].arrived - started for q in (waiting, hurried, plain)}
        limit = AT_LEAST_TIMEOUT_MS / 1000
        self.system.oracle.check_error(waiting, self.system.client.replies[waiting.id][0].answer, "NOT_SEEN")
        self.system.oracle.check_error(hurried, self.system.client.replies[hurried.id][0].answer,
                                       "NOT_SEEN", "DEADLINE_PASSED")
        self.assertGreater(took[waiting.id], 0.9 * limit)
        self.assertLess(took[hurried.id], 0.9 * limit)
        self.assertLess(took[plain.id], 0.9 * limit)

    def test_a_flood_of_waiting_queries_holds_up_nobody(self):
        never = [pb.Position(partition=0, next=10 ** 12)]
        waiting = [self.system.queries.draw("codes", at_least=never) for _ in range(2500)]
        for query in waiting:
            self.system.send(query, "protobuf", key=b"one partition")
        plain = [self.system.queries.draw("codes") for _ in range(5)]
        for query in plain:
            self.system.send(query, key=b"one partition")
        self.system.check(plain)
        self.system.client.wait([query.id for query in waiting])
        names = [self.system.client.replies[query.id][0].answer.error.code for query in waiting]
        self.assertEqual(set(names), {pb.Error.NOT_SEEN, pb.Error.UNAVAILABLE})

    def test_a_flood_of_background_queries_holds_up_nobody(self):
        never = [pb.Position(partition=0, next=10 ** 12)]
        flood = [self.system.queries.draw("codes", background=True, at_least=never) for _ in range(2500)]
        for query in flood:
            self.system.send(query, "protobuf", key=b"one partition")
        plain = [self.system.queries.draw("codes") for _ in range(5)]
        for query in plain:
            self.system.send(query, key=b"one partition")
        self.system.check(plain)
        self.system.client.wait([query.id for query in flood])
        errors = [self.system.client.replies[query.id][0].answer.error for query in flood]
        refused = [error.message for error in errors if error.code == pb.Error.UNAVAILABLE]
        self.assertEqual(set(refused), {"too many background queries wait: send the query again later"})
        self.assertEqual({error.code for error in errors}, {pb.Error.NOT_SEEN, pb.Error.UNAVAILABLE})
        self.system.ask([self.system.queries.draw("codes", background=True) for _ in range(50)])  # there is room again

    def test_an_answer_has_the_trace_headers_of_its_query(self):
        trace = [("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                 ("tracestate", b"vendor=\xff opaque"), ("baggage", b"user=1," + b"x" * 8185)]
        good, bad = (self.system.queries.draw("codes") for _ in range(2))
        bad.method = "no_such_method"
        for query in (good, bad):
            for headers in (trace, trace[:1] + [("baggage", b"x" * 8193), ("other", b"1")], []):
                one = pb.Query()
                one.CopyFrom(query)
                one.id = f"{query.id}-{len(headers)}-{headers[1][0] if headers else ''}"
                value, own = self.system.queries.encode(one)
                self.system.client.send(one.id, value, [*own, *headers])
                self.system.client.wait([one.id])
                (reply,) = self.system.client.replies[one.id]
                self.assertEqual(reply.answer.HasField("error"), query is bad)
                kept = [h for h in headers if h[0] != "other" and len(h[1]) <= 8192]
                self.assertEqual([h for h in reply.headers if h[0] != "content-type"], kept)

    def test_a_reply_does_not_come_back_as_a_query_or_an_item(self):
        for kind in ("queries", "catalogue"):
            query = self.system.queries.draw("codes", reply_topic=self.system.topic(kind))
            self.system.send(query)
            answer = self.system.client.wait([query.id])[query.id]
            self.system.oracle.check_error(query, answer, "BAD_QUERY")

    # --------------------------------------------------------------------------------------------- operating

    def test_status_health_and_metrics_tell_the_truth(self):
        self.caught_up()
        status = self.system.daemon.status()
        state = self.system.oracle.state(self.system.oracle.end())
        self.assertTrue(status["ready"])
        self.assertEqual(status["items"], len(state.items))
        self.assertEqual({s["name"]: (s["similarity"], s["items"]) for s in status["spaces"]},
                         {name: (model.similarity, len(state.space(name).keys)) for name, model in spaces.items()})
        self.assertEqual(status["kafka"]["catalogue_topic"], self.system.topic("catalogue"))
        self.assertEqual(self.system.daemon.get("/healthz")[0], 200)
        self.assertEqual(self.system.daemon.get("/nothing-here")[0], 404)
        code, metrics = self.system.daemon.get("/metrics")
        self.assertEqual(code, 200)
        lines = [line for line in metrics.splitlines() if line and not line.startswith("#")]
        self.assertGreater(len(lines), 5)
        for line in lines:
            float(line.rpartition(" ")[2])
        before = status["counters"]
        self.system.ask(self.draw(6))
        after = eventually(lambda: (lambda c: c if c["answers"] >= before["answers"] + 6 else None)(
            self.system.daemon.status()["counters"]), "the counters")
        self.assertEqual(after["queries"], before["queries"] + 6)
        self.assertEqual(after["errors"], before["errors"])

    def test_sluicectl_puts_asks_and_deletes(self):
        def ctl(*arguments):
            command = [harness.build_dir() / "sluicectl", "--config", self.system.daemon.config_path, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 * SLOWNESS)
            self.assertEqual(done.returncode, 0, f"sluicectl {arguments[0]}: {done.stdout}{done.stderr}")
            return done.stdout

        item = self.system.items.item(["codes"])
        ctl("put", "by-hand", json.dumps(wire.item_json(item)))
        lines = [json.dumps({"key": f"file-{i}", "value": wire.item_json(self.system.items.item())}) for i in range(50)]
        lines.append(json.dumps({"key": "file-7", "value": None}))
        path = self.system.folder / "items.jsonl"
        path.write_text("\n".join(lines) + "\n")
        ctl("load", str(path))
        # put and load return once the daemon serves the change, so the next query must see it.
        query = self.system.queries.draw("codes", "exact", k=MAX_K)
        self.system.ask([query], "protobuf")
        keys = {hit.key for hit in self.system.client.replies[query.id][0].answer.hits}
        self.assertIn(b"by-hand", keys)
        self.assertNotIn(b"file-7", keys)
        state = self.system.oracle.state(self.system.oracle.end())
        self.assertTrue({b"file-%d" % i for i in range(50) if i != 7} <= state.items.keys())

        asked = self.system.queries.draw("codes", "exact", k=3)
        asked.id = "by sluicectl"
        printed = json.loads(ctl("query", "--format", "json", "--json", json.dumps(wire.query_json(asked))))
        hits = printed["hits"] if isinstance(printed, dict) else printed[0]["hits"]
        self.assertEqual(len(hits), 3)
        self.assertIn(key_for_people(hits[0]["key"]), ctl("query", "--json", json.dumps(wire.query_json(asked))))
        self.assertEqual(json.loads(ctl("status", "--json"))["items"], len(state.items))
        ctl("delete", "by-hand")
        self.system.check_catalogue()
        self.assertNotIn(b"by-hand", self.system.oracle.state(self.system.oracle.end()).items)


class Wait(unittest.TestCase):
    """Tests of `sluicectl wait`, which may begin before the daemon."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-wait-")
        self.addCleanup(folder.cleanup)
        model = Path(folder.name) / "films.safetensors"
        safetensors_io.write(model, {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
        self.daemon = harness.Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                                      "spaces": {"films": {"model": str(model)}}}, folder.name)
        self.words = [harness.build_dir() / "sluicectl", "--config", self.daemon.config_path, "wait"]

    def test_it_returns_when_the_daemon_is_ready(self):
        waiting = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.communicate)
        self.addCleanup(waiting.kill)
        self.assertIn("nothing answers at", waiting.stderr.readline())
        self.addCleanup(self.daemon.kill)
        self.daemon.start()
        printed, _ = waiting.communicate(timeout=60 * SLOWNESS)
        self.assertEqual((printed, waiting.returncode), ("ready\n", 0))
        self.assertEqual(self.daemon.get("/readyz"), (200, "ready\n"))

    def test_it_gives_up(self):
        done = subprocess.run([*self.words, "--timeout-s", "1"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("gave up after 1 s: nothing answers at", done.stderr)


if __name__ == "__main__":
    data.main()
