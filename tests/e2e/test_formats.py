#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of catalogue topics in other forms: rows of JSON, Avro and Protobuf, change events of Debezium, and framing."""

import base64
import io
import itertools
import json
import struct
import subprocess
import tempfile
import unittest
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import avro.io
import avro.schema
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import data
import harness
import safetensors_io
import wire
from harness import Case, System, build_dir, eventually, merged, to_yaml
from pages import Commands, blocks
from wire import pb

TYPES = {"country": "keyword", "tags": "keywords", "price": "number", "year": "integer", "available": "bool",
         "expires": "time"}
PATHS = {"country": "shipping.country", "tags": "tags", "price": "/price.eur", "year": "year", "available": "stock.0",
         "expires": "ends"}
FILTERS = {"country = 'de'": lambda a: a.get("country") == "de",
           "tags has 'a'": lambda a: "a" in a.get("tags", []),
           "has(tags)": lambda a: "tags" in a,
           "price < 50": lambda a: a.get("price", 50) < 50,
           "year between 3 and 5": lambda a: 3 <= a.get("year", 0) <= 5,
           "available": lambda a: a.get("available", False),
           "expires > 1700000000000": lambda a: a.get("expires", 0) > 1700000000000}
MEMBERS = {"tags": "tags", "price": "price.eur", "year": "year", "expires": "ends"}
UNAVAILABLE = "__debezium_unavailable_value"
FRAME = b"\0" + struct.pack(">I", 77)


def setUpModule():
    global model
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    model = Path(folder.name) / "dot.safetensors"
    safetensors_io.write(model, {}, {"sluice.similarity": "dot", "sluice.dim": "2"})


class Schema:
    """A schema of Avro, and values in it, by Apache's own library."""

    def __init__(self, form):
        self.text = json.dumps(form)
        self.writer = avro.io.DatumWriter(avro.schema.parse(self.text))

    def encode(self, value):
        out = io.BytesIO()
        self.writer.write(value, avro.io.BinaryEncoder(out))
        return out.getvalue()

    def save(self, path, is_wrapped=False):
        """is_wrapped: as a registry answers."""
        path.write_text(json.dumps({"schema": self.text}) if is_wrapped else self.text, encoding="utf-8")


def film(*attributes):
    fields = [("sku", {"type": "record", "name": "Sku", "fields": [{"name": "id", "type": "string"}]}),
              ("embedding", ["null", {"type": "array", "items": "float"}]), *attributes]
    return Schema({"type": "record", "name": "Film", "namespace": "shop",
                   "fields": [{"name": name, "type": form} for name, form in fields]})


def frame_of(id):
    return b"\0" + struct.pack(">I", id)


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
OTHERS = [("tags", ["null", {"type": "array", "items": "string"}]), ("year", ["null", "int"]),
          ("available", ["null", "boolean"]), ("gone", "boolean"), ("more", {"type": "map", "values": "double"})]
KEY_SCHEMA = Schema("string")
KEPT = film()
SCHEMAS = {7: film(("country", ["null", "string"]), ("price", ["null", DECIMAL]),
                   ("expires", ["null", {"type": "long", "logicalType": "timestamp-millis"}]), *OTHERS),
           8: film(*OTHERS, ("expires", [{"type": "long", "logicalType": "timestamp-micros"}, "null"]),
                   ("country", [{"type": "enum", "name": "Country", "symbols": ["de"]}, "string", "null"]),
                   ("price", ["null", {"type": "fixed", "name": "Price", "size": 8} | {
                       key: value for key, value in DECIMAL.items() if key != "type"}]))}


SET = Path(__file__).resolve().parents[1] / "ingest/protobuf/shop.desc"


