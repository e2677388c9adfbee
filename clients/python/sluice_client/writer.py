# SPDX-License-Identifier: Apache-2.0
"""Writes records to one topic, and knows how far they reach.

A thread serves the delivery reports, so that the future of a record completes by itself.
"""

import functools
import os
import threading
from concurrent.futures import Future, wait
from typing import Any, Optional, Set, Type, TypeVar

from confluent_kafka import KafkaException, Producer

from .errors import Closed, SluiceError, WriteError
from .futures import end
from .kafka import Kafka, settings, verify_process
from .positions import Positions

# Idempotence keeps the records of a key in order when one is sent again.
DEFAULTS = {"enable.idempotence": True, "linger.ms": 5}
POLL_S = 0.1
# How long the delivery reports of records that are given up may take. They are there at once.
GIVE_UP_S = 1

Self = TypeVar("Self", bound="Writer")


class Writer:
    """A producer for one topic. All methods may be called from any thread."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        self._process = os.getpid()
        self._cause: Optional[str] = None  # the last fault since a record was written
        self._producer = Producer(settings(kafka, {**DEFAULTS, "error_cb": self._note}))
        self._lock = threading.Lock()
        self._open: "Set[Future[Positions]]" = set()
        self._positions: Positions = {}
        self._failures = 0
        self._first_failure: Optional[WriteError] = None
        self._closed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"sluice writer of {topic}", daemon=True)
        self._thread.start()

    def write(self, key: bytes, value: Optional[bytes]) -> "Future[Positions]":
        """Write a record; return the future of its positions. Wait while the producer's queue is full.

        WriteError, here or from the future, says why Kafka does not take the record.
        """
        verify_process(self._process)
        future: "Future[Positions]" = Future()
        future.set_running_or_notify_cancel()  # a record cannot be called back
        report = functools.partial(self._delivered, future)
        with self._lock:
            if self._closed:
                raise Closed("the writer is closed")
            self._open.add(future)
        try:
            while not self._produce(key, value, report):
                self._producer.poll(POLL_S)
        except BaseException:  # also if the program is interrupted while it waits
            with self._lock:
                self._open.discard(future)
            raise
        return future

    @property
    def positions(self) -> Positions:
        """How far the records reach that Kafka has taken: all that this object has written."""
        with self._lock:
            return dict(self._positions)

    def flush(self, timeout_s: float = 60) -> Positions:
        """Wait until Kafka has every record written so far, and return `positions`. Not in a callback of a future.

        Raise WriteError if some are not there in time, or if any failed since the last flush.
        """
        verify_process(self._process)
        self._refuse_in_callback()
        with self._lock:
            waiting = set(self._open)
        late = wait(waiting, timeout_s).not_done
        with self._lock:
            failures, first = self._failures, self._first_failure
            self._failures, self._first_failure = 0, None
        if failures:
            raise WriteError(f"{failures} records were not written; the first: {first}") from first
        if late:
            cause = f": {self._cause}" if self._cause else ""
            raise WriteError(f"{len(late)} of {len(waiting)} records are not in Kafka after {timeout_s} s{cause}")
        return self.positions

    def close(self, timeout_s: float = 60) -> None:
        """Refuse further records, flush, and end the thread. A second call does nothing. Not in a callback of a future.

        Records that are not in Kafka in time are given up: their futures end with WriteError.
        """
        if os.getpid() != self._process:
            return  # the process that opened it closes it
        self._refuse_in_callback()
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            self.flush(timeout_s)
        finally:
            with self._lock:
                self._stop.set()
            self._thread.join()
            self._give_up()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        """Close. After an error, records that do not reach Kafka soon hide neither it nor the end of the program."""
        try:
            self.close(60 if kind is None else 2)
        except WriteError:
            if kind is None:
                raise

    def _refuse_in_callback(self) -> None:
        if threading.current_thread() is self._thread:
            raise SluiceError("flush() or close() in a callback would wait for its own thread")

    def _produce(self, key: bytes, value: Optional[bytes], report: Any) -> bool:
        with self._lock:
            if self._stop.is_set():
                raise Closed("the writer was closed while a record waited for room")
            try:
                self._producer.produce(self._topic, value, key, on_delivery=report)
            except BufferError:
                return False
            except KafkaException as error:  # such as a record that is too large
                raise WriteError(f"topic {self._topic}: {error}") from error
        return True

    def _give_up(self) -> None:
        """End the futures of records that are not in Kafka. The producer would live as long as it has records."""
        self._producer.purge()
        self._producer.flush(GIVE_UP_S)

    def _note(self, error: Any) -> None:
        self._cause = str(error)

    def _delivered(self, future: "Future[Positions]", error: Any, message: Any) -> None:
        # The future comes last, because it wakes flush().
        if error:
            failure = WriteError(f"topic {self._topic}: {error}")
            self._end(future, {}, failure)
            end(future, error=failure)
        else:
            reached = {message.partition(): message.offset() + 1}
            self._cause = None
            self._end(future, reached, None)
            end(future, reached)

    def _end(self, future: "Future[Positions]", reached: Positions, failure: Optional[WriteError]) -> None:
        with self._lock:
            self._open.discard(future)
            for partition, following in reached.items():
                self._positions[partition] = max(following, self._positions.get(partition, 0))
            if failure:
                self._failures += 1
                self._first_failure = self._first_failure or failure

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(POLL_S)
