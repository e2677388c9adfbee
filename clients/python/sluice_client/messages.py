# SPDX-License-Identifier: Apache-2.0
"""Messages made of plain Python values. What the daemon would refuse at a look is a ValueError here."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import sluice_pb2 as pb

Key = Union[str, bytes]
# Numbers of a vector: a list, a numpy array, anything that numpy.asarray takes.
Numbers = Any
# A boolean, an integer, a number, a text, a time (a datetime with a time zone, or a numpy.datetime64), a list of these,
# or None.
Plain = Any

MAX_KEY_BYTES = 256
MAX_TEXT_BYTES = 256
MAX_BOOSTS = 8
MAX_LIKES = 100
MAX_BOOST_WEIGHT = 1e9

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Boost:
    """What is added to the score of each item: weight times an attribute, or weight if a filter admits the item. Of an
    attribute of type time it is weight times 2 ** (-age / half_life). An item without the attribute gets nothing."""

    weight: float
    attribute: str = ""
    half_life: Union[timedelta, float, None] = None  # of an attribute of type time; a number is in seconds
    filter: str = ""                                 # in place of an attribute
    parameters: Sequence[Plain] = ()                 # values of $1, $2, ... in the filter

    def message(self) -> pb.Boost:
        """Return the message."""
        if not abs(self.weight) <= MAX_BOOST_WEIGHT:  # nor if it is not a number
            raise ValueError(f"the weight of a boost is from {-MAX_BOOST_WEIGHT:g} to {MAX_BOOST_WEIGHT:g}, "
                             f"not {self.weight}")
        if bool(self.attribute) == bool(self.filter):
            raise ValueError("a boost has an attribute or a filter, and not both")
        if self.filter and self.half_life is not None:
            raise ValueError("half_life is for attributes of type time: a filter has no age")
        if len(self.parameters) > 0 and not self.filter:
            raise ValueError("parameters are for a filter, and the boost has none")
        return pb.Boost(weight=self.weight, attribute=self.attribute, filter=self.filter,
                        half_life_ms=0 if self.half_life is None else _half_life_ms(self.half_life),
                        parameters=[value_of(parameter) for parameter in self.parameters])


@dataclass(frozen=True)
class Query:
    """A request for the k best items of a space. docs/protocol.md explains the fields."""

    space: str
    k: int
    vector: Optional[Numbers] = None
    method: str = ""                              # "": the exact one
    filter: str = ""
    parameters: Sequence[Plain] = ()              # values of $1, $2, ... in the filter
    exclude: Iterable[Key] = ()
    exclude_seen_by: Optional[Key] = None         # a user
    at_least: Optional[Mapping[int, int]] = None  # wait until the catalogue was read to these positions
    at_least_seen: Optional[Mapping[int, int]] = None
    no_wait: bool = False
    user_id: Optional[int] = None
    components: Optional[Numbers] = None
    query_gate: Optional[Numbers] = None
    like: Union[Key, Iterable[Key], Mapping[Key, float], None] = None  # more like this item, in place of a vector; or
                                                  # like several, at most 100, which may have weights
    allow_partial: bool = False                   # of shards that answer in time, without those that do not
    explain: Iterable[Key] = ()                   # the answer's message says why each is a hit or not
    max_per: Optional[Tuple[str, int]] = None     # ("artist", 2): at most 2 hits with the same value of this attribute
    mmr: Union[float, Tuple[float, int], None] = None  # diversity, above 0 to 1, and perhaps how many candidates
    min_score: Optional[float] = None             # hits with lower scores are left out, even if fewer than k are left
    boosts: Sequence[Boost] = ()                  # what is added to scores, at most 8
    now: Optional[datetime] = None                # ages in boosts are counted to it; None: to when the query is sent
    attributes: Sequence[str] = ()                # names of attributes that the hits show
    background: bool = False                      # other queries go first

    def __post_init__(self) -> None:
        # A query can be sent again and again, and a generator gives its keys once.
        for name in ("exclude", "explain", "like"):
            keys = getattr(self, name)
            if keys is not None and not isinstance(keys, (str, bytes, bytearray, Mapping)):
                object.__setattr__(self, name, tuple(keys))

    def message(self, query_id: str, deadline_unix_ms: int) -> pb.Query:
        """Return the message, with an id and a deadline."""
        out = pb.Query(id=query_id, space=self.space, k=self.k, method=self.method, filter=self.filter,
                       no_wait=self.no_wait, allow_partial=self.allow_partial,
                       background=self.background, deadline_unix_ms=deadline_unix_ms,
                       exclude=keys_bytes("exclude", self.exclude),
                       explain=keys_bytes("explain", self.explain),
                       attributes=_names(self.attributes),
                       parameters=[value_of(parameter) for parameter in self.parameters],
                       at_least=_positions(self.at_least), at_least_seen=_positions(self.at_least_seen))
        for name in ("vector", "components", "query_gate"):
            numbers = getattr(self, name)
            if numbers is not None:
                getattr(out, name).CopyFrom(_vector(numbers))
        if self.user_id is not None:
            out.user_id = self.user_id
        if self.exclude_seen_by is not None:
            out.exclude_seen_by = key_bytes(self.exclude_seen_by)
        if isinstance(self.like, (str, bytes, bytearray)):
            out.like = key_bytes(self.like)
        elif self.like is not None:
            out.likes.extend(_likes(self.like))
        if self.max_per is not None:
            out.max_per.attribute, out.max_per.n = self.max_per
            if out.max_per.n < 1:
                raise ValueError(f"max_per is an attribute and a number of at least 1, not {self.max_per}")
        if self.mmr is not None:
            out.mmr.CopyFrom(_mmr(*self.mmr) if isinstance(self.mmr, Sequence) else _mmr(self.mmr))
        if self.min_score is not None:
            if not abs(self.min_score) <= np.finfo(np.float32).max:  # nor if it is not a number
                raise ValueError(f"min_score is a number of 32 bits, not {self.min_score}")
            out.min_score = self.min_score
        if len(self.boosts) > MAX_BOOSTS:
            raise ValueError(f"{len(self.boosts)} boosts, at most {MAX_BOOSTS}")
        out.boosts.extend(boost.message() for boost in self.boosts)
        if self.now is not None:
            if not self.boosts:
                raise ValueError("now is for boosts, and the query has none")
            out.now_unix_ms = unix_ms(self.now)
        return out


def _mmr(diversity: float, candidates: int = 0) -> pb.Mmr:
    if not 0 < diversity <= 1:  # nor if it is not a number
        raise ValueError(f"the diversity of mmr is above 0, and at most 1, not {diversity}")
    return pb.Mmr(diversity=diversity, candidates=candidates)


def _likes(items: Union[Iterable[Key], Mapping[Key, float]]) -> List[pb.Like]:
    if isinstance(items, Mapping):
        out = [pb.Like(key=key_bytes(key), weight=weight) for key, weight in items.items()]
    else:
        out = [pb.Like(key=key_bytes(key)) for key in items]
    if not 1 <= len(out) <= MAX_LIKES:
        raise ValueError(f"like has 1 to {MAX_LIKES} items, not {len(out)}")
    return out


def vector(numbers: Numbers) -> pb.Part:
    """A part with a vector: for every similarity but recjpq."""
    return pb.Part(vector=_vector(numbers))


def codes(values: Iterable[int]) -> pb.Part:
    """A part with codes, one for each split: for recjpq."""
    return pb.Part(codes=bytes(int(value) for value in values))


def components(numbers: Numbers, item_gate: Numbers) -> pb.Part:
    """A part with the components and the gate of an item, computed by the client: for mol."""
    return pb.Part(components=_vector(numbers), item_gate=_vector(item_gate))


def item(parts: Mapping[str, Any], attributes: Optional[Mapping[str, Plain]] = None) -> pb.Item:
    """An item. A part is made by vector(), codes() or components(); bare numbers are a vector."""
    out = pb.Item()
    for space, part in parts.items():
        out.parts[space].CopyFrom(part if isinstance(part, pb.Part) else vector(part))
    for name, plain in (attributes or {}).items():
        out.attributes[name].CopyFrom(value_of(plain))
    if not out.parts and not out.attributes:
        raise ValueError("an item without parts and attributes changes nothing: delete() removes an item")
    return out


def keys_bytes(name: str, keys: Iterable[Key]) -> List[bytes]:
    if isinstance(keys, (str, bytes)):
        raise ValueError(f"{name} is a list of keys, not one key: [{keys!r}]")
    return [key_bytes(key) for key in keys]


def _names(names: Sequence[str]) -> Sequence[str]:
    if isinstance(names, str):
        raise ValueError(f"attributes is a list of names, not one name: [{names!r}]")
    return names


def key_bytes(key: Key) -> bytes:
    if not isinstance(key, (str, bytes, bytearray)):
        raise ValueError(f"a key is text or bytes, not {key!r}")
    out = key.encode() if isinstance(key, str) else bytes(key)
    if not 1 <= len(out) <= MAX_KEY_BYTES:
        raise ValueError(f"a key of {len(out)} bytes is not between 1 and {MAX_KEY_BYTES}")
    return out


def value_of(plain: Plain) -> pb.Value:
    if isinstance(plain, np.ndarray):
        plain = list(plain) if plain.ndim else plain[()]
    if plain is None:
        return pb.Value()
    if isinstance(plain, (list, tuple, set, frozenset)):
        return pb.Value(list=_list_of(plain))
    plain = _scalar(plain)
    return pb.Value(**{_kind(plain): plain})


def plain_of(value: pb.Value) -> Plain:
    """The value of a hit, or one of its attributes."""
    kind = value.WhichOneof("kind")
    if kind == "list":
        return [*value.list.booleans, *value.list.integers, *value.list.numbers, *value.list.texts]
    return getattr(value, kind) if kind else None


def time_of(ms: int) -> datetime:
    """The time of an answer, in UTC."""
    return _EPOCH + ms * _MS


def unix_ms(time: datetime) -> int:
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: such as datetime.now(timezone.utc) has one")
    if time < _EPOCH:
        raise ValueError(f"{time} is before 1970")
    return (time - _EPOCH) // _MS


def _half_life_ms(half_life: Union[timedelta, float]) -> int:
    span = half_life if isinstance(half_life, timedelta) else timedelta(seconds=half_life)
    if span < _MS:
        raise ValueError(f"a half-life is at least a millisecond, not {half_life}")
    return span // _MS


def _list_of(elements: Iterable[Plain]) -> pb.Value.List:
    out = pb.Value.List()
    for element in elements:
        element = _scalar(element)
        getattr(out, _kind(element) + "s").append(element)
    return out


def _scalar(plain: Plain) -> Plain:
    """A value of Python in place of one of numpy, and milliseconds since 1970 in place of a time."""
    if isinstance(plain, np.datetime64):
        if np.isnat(plain):
            raise ValueError("NaT is no time: None removes an attribute")
        return int(plain.astype("datetime64[ms]").astype(np.int64))
    if isinstance(plain, datetime):
        return unix_ms(plain)
    if isinstance(plain, np.generic) and not isinstance(plain, np.timedelta64):
        return plain.item()
    return plain


def _kind(plain: Plain) -> str:
    # bool first: it is an int, too.
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "text")):
        if isinstance(plain, kind):
            _verify(plain)
            return name
    raise ValueError(f"{plain!r} is not a boolean, an integer, a number, a text or a time")


def _verify(plain: Plain) -> None:
    if isinstance(plain, float) and not math.isfinite(plain):
        raise ValueError(f"{plain} is not a finite number: None removes an attribute")
    if isinstance(plain, str) and ("\0" in plain or len(plain.encode()) > MAX_TEXT_BYTES):
        raise ValueError(f"a text has at most {MAX_TEXT_BYTES} bytes, and no zero character: {plain[:40]!r}...")


def _vector(numbers: Numbers) -> pb.Vector:
    array = np.asarray(numbers)
    half = array.dtype == np.float16
    array = np.ascontiguousarray(array, "<f2" if half else "<f4").ravel()
    if not np.isfinite(array).all():
        raise ValueError("a number is not finite in 32 bits")
    return pb.Vector(type=pb.Vector.F16 if half else pb.Vector.F32, data=array.tobytes())


def _positions(positions: Optional[Mapping[int, int]]) -> Iterable[pb.Position]:
    return [pb.Position(partition=partition, next=following) for partition, following in (positions or {}).items()]