def messages(path):
    """Return a function from the names of a descriptor set's messages to their classes."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName(name))


Film = messages(SET)("shop.v1.Film")

ROW = {"type": "record", "name": "Value", "fields": [
    {"name": "id", "type": "int"}, {"name": "embedding", "type": ["null", "string"]},
    {"name": "price", "type": DECIMAL}]}
EVENT = Schema({"type": "record", "name": "Envelope", "fields": [
    {"name": "before", "type": ["null", ROW]}, {"name": "after", "type": ["null", "Value"]},
    {"name": "op", "type": "string"}]})
EVENT_KEY = Schema({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]})


class Rows:
    """Random rows, and what they mean."""

    def __init__(self, rng):
        self.rng = rng

    def vector(self):
        numbers = [int(n) for n in self.rng.integers(-99, 100, 2)]
        return numbers, data.pick(self.rng, [numbers, json.dumps(numbers),
                                             base64.b64encode(struct.pack("<2f", *numbers)).decode()])

    def attributes(self):
        """Return the values, and members of the row that say the same."""
        rng, draw = self.rng, lambda values: data.pick(self.rng, values)
        cents, year, is_true = int(rng.integers(10000)), int(rng.integers(9)), bool(rng.integers(2))
        seconds = 1700000000 + int(rng.integers(-999, 999))
        tags = [draw("abc") for _ in range(rng.integers(4))]
        ends = [seconds * 1000, time_text(seconds)]
        forms = {"country": draw([("de", "de"), ("7", 7)]), "tags": (tags, draw([tags, json.dumps(tags)])),
                 "price": (cents / 100, draw([cents / 100, f"{cents / 100:.2f}"])),
                 "year": (year, draw([year, float(year), str(year)])),
                 "available": (is_true, draw([is_true, int(is_true)])), "expires": (seconds * 1000, draw(ends))}
        forms = {name: form for name, form in forms.items() if rng.integers(4)}
        return {name: value for name, (value, _) in forms.items()}, {name: form for name, (_, form) in forms.items()}

    def members(self, forms, has_all):
        """Put attributes where PATHS says. What is left out is null, or missing unless has_all."""
        row = {"other": {"deep": [1e300]}, "stock": [forms.get("available"), 5], "shipping": None}
        if "country" in forms or self.rng.integers(2):
            row["shipping"] = {"country": forms.get("country")}
        for name, member in MEMBERS.items():
            if name in forms or has_all or self.rng.integers(2):
                row[member] = forms.get(name)
        return row


def time_text(seconds):
    """Return a time as text of RFC 3339, an hour ahead of UTC."""
    return datetime.fromtimestamp(seconds, timezone(timedelta(hours=1))).isoformat()


class FormatCase(Case):
    """Tests that each have a daemon with a format, and a table of what the items should be."""

    def open(self, catalogue, bootstrap=None):
        self.system = System({"books": model}, {}, {"catalogue": catalogue}, bootstrap, name=self.id(), types=TYPES)
        self.addCleanup(self.system.close)
        self.system.open()
        self.rows, self.ends, self.bad, self.ids = Rows(self.system.rng), {}, {}, itertools.count()
        self.items = {}  # key -> (vector or None, attributes)

    def write(self, key, value, due=None, **where):
        """Write a record. due: words of the dead letter that it becomes."""
        def note(error, message):
            assert error is None, error
            self.ends[message.partition()] = max(self.ends.get(message.partition(), 0), message.offset() + 1)
            if due:
                self.bad[message.topic(), message.partition(), message.offset()] = due
        self.system.put_raw(key, value, on_delivery=note, **where)

    def ask(self, text=""):
        positions = [pb.Position(partition=p, next=n) for p, n in self.ends.items()]
        query = pb.Query(id=f"q{next(self.ids)}", space="books", k=5000, filter=text, at_least=positions)
        query.vector.values.extend([1, 1000])
        self.system.send(query, "protobuf")
        answer = self.system.client.wait([query.id])[query.id]
        self.assertFalse(answer.HasField("error"), answer.error)
        return {hit.key.decode(): hit.score for hit in answer.hits}

    def check(self):
        """Check vectors and attributes of all items, and the dead letters."""
        self.assertEqual(self.system.producer.flush(60), 0)
        scores = {key: vector[0] + 1000 * vector[1] for key, (vector, _) in self.items.items() if vector}
        self.assertEqual(self.ask(), scores)
        for text, admits in FILTERS.items():
            due = {key: score for key, score in scores.items() if admits(self.items[key][1])}
            self.assertEqual(self.ask(text), due, text)
        letters = self.system.wait_dead_letters(set(self.bad))
        self.assertEqual(set(letters), set(self.bad))
        for place, due in self.bad.items():
            self.assertIn(due, dict(letters[place].headers)["sluice.reason"].decode())


class Formats(FormatCase):
    # ---------------------------------------------------------------------------------------------------------- JSON

    def put_row(self, number):
        """Write a random row, as an insert or an update."""
        key, (vector, form), (attributes, forms) = f"k{number}", self.rows.vector(), self.rows.attributes()
        row = self.rows.members(forms, False) | {"sku": {"id": key},
                                                 "deleted_at": data.pick(self.rows.rng, [None, 0, "", False])}
        if self.rows.rng.integers(5):
            row["embedding"] = form
        else:
            vector = None
        self.write(key.encode(), json.dumps(row).encode())
        self.items[key] = vector, attributes

    def delete_row(self, number):
        key = f"k{number}"
        row = {"sku": {"id": key}, "deleted_at": data.pick(self.rows.rng, [True, 1700000000000, "2026-11-22 12:00"])}
        self.write(key.encode(), data.pick(self.rows.rng, [None, json.dumps(row).encode()]))
        self.items.pop(key, None)

    def test_rows_of_json(self):
        self.open({"format": "json", "mapping": {"key": "sku.id", "vectors": {"books": "embedding"},
                                                 "attributes": PATHS, "deleted": "deleted_at"}})
        for _ in range(600):
            number = int(self.system.rng.integers(200))
            if self.system.rng.integers(4):
                self.put_row(number)
            else:
                self.delete_row(number)
        bad = {'{"sku": {}, "year": 1}': "sku.id: the item's key is not there",
               '{"sku": {"id": "k1"}, "embedding": [1, "2"]}': "embedding[1]: expected a number, not text",
               '{"sku": {"id": "k1"}, "embedding": [1, 2, 3]}': 'part "books": vector has 3 numbers',
               '{"sku": {"id": "k1"}, "embedding": [1, 1e999]}': "embedding[1]: 1e999 does not fit",
               '{"sku": {"id": "k1"}, "stock": ["yes"]}': "stock.0: expected true, false, 1 or 0, not text",
               '{"sku": {"id": "k1"}, "deleted_at": "soon"}': "deleted_at: expected true, false or a time",
               '{"sku": {"id": "k1"}}': "the record has none of the mapped fields",
               '{"sku"': "not JSON"}
        for value, due in bad.items():
            self.write(b"k1", value.encode(), due)
        self.check()
        self.check_sluicectl("catalogue.format: json")
        self.check_retry()

    def check_sluicectl(self, word):
        for words in (["put", "k", '{"attributes": {"year": 1}}'], ["delete", "k"], ["load", "/dev/null"]):
            said = self.ctl(*words, code=1)
            self.assertIn("sluicectl writes items in Sluice's own form", said)
            self.assertIn(word, said)

    def ctl(self, *words, code=0, config=None):
        done = subprocess.run([build_dir() / "sluicectl", "--config", config or self.system.daemon.config_path, *words],
                              capture_output=True, text=True, timeout=60 * harness.SLOWNESS)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    # ------------------------------------------------------------------------------------------------ sluicectl map

    def suggest(self, due):
        """Ask for a mapping with a configuration that has none, and check that it can be used."""
        config = {name: value for name, value in self.system.daemon.config.items() if name != "attributes"}
        config["catalogue"] = {name: value for name, value in config["catalogue"].items() if name != "mapping"}
        path = self.system.folder / "other.yaml"
        path.write_text(to_yaml(config) + "\n")
        self.assertIn("sluicectl map suggests some", self.check_config(path, 78))
        said = self.ctl("map", config=path)
        suggestion = yaml.safe_load(said)
        self.assertEqual(suggestion, due, said)
        path.write_text(to_yaml(merged(config, suggestion)) + "\n")
        self.check_config(path, 0)
        return said

    def check_config(self, path, code):
        done = subprocess.run([build_dir() / "sluiced", "--check-config", "--config", path], capture_output=True,
                              text=True, timeout=60 * harness.SLOWNESS)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_a_mapping_of_json_is_suggested(self):
        self.open({"format": "json", "mapping": {"key": "sku.id", "vectors": {"books": "embedding"}}})
        for number in range(20):
            row = {"sku": {"id": f"k{number}"}, "embedding": [number, 1], "/cost": {"a.b": 1.5 * number}, "on": True,
                   "ends": time_text(1700000000 + number), "is_deleted": False, "notes": None}
            self.write(f"k{number}".encode(), json.dumps(row).encode())
            self.items[f"k{number}"] = [number, 1], {}
        self.write(b"k0", None)
        self.items.pop("k0")
        self.write(b"k1", b"7", "JSON, but an integer where an object is expected")
        self.check()
        said = self.suggest({
            "attributes": {"a_b": "number", "on": "bool", "ends": "time"},
            "catalogue": {"mapping": {"vectors": {"books": "embedding"}, "deleted": "is_deleted",
                                      "attributes": {"a_b": "/~1cost/a.b", "on": "on", "ends": "ends"}}}})
        self.assertIn("# Records: 22. Rows: 20, deletes: 1, not readable: 1.", said)
        self.assertIn('# The first that is not readable: "an integer where an object is expected"', said)
        self.assertIn("# Not mapped: notes: no value in these rows; in 0 of 20 rows", said)

    def test_a_mapping_of_avro_is_suggested(self):
        with tempfile.TemporaryDirectory() as folder:
            KEY_SCHEMA.save(Path(folder) / "1.avsc")
            SCHEMAS[7].save(Path(folder) / "7.avsc")
            self.open_avro("confluent", folder)
            self.assertIn("has no records with values yet", self.ctl("map", code=1))
            for number in range(50):
                self.put_avro_row(number, SCHEMAS[7], frame_of(7))
            self.check()
            self.suggest({
                "attributes": TYPES | {"gone": "bool"},
                "catalogue": {"mapping": {
                    "vectors": {"books": "embedding"},
                    "attributes": {name: name for name in TYPES} | {"gone": "gone"}}}})

    def test_own_items_need_no_mapping(self):
        self.open({})
        self.assertIn("catalogue.format is sluice, whose items need no mapping", self.ctl("map", code=2))

    def check_retry(self):
        """Check that a record is written again as it was, to be refused again."""
        self.assertIn("use --overwrite", self.ctl("dead-letters", "retry", "--all"))
        said = self.ctl("dead-letters", "retry", "--all", "--overwrite", "--reason", "deleted_at", code=1)
        self.assertIn("went to sluice.catalogue", said)
        self.assertIn("refused 1 record", said)

    # ---------------------------------------------------------------------------------------------------------- Avro

    def open_avro(self, framing, schemas):
        self.open({"format": "avro", "framing": framing, "schemas": str(schemas),
                   "mapping": {"key": "sku.id", "vectors": {"books": "embedding"}, "deleted": "gone",
                               "attributes": {name: name for name in TYPES}}})

    def put_avro_row(self, number, schema, frame):
        """Write a random row. What is left out is null."""
        key, (vector, _), (attributes, _) = f"k{number}", self.rows.vector(), self.rows.attributes()
        if self.rows.rng.integers(5) == 0:
            vector = None
        row = dict.fromkeys(TYPES) | attributes | {"sku": {"id": key}, "embedding": vector, "gone": False, "more": {}}
        if "price" in attributes:
            row["price"] = Decimal(f"{attributes['price']:.2f}")
        if "expires" in attributes:
            row["expires"] = datetime.fromtimestamp(attributes["expires"] / 1000, timezone.utc)
        self.write(self.avro_key(key), frame + schema.encode(row))
        self.items[key] = vector, attributes
        if vector is None and not attributes:
            del self.items[key]

    def avro_key(self, key):
        """Return the key as text, or framed: one item's records have the same, or their order would be lost."""
        return key.encode() if int(key[1:]) % 2 else frame_of(1) + KEY_SCHEMA.encode(key)

    def delete_avro_row(self, number, schema, frame):
        key = f"k{number}"
        row = dict.fromkeys(TYPES) | {"sku": {"id": key}, "embedding": [1, 2], "gone": True, "more": {"x": 1}}
        self.write(self.avro_key(key), data.pick(self.rows.rng, [None, frame + schema.encode(row)]))
        self.items.pop(key, None)

    def test_rows_of_avro(self):
        with tempfile.TemporaryDirectory() as folder:
            KEY_SCHEMA.save(Path(folder) / "1.avsc")
            for number, schema in SCHEMAS.items():
                schema.save(Path(folder) / f"{number}.avsc", is_wrapped=number % 2)
            self.open_avro("confluent", folder)
            for _ in range(600):
                number, id = int(self.system.rng.integers(200)), data.pick(self.system.rng, list(SCHEMAS))
                change = self.put_avro_row if self.system.rng.integers(4) else self.delete_avro_row
                change(number, SCHEMAS[id], frame_of(id))
            row = SCHEMAS[7].encode(dict.fromkeys(TYPES) | {"sku": {"id": "k1"}, "embedding": [1, 2, 3], "gone": False,
                                                            "more": {}})
            bad = {frame_of(7) + row: 'part "books": vector has 3 numbers',
                   frame_of(7) + row[:-1]: "the bytes end in the middle of it",
                   frame_of(7) + row + b"x": "1 bytes follow the value",
                   frame_of(1) + KEY_SCHEMA.encode("k1"): "Avro, but text where an object is expected",
                   row: "is not framed as catalogue.framing says"}
            for value, due in bad.items():
                self.write(b"k1", value, due)
            late = frame_of(9) + KEPT.encode({"sku": {"id": "late"}, "embedding": [7, 8]})
            self.write(b"late", late, f"schema 9 is not known: save it from the registry as {folder}/9.avsc")
            self.check()
            self.check_sluicectl("catalogue.format: avro")
            KEPT.save(Path(folder) / "9.avsc")
            said = self.ctl("dead-letters", "retry", "--all", "--overwrite", "--reason", "schema 9")
            self.assertIn("went to sluice.catalogue", said)
            eventually(lambda: self.ask().get("late") == 8007, "the record whose schema came late")

    def test_rows_of_avro_without_framing(self):
        with tempfile.TemporaryDirectory() as folder:
            SCHEMAS[7].save(Path(folder) / "films.avsc")
            self.open_avro("none", Path(folder) / "films.avsc")
            for number in range(100):
                self.put_avro_row(number, SCHEMAS[7], b"")
            self.write(b"k1", b"", "the bytes end in the middle of it")
            self.check()

    def test_events_of_debezium_in_avro(self):
        with tempfile.TemporaryDirectory() as folder:
            EVENT_KEY.save(Path(folder) / "3.avsc")
            EVENT.save(Path(folder) / "4.avsc")
            self.open({"format": "avro", "framing": "confluent", "schemas": folder,
                       "mapping": {"vectors": {"books": "embedding"}, "attributes": {"price": "price"},
                                   "envelope": "debezium"}})
            for _ in range(200):
                self.write_event(int(self.system.rng.integers(60)))
            self.check()

    def write_event(self, number):
        """Write a random change, or a delete and its tombstone."""
        rng, key = self.system.rng, frame_of(3) + EVENT_KEY.encode({"id": number})
        if rng.integers(4) == 0:
            self.write(key, frame_of(4) + EVENT.encode({"before": None, "after": None, "op": "d"}))
            self.write(key, None)
            self.items.pop(str(number), None)
            return
        vector, cents, is_new = [int(n) for n in rng.integers(-99, 100, 2)], int(rng.integers(9999)), rng.integers(2)
        row = {"id": number, "embedding": json.dumps(vector), "price": Decimal(cents).scaleb(-2)}
        if str(number) in self.items and not is_new:
            vector, row["embedding"] = self.items[str(number)][0], UNAVAILABLE
        op = "u" if row["embedding"] == UNAVAILABLE else data.pick(rng, "cr")
        self.write(key, frame_of(4) + EVENT.encode({"before": None, "after": row, "op": op}))
        self.items[str(number)] = vector, {"price": cents / 100}

    # ------------------------------------------------------------------------------------------------------ Protobuf

    def open_protobuf(self, framing):
        paths = {"country": "coupon", "tags": "tags", "price": "price", "year": "year", "available": "is_available",
                 "expires": "published_at"}
        self.open({"format": "protobuf", "framing": framing, "schemas": str(SET), "message": "shop.v1.Film",
                   "mapping": {"key": "sku.code", "vectors": {"books": "embedding"}, "deleted": "gone",
                               "attributes": paths}})

    def film(self, key, vector, attributes):
        """Return a message as bytes. Now and then the vector is not packed, and a newer schema has one more field."""
        film, rng = Film(sku={"code": key}, gone=False), self.rows.rng
        for name, field in {"country": "coupon", "price": "price", "year": "year", "available": "is_available"}.items():
            if name in attributes:
                setattr(film, field, attributes[name])
        film.tags.extend(attributes.get("tags", []))
        if "expires" in attributes:
            film.published_at.seconds = attributes["expires"] // 1000
            film.published_at.nanos = int(rng.integers(1000000))
        numbers = b"".join(b"\x15" + struct.pack("<f", x) for x in vector or [])
        if rng.integers(2):
            film.embedding.extend(vector or [])
            numbers = b""
        return numbers + film.SerializeToString() + data.pick(rng, [b"", b"\xa2\x06\x03new"])

    def put_film(self, number, frame):
        """Write a random film. What it does not have is the default, where its field is not optional."""
        key, (vector, _), (attributes, _) = f"k{number}", self.rows.vector(), self.rows.attributes()
        if self.rows.rng.integers(5) == 0:
            vector = None
        self.write(key.encode(), frame + self.film(key, vector, attributes))
        self.items[key] = vector, {"tags": [], "price": 0, "available": False} | attributes

    def delete_film(self, number, frame):
        key = f"k{number}"
        gone = Film(sku={"code": key}, embedding=[1, 2], gone=True).SerializeToString()
        self.write(key.encode(), data.pick(self.rows.rng, [None, frame + gone]))
        self.items.pop(key, None)

    def test_messages_of_protobuf(self):
        self.open_protobuf("confluent")
        for _ in range(600):
            frame = FRAME + data.pick(self.system.rng, [b"\0", b"\2\2"])
            change = self.put_film if self.system.rng.integers(4) else self.delete_film
            change(int(self.system.rng.integers(200)), frame)
        film = Film(sku={"code": "k1"}, embedding=[1, 2, 3], price=7).SerializeToString()
        bad = {FRAME + b"\0" + film: 'part "books": vector has 3 numbers',
               FRAME + b"\0" + film[:-1]: "price: byte 21: the bytes end in the middle of a value",
               FRAME + b"\0\x18\x05": "price: byte 1: it is written as a varint, but the schema says 8 bytes",
               FRAME + b"\0": "sku.code: the item's key is not there",
               film: "is not framed as catalogue.framing says"}
        for value, due in bad.items():
            self.write(b"k1", value, due)
        self.check()
        self.check_sluicectl("catalogue.format: protobuf")

    def test_messages_of_protobuf_without_framing(self):
        self.open_protobuf("none")
        for number in range(100):
            self.put_film(number, b"")
        for number in range(0, 100, 3):
            self.delete_film(number, b"")
        self.check()
        types = {"coupon": "keyword", "is_available": "bool", "price": "number", "tags": "keywords", "gone": "bool",
                 "genre": "keyword", "published_at": "time", "year": "integer"}
        self.suggest({"attributes": types, "catalogue": {"mapping": {
            "vectors": {"books": "embedding"}, "attributes": {name: name for name in types}}}})

    # ------------------------------------------------------------------------------------------------------ Debezium

    def event(self, number, **fields):
        """Write a framed change event, or without fields a tombstone; some keys and values with schemas beside them."""
        key, envelope = {"id": number}, {"source": {"table": "films"}, "ts_ms": 1, **fields}
        if number % 2:
            key = {"schema": {"type": "struct"}, "payload": key}
        if self.rows.rng.integers(2):
            envelope = {"schema": {"type": "struct"}, "payload": envelope}
        key = json.dumps(key).encode()
        self.write(FRAME + key if number % 3 else key, FRAME + json.dumps(envelope).encode() if fields else None)

    def change_row(self, number):
        key, (vector, form), (attributes, forms) = str(number), self.rows.vector(), self.rows.attributes()
        row = self.rows.members(forms, True) | {"id": number, "embedding": form}
        if key in self.items and self.rows.rng.integers(2):
            row["embedding"] = data.pick(self.rows.rng, [UNAVAILABLE, [UNAVAILABLE], list(UNAVAILABLE.encode())])
            vector = self.items[key][0]
            self.leave_out(key, row, attributes)
        self.event(number, before=None, after=row, op="u" if key in self.items else data.pick(self.rows.rng, "cr"))
        self.items[key] = vector, attributes

    def leave_out(self, key, row, attributes):
        """Leave members out of an update, so that the item keeps them."""
        before = self.items[key][1]
        if self.rows.rng.integers(2):
            del row["embedding"]
        for name, member in MEMBERS.items():
            if self.rows.rng.integers(2):
                del row[member]
                attributes.pop(name, None)
                attributes |= {name: before[name]} if name in before else {}

    def test_events_of_debezium(self):
        self.open({"format": "json", "framing": "confluent",
                   "mapping": {"vectors": {"books": "embedding"}, "attributes": PATHS, "envelope": "debezium"}})
        for _ in range(600):
            number, kind = int(self.system.rng.integers(200)), self.system.rng.integers(6)
            if kind > 1:
                self.change_row(number)
                continue
            self.items.pop(str(number), None)
            if kind == 0:
                self.event(number, before={"id": number}, after=None, op="d")
            self.event(number)
        bad = {b'{"op":"t"}': 'op: expected Debezium\'s c, r, u or d, not "t"',
               b'{"id":1,"embedding":[1,2]}': "is there an envelope?",
               b'{"op":"u","after":null}': "after: expected an object, not null"}
        for value, due in bad.items():
            self.write(b'{"id":1}', FRAME + value, due)
        self.write(b'{"id":1}', b'{"op":"d","before":{}}', "its first byte is 0x7b, not 0")
        self.write(b'{"id":1,"of":2}', None, "the record's key has 2 members")
        self.write(b"\0\0\0\0\0\0\0\1", None, "is neither text nor JSON")
        self.check()

    # ------------------------------------------------------------------------------------------------------- framing

    def test_framed_messages(self):
        self.open({"framing": "confluent"})
        for number in range(40):
            vector, _ = self.rows.vector()
            item = pb.Item(parts={"books": pb.Part(vector=pb.Vector(values=vector))})
            item.attributes["year"].integer = number % 9
            forms = [b"\0" + item.SerializeToString(), b"\2\0" + item.SerializeToString(),
                     wire.dumps(wire.item_json(item, "array"))]
            self.write(b"k%d" % number, FRAME + data.pick(self.rows.rng, forms))
            self.items[f"k{number}"] = vector, {"year": number % 9}
        self.write(b"k1", None)
        del self.items["k1"]
        self.write(b"k2", item.SerializeToString(), "its first byte is 0x0a, not 0")
        self.write(b"k2", FRAME[:3], "it has 3 bytes, and the framing alone has 5")
        self.write(b"k2", FRAME + b"\x80", "no list of message indexes")
        self.check()
        self.check_sluicectl("catalogue.framing: confluent")


