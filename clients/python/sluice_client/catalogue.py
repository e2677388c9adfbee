# SPDX-License-Identifier: Apache-2.0
"""Writers of the topics that feed a daemon: items, and what users have seen."""

from concurrent.futures import Future
from datetime import datetime
from typing import Any, Iterable, Mapping, Optional

from . import sluice_pb2 as pb
from .kafka import Kafka
from .messages import Key, Plain, item, key_bytes, keys_bytes, unix_ms
from .positions import Positions
from .writer import Writer


class Catalogue(Writer):
    """Writes items. All methods may be called from any thread."""

    def __init__(self, kafka: Kafka, topic: str = "sluice.catalogue") -> None:
        super().__init__(kafka, topic)

    def put(self, key: Key, parts: Mapping[str, Any],
            attributes: Optional[Mapping[str, Plain]] = None) -> "Future[Positions]":
        """Put an item, or change the parts and attributes that are named. An attribute that is None is removed.

        parts: {space: part}. A part is made by vector(), codes() or components(); bare numbers are a vector.
        Return the future of the write's positions: what a query names in `at_least` to see this write.
        """
        return self.write(key_bytes(key), item(parts, attributes).SerializeToString())

    def delete(self, key: Key) -> "Future[Positions]":
        return self.write(key_bytes(key), None)


MAX_SEEN_ITEMS = 10_000  # of one record


class SeenItems(Writer):
    """Writes what users have seen, for queries with exclude_seen_by."""

    def __init__(self, kafka: Kafka, topic: str = "sluice.seen") -> None:
        super().__init__(kafka, topic)

    def add(self, user: Key, items: Iterable[Key], time: Optional[datetime] = None) -> "Future[Positions]":
        """Record that the user has seen these items, in this order, now or at a time; at most 10,000 in a call."""
        seen = pb.Seen(items=keys_bytes("items", items))
        if not 1 <= len(seen.items) <= MAX_SEEN_ITEMS:
            raise ValueError(f"{len(seen.items)} items; a record has 1 to {MAX_SEEN_ITEMS}")
        if time is not None:
            seen.time_unix_ms = unix_ms(time)
        return self.write(key_bytes(user), seen.SerializeToString())

    def forget(self, user: Key) -> "Future[Positions]":
        return self.write(key_bytes(user), None)
