# SPDX-License-Identifier: Apache-2.0
"""Sluice's wire format as a client implements it: protobuf compiled from proto/sluice.proto, and JSON.

All tests use protobuf objects as messages. This file encodes and decodes them in either format.
"""

import base64
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from safetensors_io import bf16_to_f32, f32_to_bf16

ROOT = Path(__file__).resolve().parents[2]
PROTOBUF = "application/x-protobuf"
JSON = "application/json"


def _compile_schema():
    with tempfile.TemporaryDirectory(prefix="sluice-proto-") as directory:
        subprocess.run(["protoc", f"--proto_path={ROOT / 'proto'}", f"--python_out={directory}", "sluice.proto"],
                       check=True)
        sys.path.insert(0, directory)
        try:
            return importlib.import_module("sluice_pb2")
        finally:
            sys.path.remove(directory)


pb = _compile_schema()


class WireError(Exception):
    """A message is malformed; the text says why."""


# ---------------------------------------------------------------------------------------------------- vectors

def vector(values, kind="F32"):
    """Return a pb.Vector. kind: F32, F16, BF16, or VALUES for the repeated field."""
    values = np.asarray(values, np.float32).ravel()
    if kind == "VALUES":
        return pb.Vector(values=values.tolist())
    data = {"F32": lambda: values.astype("<f4"), "F16": lambda: values.astype("<f2"),
            "BF16": lambda: f32_to_bf16(values)}[kind]()
    return pb.Vector(type=pb.Vector.Type.Value(kind), data=data.tobytes())


def floats_of(message):
    """Return the numbers of a pb.Vector as float32. Raise WireError if it is malformed."""
    if message.data and message.values:
        raise WireError("both data and values")
    if message.data:
        name = pb.Vector.Type.Name(message.type)
        size = {"F32": 4, "F16": 2, "BF16": 2}[name]
        if len(message.data) % size:
            raise WireError(f"{len(message.data)} bytes are not whole {name} numbers")
        if name == "BF16":
            values = bf16_to_f32(np.frombuffer(message.data, "<u2"))
        else:
            values = np.frombuffer(message.data, {"F32": "<f4", "F16": "<f2"}[name]).astype(np.float32)
    else:
        values = np.array(message.values, np.float32)
    if not np.isfinite(values).all():
        raise WireError("a number is not finite")
    return values


# ---------------------------------------------------------------------------------------------------- to JSON

def vector_json(message, form="array"):
    if message.data and form == "data":
        return {"type": pb.Vector.Type.Name(message.type), "data": base64.b64encode(message.data).decode()}
    # Nine digits are enough to restore the same float32.
    values = [float("%.9g" % v) for v in floats_of(message)]
    return {"values": values} if form == "values" else values


def key_json(key):
    try:
        return key.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(key).decode()}


def part_json(part, form="array"):
    out = {name: vector_json(getattr(part, name), form)
           for name in ("vector", "components", "item_gate") if part.HasField(name)}
    if part.codes:
        out["codes"] = base64.b64encode(part.codes).decode() if form == "data" else list(part.codes)
    return out


def value_of(message):
    """Return a pb.Value as a plain Python value. A list is in the order of its kinds."""
    kind = message.WhichOneof("kind")
    if kind == "list":
        elements = message.list
        return [*elements.booleans, *elements.integers, *elements.numbers, *elements.texts]
    return getattr(message, kind) if kind else None


def make_value(plain):
    """Return a pb.Value of a plain Python value."""
    if plain is None:
        return pb.Value()
    if isinstance(plain, (list, tuple)):
        kinds = {bool: "booleans", int: "integers", float: "numbers", str: "texts"}
        out = pb.Value(list=pb.Value.List())
        for element in plain:
            getattr(out.list, kinds[type(element)]).append(element)
        return out
    return pb.Value(**{{bool: "boolean", int: "integer", float: "number", str: "text"}[type(plain)]: plain})


def item_json(item, form="array"):
    out = {"parts": {space: part_json(part, form) for space, part in item.parts.items()}}
    if item.attributes:
        out["attributes"] = {name: value_of(message) for name, message in item.attributes.items()}
    return out