class FormatsPage(Commands):
    """Tests that the examples of docs/formats.md do what the page says."""

    PAGE = "docs/formats.md"

    def run_section(self, section):
        readme = ("README.md", "## First ten minutes")
        (made,), (config,) = blocks(readme[0], "python", readme[1]), blocks(readme[0], "yaml", readme[1])
        self.run_shell(f"/usr/bin/python3 - <<'END'\n{made}END\n")
        (format,) = blocks(self.PAGE, "yaml", section)
        http = f"http:\n  listen: 127.0.0.1:{harness.free_port()}\nembedded_broker:\n  enabled: true\n  partitions: 1\n"
        config = config.replace("embedded_broker:\n  enabled: true\n", "")
        (self.folder / "sluice.yaml").write_text(config + format + http, encoding="utf-8")
        self.start("sluiced --config sluice.yaml")
        records, query = blocks(self.PAGE, "sh", section)
        self.run_shell(records.replace("127.0.0.1:9092", self.status()["kafka"]["bootstrap"]))
        n_records = len(records.splitlines()) - 2
        eventually(lambda: sum(p["next"] for p in self.status()["watermark"]) == n_records, "the records")
        (shown,) = blocks(self.PAGE, "", section)
        self.assertEqual(self.without_times(self.run_shell(query)), self.without_times(shown))
        self.assertEqual(self.status()["counters"]["dead_letters"], 0)

    def status(self):
        return json.loads(self.run_shell("sluicectl --config sluice.yaml status --json"))

    def test_the_example(self):
        self.run_section("## Example")
        section = "## Have a mapping suggested"
        (command,), (shown,) = blocks(self.PAGE, "sh", section), blocks(self.PAGE, "yaml", section)
        self.assertEqual(self.run_shell(command), shown)

    def test_the_example_of_debezium(self):
        self.run_section("## Debezium")


if __name__ == "__main__":
    data.main()
