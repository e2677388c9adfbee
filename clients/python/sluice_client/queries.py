# SPDX-License-Identifier: Apache-2.0
"""Sends queries and finds their answers: one producer, one reader of the answer topic, any number of threads."""

import functools
import os
import threading
import time
from concurrent.futures import Future
from typing import Any, Mapping, Optional

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from . import sluice_pb2 as pb
from .answer import Answer, answer_of
from .errors import NoBroker, SluiceError, WriteError
from .kafka import Kafka, assign_end, partitions_of, settings, verify_process
from .messages import Query
from .pending import Counters, Pending

PRODUCER = {"linger.ms": 0, "socket.nagle.disable": True}
# Without a group, offsets are never committed; librdkafka wants a name all the same. If the topic was created anew,
# its beginning is read, so that no answer is missed.
CONSUMER = {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 8 << 20}
# How long a request that is over may go unnoticed.
POLL_S = 0.05
# How long the reader waits for the brokers' list of partitions. Meanwhile it looks at nothing else.
REFRESH_TIMEOUT_S = 0.5
# How long before the end of its time the daemon is to answer a query, at most: so that its error, if any, arrives.
MARGIN_S = 0.2
# How long the delivery reports of queries that are purged may take. They are there at once.
PURGE_S = 1


class Queries:
    """Sends queries and returns their answers. All methods may be called from any thread.

    kafka: an address, or properties of librdkafka. producer, consumer: more properties, for one of the two. The
    embedded broker needs consumer={"fetch.wait.max.ms": 5}. Raises NoBroker if none answers within start_timeout_s, and
    SluiceError if there is no query topic or no answer topic.
    """

    def __init__(self, kafka: Kafka, queries_topic: str = "sluice.queries", answers_topic: str = "sluice.answers", *,
                 producer: Optional[Mapping[str, Any]] = None, consumer: Optional[Mapping[str, Any]] = None,
                 start_timeout_s: float = 30, refresh_s: float = 10) -> None:
        self._queries_topic, self._answers_topic = queries_topic, answers_topic
        self._refresh_s = refresh_s  # how often new partitions of the answer topic are looked for
        self._process = os.getpid()
        self._pending = Pending()
        self._closing = threading.Event()
        self._producer = Producer(settings(kafka, {**PRODUCER, "error_cb": self._note}, producer))
        self._consumer = Consumer(settings(kafka, {**CONSUMER, "error_cb": self._note}, consumer))
        try:
            # librdkafka would look for the topic when the first query is sent, and send it a second later.
            partitions_of(self._producer, queries_topic, start_timeout_s)
            # Before the first query is sent, so that no answer can be missed.
            self._partitions = set(assign_end(self._consumer, answers_topic, start_timeout_s))
        except SluiceError:
            self._consumer.close()
            raise
        except KafkaException as error:
            self._consumer.close()
            servers = settings(kafka, CONSUMER, consumer).get("bootstrap.servers")
            raise NoBroker(f"{servers}: {error.args[0]}") from error
        self._refreshed = time.monotonic()
        self._thread = threading.Thread(target=self._read, name="sluice answers", daemon=True)
        self._thread.start()

    def submit(self, query: Query, timeout_s: float = 5) -> "Future[Answer]":
        """Send a query and return the future of its answer.

        The future raises QueryError if the daemon answers with an error, and NoAnswer if there is no answer within
        timeout_s. The query's deadline is a little earlier: the clocks of client and daemon must agree. WriteError,
        here or from the future, says why Kafka does not take the query.
        """
        verify_process(self._process)
        request_id, future = self._pending.add(timeout_s)
        deadline_s = time.time() + timeout_s - min(MARGIN_S, timeout_s / 10)
        try:
            message = query.message(request_id, int(deadline_s * 1000))
            self._send(request_id, message.SerializeToString(), time.monotonic() + timeout_s)
        except Exception as error:
            self._pending.fail(request_id, error)
            raise
        return future

    def ask(self, query: Query, timeout_s: float = 5) -> Answer:
        """Send a query and wait for its answer. It raises what the future of submit() raises.

        Not in a callback of a future: callbacks run in the thread that reads answers. Use submit() there.
        """
        if threading.current_thread() is self._thread:
            raise SluiceError("ask() in a callback would wait for an answer that nobody reads: use submit()")
        return self.submit(query, timeout_s).result()

    @property
    def counters(self) -> Counters:
        return self._pending.counters()

    def close(self) -> None:
        """Stop reading. Requests that are open end with Closed. A second call does nothing, nor one in a fork."""
        if os.getpid() != self._process:
            return
        self._closing.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> "Queries":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _send(self, request_id: str, value: bytes, deadline: float) -> None:
        report = functools.partial(self._delivered, request_id)
        while True:
            try:
                self._producer.produce(self._queries_topic, value, request_id, on_delivery=report)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise WriteError("the queue of the producer stayed full") from None
                self._producer.poll(0.01)  # in a callback, nobody else would
            except KafkaException as error:  # such as a query that is too large
                raise WriteError(f"topic {self._queries_topic}: {error}") from error

    def _note(self, error: Any) -> None:
        self._pending.note(str(error))

    def _delivered(self, request_id: str, error: Any, _: Any) -> None:
        if error:
            self._pending.fail(request_id, WriteError(f"topic {self._queries_topic}: {error}"))

    def _read(self) -> None:
        try:
            while not self._closing.is_set():
                wait_s = self._pending.expire()
                self._producer.poll(0)
                self._take(self._consumer.poll(min(wait_s, POLL_S)))
                self._add_new_partitions()
        finally:
            self._closing.set()
            self._pending.close()
            self._consumer.close()
            # Without this, queries that are not sent yet would keep the producer, its threads and this object for ever.
            self._producer.purge()
            self._producer.flush(PURGE_S)

    def _take(self, message: Any) -> None:
        # librdkafka goes on by itself after errors.
        if message is None or message.error() is not None or message.value() is None:
            return
        # The answer has its query's key: other clients' answers are not even decoded.
        request_id = (message.key() or b"").decode(errors="replace")
        self._pending.answer(request_id, lambda: _answer_in(message.value()))

    def _add_new_partitions(self) -> None:
        """Read partitions that the topic has grown by from their beginning."""
        if time.monotonic() < self._refreshed + self._refresh_s:
            return
        self._refreshed = time.monotonic()
        try:
            now = partitions_of(self._consumer, self._answers_topic, timeout_s=REFRESH_TIMEOUT_S)
            new = [TopicPartition(self._answers_topic, partition, OFFSET_BEGINNING)
                   for partition in now if partition not in self._partitions]
            if new:
                self._consumer.incremental_assign(new)
                self._partitions.update(now)
        except (KafkaException, SluiceError):
            pass  # the brokers or the topic are away; the next look may find them


def _answer_in(value: bytes) -> Answer:
    try:
        message = pb.Answer.FromString(value)
    except Exception as error:  # DecodeError of protobuf, which has no types
        raise SluiceError(f"an answer that cannot be read: {error}") from error
    return answer_of(message)