def boosts_json(query, name=str, integer=int):
    """Return a query's boosts. name: how fields are written; integer: how 64-bit integers are."""
    out = []
    for boost in query.boosts:
        out.append({"weight": boost.weight})
        if boost.filter:
            out[-1]["filter"] = boost.filter
        if boost.parameters:
            out[-1]["parameters"] = [value_of(message) for message in boost.parameters]
        if boost.attribute:
            out[-1]["attribute"] = boost.attribute
        if boost.half_life_ms:
            out[-1][name("half_life_ms")] = integer(boost.half_life_ms)
    return out


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def query_json(query, form="array", camel_case=False, ints_as_text=False):
    integer = str if ints_as_text else int
    name = camel if camel_case else str
    out = {"id": query.id, "space": query.space, "k": query.k}
    if query.method:
        out["method"] = query.method
    for field in ("vector", "components", "query_gate"):
        if query.HasField(field):
            out[name(field)] = vector_json(getattr(query, field), form)
    for field in ("user_id", "deadline_unix_ms", "now_unix_ms"):
        if query.HasField(field):
            out[name(field)] = integer(getattr(query, field))
    if query.exclude:
        out["exclude"] = [key_json(key) for key in query.exclude]
    if query.at_least:
        out[name("at_least")] = [{"partition": p.partition, "next": integer(p.next)} for p in query.at_least]
    if query.exclude_seen_by:
        out[name("exclude_seen_by")] = key_json(query.exclude_seen_by)
    if query.at_least_seen:
        out[name("at_least_seen")] = [{"partition": p.partition, "next": integer(p.next)} for p in query.at_least_seen]
    for field in ("no_wait", "allow_partial"):
        if getattr(query, field):
            out[name(field)] = True
    if query.like:
        out["like"] = key_json(query.like)
    if query.likes:
        out["likes"] = [{"key": key_json(like.key), **({"weight": like.weight} if like.HasField("weight") else {})}
                        for like in query.likes]
    if query.explain:
        out["explain"] = [key_json(key) for key in query.explain]
    if query.reply_topic:
        out[name("reply_topic")] = query.reply_topic
    if query.filter:
        out["filter"] = query.filter
    if query.HasField("max_per"):
        out[name("max_per")] = {"attribute": query.max_per.attribute, "n": query.max_per.n}
    if query.HasField("min_score"):
        out["min_score"] = query.min_score
    if query.HasField("mmr"):
        out["mmr"] = {"diversity": query.mmr.diversity, "candidates": query.mmr.candidates}
    if query.parameters:
        out["parameters"] = [value_of(message) for message in query.parameters]
    if query.boosts:
        out["boosts"] = boosts_json(query, name, integer)
    if query.attributes:
        out["attributes"] = list(query.attributes)
    return out


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# -------------------------------------------------------------------------------------------------- from JSON

def _finite_json(text):
    def refuse(name):
        raise WireError(f"{name} is not JSON")
    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from None


def _fields(value, allowed, what):
    if not isinstance(value, dict):
        raise WireError(f"{what} is not an object")
    names = {}
    for field in allowed:
        names[field] = names[camel(field)] = field
    unknown = [name for name in value if name not in names]
    if unknown:
        raise WireError(f"{what} has an unknown field '{unknown[0]}'")
    return {names[name]: inner for name, inner in value.items()}


def _base64(text, what):
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise WireError(f"{what} is not base64") from None


def _vector_of(value, what):
    if isinstance(value, list):
        value = {"values": value}
    fields = _fields(value, ("type", "data", "values"), what)
    out = pb.Vector()
    if "data" in fields:
        out.type = pb.Vector.Type.Value(fields.get("type", "F32"))
        out.data = _base64(fields["data"], what)
    values = fields.get("values", [])
    if not isinstance(values, list) or any(type(x) not in (int, float) for x in values):
        raise WireError(f"{what} is not a list of numbers")
    with np.errstate(over="ignore"):
        rounded = np.array(values, np.float64).astype(np.float32)
    if not np.isfinite(rounded).all():
        raise WireError(f"{what} has a number that is not finite")
    out.values.extend(rounded.tolist())
    return out


def _codes_of(value):
    if isinstance(value, str):
        return _base64(value, "codes")
    if not isinstance(value, list) or any(isinstance(c, bool) or not isinstance(c, int) for c in value):
        raise WireError("codes are not integers")
    if any(not 0 <= c <= 255 for c in value):
        raise WireError("a code is out of range")
    return bytes(value)


