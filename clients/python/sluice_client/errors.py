# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package."""

from typing import Tuple, Type


class SluiceError(Exception):
    """The base of all exceptions of this package."""


class QueryError(SluiceError):
    """The daemon answered with an error. `code` is its name, such as "BAD_QUERY" (docs/protocol.md lists them)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message

    def __reduce__(self) -> Tuple[Type["QueryError"], Tuple[str, str]]:
        return QueryError, (self.code, self.message)  # pickle would call it with the one text

    @property
    def can_retry(self) -> bool:
        """Can the same query succeed if it is sent again?"""
        return self.code in ("NOT_SEEN", "UNAVAILABLE", "PARTIAL")


class NoBroker(SluiceError):
    """No broker answered while a client was opened."""


class NoAnswer(SluiceError, TimeoutError):
    """No answer came in time. The query may still be answered; that answer is counted as late, and dropped."""


class WriteError(SluiceError):
    """Kafka did not take a record, or not in time."""


class Closed(SluiceError):
    """The object was closed before the answer came, or before it was used."""
