# SPDX-License-Identifier: Apache-2.0
"""The book of requests that wait for their answers. It knows neither Kafka nor the wall clock.

Every request gets a unique id and ends exactly once: with an answer, an error, or because its time is over. Answers
that come later, or again, are recognised and counted.
"""

import heapq
import math
import threading
import time
import uuid
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from .errors import Closed, NoAnswer
from .futures import end


@dataclass
class Counters:
    """What became of requests, and which answers had no use."""

    sent: int = 0        # requests
    answered: int = 0    # requests that got hits or an error in time
    timed_out: int = 0   # requests that were given up: their time was over, or they were cancelled
    failed: int = 0      # requests that Kafka did not take, or that were open at the end
    late: int = 0        # answers to requests that had been given up
    duplicates: int = 0  # second answers
    foreign: int = 0     # answers to other clients


class _Request(NamedTuple):
    future: "Future[Any]"
    deadline: float  # of the clock
    timeout_s: float


class Pending:
    """The open requests of one client. All methods may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, remember: int = 100_000) -> None:
        self._clock = clock
        self._remember = remember  # given-up requests whose late answers are told from duplicates
        self._prefix = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._open: Dict[str, _Request] = {}
        self._deadlines: List[Tuple[float, str]] = []  # a heap; requests that were answered stay in it
        self._given_up: "OrderedDict[str, None]" = OrderedDict()
        self._counters = Counters()
        self._closed = False
        self._trouble = ""  # the last one since an answer came

    def note(self, trouble: str) -> None:
        """Say what may be the reason if the next requests get no answer."""
        self._trouble = trouble

    def add(self, timeout_s: float) -> Tuple[str, "Future[Any]"]:
        """Open a request that is given up after timeout_s. Return its id and the future of its answer."""
        if not timeout_s < math.inf:  # nor if it is not a number: the deadlines after it would not be seen
            raise ValueError(f"a timeout is a number of seconds, not {timeout_s}")
        future: "Future[Any]" = Future()
        deadline = self._clock() + timeout_s
        with self._lock:
            if self._closed:
                raise Closed("the client is closed")
            self._counters.sent += 1
            request_id = f"{self._prefix}-{self._counters.sent}"
            self._open[request_id] = _Request(future, deadline, timeout_s)
            heapq.heappush(self._deadlines, (deadline, request_id))
        return request_id, future

    def answer(self, request_id: str, make: Callable[[], Any]) -> None:
        """End a request with what `make` returns or raises. Count an answer that ends none; it is not made."""
        request = self._take(request_id)
        if request is None:
            return
        try:
            result = make()
        except Exception as error:
            end(request.future, error=error)
        else:
            end(request.future, result)

    def fail(self, request_id: str, error: Exception) -> None:
        """End a request that could not be sent."""
        with self._lock:
            request = self._open.pop(request_id, None)
            if request is None:
                return
            self._counters.failed += 1
            # The record may be in Kafka all the same.
            self._give_up(request_id)
        if request.future.set_running_or_notify_cancel():
            end(request.future, error=error)

    def expire(self) -> float:
        """Give up the requests whose time is over. Return the seconds until the next one's is, at most a minute."""
        expired = []
        with self._lock:
            now = self._clock()
            while self._deadlines and self._deadlines[0][0] <= now:
                _, request_id = heapq.heappop(self._deadlines)
                request = self._open.pop(request_id, None)
                if request:
                    self._counters.timed_out += 1
                    self._give_up(request_id)
                    expired.append(request)
            wait_s = min(60.0, self._deadlines[0][0] - now) if self._deadlines else 60.0
        for request in expired:
            if request.future.set_running_or_notify_cancel():
                trouble = f": {self._trouble}" if self._trouble else ""
                end(request.future, error=NoAnswer(f"no answer within {request.timeout_s} s{trouble}"))
        return wait_s

    def close(self) -> None:
        """End all open requests, and refuse new ones."""
        with self._lock:
            self._closed = True
            left, self._open = self._open, {}
            self._counters.failed += len(left)
        for request in left.values():
            if request.future.set_running_or_notify_cancel():
                end(request.future, error=Closed("the client was closed before the answer came"))

    def counters(self) -> Counters:
        with self._lock:
            return replace(self._counters)

    def _take(self, request_id: str) -> "_Request | None":
        """Close and return the request that this answer ends, if it ends one."""
        self._trouble = ""
        self.expire()
        with self._lock:
            request = self._open.pop(request_id, None)
            if request is None:
                self._count_useless(request_id)
                return None
            if request.future.set_running_or_notify_cancel():
                self._counters.answered += 1
                return request
            self._counters.timed_out += 1
            self._counters.late += 1
        return None

    def _count_useless(self, request_id: str) -> None:
        if not request_id.startswith(self._prefix):
            self._counters.foreign += 1
        elif request_id in self._given_up:
            # The next answer to the same request is its duplicate.
            del self._given_up[request_id]
            self._counters.late += 1
        else:
            self._counters.duplicates += 1

    def _give_up(self, request_id: str) -> None:
        self._given_up[request_id] = None
        if len(self._given_up) > self._remember:
            self._given_up.popitem(last=False)