def _item_from_json(text):
    item = pb.Item()
    whole = _fields(_finite_json(text), ("parts", "attributes"), "item")
    for name, plain in whole.get("attributes", {}).items():
        item.attributes[name].CopyFrom(make_value(plain))
    parts = whole.get("parts", {})
    if not isinstance(parts, dict):
        raise WireError("parts is not an object")
    for space, value in parts.items():
        fields = _fields(value, ("vector", "components", "item_gate", "codes"), "part")
        part = item.parts[space]
        part.SetInParent()
        for name in ("vector", "components", "item_gate"):
            if name in fields:
                getattr(part, name).CopyFrom(_vector_of(fields[name], name))
        if "codes" in fields:
            part.codes = _codes_of(fields["codes"])
    return item


def is_json(value, headers):
    content_type = dict(headers or []).get("content-type", b"")
    if content_type:
        return content_type.decode() == JSON
    return value[:1] == b"{"


def decode_item(value, headers):
    """Decode the value of a catalogue record as a pb.Item. Raise WireError if it is malformed."""
    if is_json(value, headers):
        try:
            return _item_from_json(value)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise WireError(f"a field of the wrong kind: {error}") from None
    item = pb.Item()
    try:
        item.ParseFromString(value)
    except Exception as error:
        raise WireError(f"not protobuf: {error}") from None
    return item


def _integer(value, what):
    if isinstance(value, str):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WireError(f"{what} is not an integer")
    return value


def _key_of(value):
    if isinstance(value, str):
        return value.encode()
    return _base64(_fields(value, ("base64",), "key")["base64"], "key")


def _strict(value, allowed, what):
    # The daemon promises snake_case field names in answers, and no others.
    unknown = set(value) - set(allowed)
    if unknown:
        raise WireError(f"{what} has unknown fields {sorted(unknown)}")
    return value


def answer_from_json(text):
    fields = _strict(_finite_json(text), [f.name for f in pb.Answer.DESCRIPTOR.fields], "answer")
    out = pb.Answer(id=fields.get("id", ""), space=fields.get("space", ""), method=fields.get("method", ""),
                    generation=fields.get("generation", 0), model=fields.get("model", ""),
                    epoch=_integer(fields.get("epoch", 0), "epoch"))
    for hit in fields.get("hits", []):
        _strict(hit, ("key", "score", "value", "similarity", "attributes"), "hit")
        out.hits.add(key=_key_of(hit["key"]), score=hit["score"])
        if "similarity" in hit:
            out.hits[-1].similarity = hit["similarity"]
        if "value" in hit:
            out.hits[-1].value.CopyFrom(make_value(hit["value"]))
        for name, plain in hit.get("attributes", {}).items():
            out.hits[-1].attributes[name].CopyFrom(make_value(plain))
    if "receipt" in fields:
        receipt = _strict(fields["receipt"], ("exact", "bound"), "receipt")
        out.receipt.exact = receipt.get("exact", False)
        if "bound" in receipt:
            out.receipt.bound = receipt["bound"]
    for row in fields.get("explanations", []):
        _strict(row, [f.name for f in pb.Explanation.DESCRIPTOR.fields], "explanation")
        out.explanations.add(key=_key_of(row["key"]), verdict=pb.Explanation.Verdict.Value(row["verdict"]),
                             **{name: row[name] for name in ("score", "rank", "below_last_hit") if name in row})
    if "parts" in fields:
        parts = _strict(fields["parts"], ("answered", "of"), "parts")
        out.parts.answered, out.parts.of = parts["answered"], parts["of"]
    for position in fields.get("watermark", []):
        _strict(position, ("partition", "next"), "position")
        out.watermark.add(partition=position.get("partition", 0), next=_integer(position.get("next", 0), "next"))
    for name in ("counts", "times"):
        inner = getattr(out, name)
        for field, value in fields.get(name, {}).items():
            setattr(inner, field, _integer(value, field))
    for name in ("time_unix_ms", "now_unix_ms"):
        if name in fields:
            setattr(out, name, _integer(fields[name], name))
    if "error" in fields:
        error = _strict(fields["error"], ("code", "message"), "error")
        out.error.code = pb.Error.Code.Value(error["code"])
        out.error.message = error.get("message", "")
    return out


def decode_answer(value, headers):
    """Decode a record of the answer topic as a pb.Answer. Its content-type header must exist and be correct."""
    content_type = dict(headers or []).get("content-type", b"").decode()
    if content_type == JSON:
        return answer_from_json(value)
    if content_type != PROTOBUF:
        raise WireError(f"the answer's content-type is '{content_type}'")
    return pb.Answer.FromString(value)
