# SPDX-License-Identifier: Apache-2.0
"""An answer as its caller sees it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Dict, List, Mapping, NamedTuple, Optional

from . import sluice_pb2 as pb
from .errors import QueryError
from .messages import Plain, plain_of, time_of
from .positions import Positions


class Hit(NamedTuple):
    """An item that was found."""

    key: bytes
    score: float
    value: Plain = None                 # of the attribute of the query's max_per
    similarity: Optional[float] = None  # the score without the query's boosts; None if it has none
    attributes: Mapping[str, Plain] = {}  # those that the query's `attributes` names, if it has them

    @property
    def text(self) -> str:
        """The key as text. Bytes that are not UTF-8 become escapes."""
        return self.key.decode(errors="backslashreplace")

    def __hash__(self) -> int:  # attributes have none
        return hash((self.key, self.score))


@dataclass(frozen=True)
class Answer:
    """The hits of a query, and what they guarantee."""

    id: str
    hits: List[Hit]               # best first; with mmr in the order in which they were chosen
    exact: bool                   # these are the k best of all items that the query admits, and that reach its
                                  # min_score; with mmr, its candidates are
    bound: Optional[float]        # no other item scores above this, or with mmr no other than its candidates; None if there are no others
    epoch: int                    # the state of the catalogue that was searched, counted by each daemon for itself
    watermark: Positions          # how far that state had read the catalogue
    time_unix_ms: Optional[int]   # the time of that state, if items can expire
    now: Optional[datetime]       # ages in boosts were counted to it; None if the query has no boosts
    generation: int               # of the space, that was searched; 0: the daemon is too old to say it
    model: str                    # the first 16 hexadecimal digits of the SHA-256 of its model file
    shards: Dict[str, int]        # {"answered": 3, "of": 4} of a sharded catalogue; empty if it is not
    message: pb.Answer            # the whole message, with counts and times


def answer_of(message: pb.Answer) -> Answer:
    """Return the answer. Raise QueryError if the message is an error."""
    if message.HasField("error"):
        raise QueryError(_code_name(message.error.code), message.error.message)
    return Answer(
        id=message.id,
        hits=[Hit(hit.key, hit.score, plain_of(hit.value),
                  hit.similarity if hit.HasField("similarity") else None,
                  {name: plain_of(value) for name, value in hit.attributes.items()}) for hit in message.hits],
        exact=message.receipt.exact,
        bound=message.receipt.bound if message.receipt.HasField("bound") else None,
        epoch=message.epoch,
        watermark={position.partition: position.next for position in message.watermark},
        time_unix_ms=message.time_unix_ms if message.HasField("time_unix_ms") else None,
        now=time_of(message.now_unix_ms) if message.HasField("now_unix_ms") else None,
        generation=message.generation,
        model=message.model,
        shards={"answered": message.parts.answered, "of": message.parts.of} if message.HasField("parts") else {},
        message=message)


def _code_name(code: int) -> str:
    """The name of the code. A newer daemon may have codes that this schema lacks."""
    known = pb.Error.Code.DESCRIPTOR.values_by_number
    return str(known[code].name if code in known else code)
