# SPDX-License-Identifier: Apache-2.0
"""Several daemons of one query group on a real broker, and a client outside that counts every answer.

    Replicas     the daemons, their topics and their catalogue
    Load         sends queries at a fixed rate, whether they are answered or not, and notes each answer
"""

import secrets
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

import data
import models
import wire
from harness import QUIET, SLOWNESS, Daemon, eventually, merged, partitions_of
from wire import pb

SPACE = "codes"
MODEL = {"m": 8, "b": 256, "d": 64}
CATALOGUE_PARTITIONS = 4
KEY_BYTES = 8  # of an item


class Replicas:
    """`n` daemons with a catalogue of `n_items` items, none of them started. Each has a store of its own."""

    def __init__(self, broker, n, n_items, n_partitions, session_ms=6000, config=None):
        self.broker, self.n_items, self.n_partitions, self.session_ms = broker, n_items, n_partitions, session_ms
        self.prefix = f"replicas-{secrets.token_hex(3)}"
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-replicas-")
        self.rng = data.generator("replicas")
        model = Path(self.folder.name) / "codes.safetensors"
        self._write_model(model)
        broker.create_topic(self.topic("catalogue"), CATALOGUE_PARTITIONS, {"cleanup.policy": "compact"})
        broker.create_topic(self.topic("queries"), n_partitions)
        broker.create_topic(self.topic("answers"), 3)
        broker.create_topic(self.topic("dead-letters"), 1)
        self.base = merged({
            "kafka": {"bootstrap.servers": broker.bootstrap},
            "catalogue": {"topic": self.topic("catalogue"), "dead_letter_topic": self.topic("dead-letters"),
                          "max_items": n_items + 1000},
            "query": {"topic": self.topic("queries"), "answer_topic": self.topic("answers"),
                      "group": self.topic("group"), "kafka": {"session.timeout.ms": session_ms}},
            "spaces": {SPACE: {"model": str(model)}},
        }, config or {})
        self.daemons = [self._daemon(i) for i in range(n)]
        self._write_items()

    def topic(self, kind):
        return f"{self.prefix}.{kind}"

    def _daemon(self, number):
        folder = Path(self.folder.name) / f"daemon-{number}"
        folder.mkdir()
        return Daemon(merged(self.base, {"store": {"path": str(folder / "store")}}), folder)

    def _write_model(self, path):
        models.random_recjpq(self.rng, path, **MODEL)

    def _item(self):
        """Return an item, and how many bytes at the end of its record items differ in."""
        item = pb.Item()
        item.parts[SPACE].codes = bytes(MODEL["m"])
        return item, MODEL["m"]

    def _random_bytes(self, n):
        """Return the last bytes of an item's record."""
        return self.rng.bytes(n)

    def _write_items(self):
        item, n_bytes = self._item()
        head = item.SerializeToString()[:-n_bytes]
        producer = Producer({**QUIET, "bootstrap.servers": self.broker.bootstrap, "linger.ms": 50,
                             "enable.idempotence": True, "queue.buffering.max.messages": 1000000})
        for number in range(self.n_items):
            value = head + self._random_bytes(n_bytes)
            while True:
                try:
                    producer.produce(self.topic("catalogue"), value, b"%0*d" % (KEY_BYTES, number))
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        assert producer.flush(120 * SLOWNESS) == 0, "items could not be written"

    def start(self, numbers=None, timeout_s=120):
        """Start the daemons, and wait until each is ready, has all items and has been let into the group."""
        chosen = [self.daemons[i] for i in numbers] if numbers is not None else self.daemons
        for daemon in chosen:
            daemon.start()
        for daemon in chosen:
            daemon.wait_ready(timeout_s)
            items = daemon.status()["items"]
            assert items == self.n_items, f"{items} of {self.n_items} items"

    def partitions(self):
        """Return how many query partitions each running daemon reads, from its log."""
        def of(daemon):
            events = [line for line in daemon.log().splitlines() if "event=query_partitions" in line]
            return int(events[-1].rsplit("assigned=", 1)[1].split()[0]) if "assigned=" in events[-1] else 0
        return [of(d) for d in self.daemons if d.is_running()]

    def close(self):
        for daemon in self.daemons:
            if daemon.is_running():
                daemon.kill()
        self.folder.cleanup()


class Load:
    """Queries at a fixed rate, in a thread of its own. Use it as a context; the results are complete after finish()."""

    def __init__(self, replicas, rate, method="prune(8)", k=10):
        self.replicas, self.rate, self.method, self.k = replicas, rate, method, k
        self.rng = data.generator("load")
        self.n_partitions = replicas.n_partitions
        self.prefix = secrets.token_hex(4)
        self.sent = {}                     # id -> when
        self.answered = defaultdict(list)  # id -> [when]
        self.times = {}                    # id -> what the answer says of its times
        self.errors = []
        self.is_sending, self.is_reading = True, True
        settings = {**QUIET, "bootstrap.servers": replicas.broker.bootstrap}
        # Idempotent: a query that is written twice is answered twice.
        self.producer = Producer({**settings, "linger.ms": 0, "enable.idempotence": True})
        self.consumer = Consumer({**settings, "group.id": "load", "enable.auto.commit": False,
                                  "fetch.wait.max.ms": 100})
        topic = replicas.topic("answers")
        ends = [TopicPartition(topic, p, OFFSET_END) for p in partitions_of(self.consumer, topic)]
        for partition in ends:
            partition.offset = self.consumer.get_watermark_offsets(partition, timeout=60)[1]
        self.consumer.assign(ends)
        self.threads = [threading.Thread(target=self._send, daemon=True),
                        threading.Thread(target=self._read, daemon=True)]

    def __enter__(self):
        self.threads[1].start()
        self._warm_up()
        self.threads[0].start()
        return self

    def _warm_up(self):
        """Ask one query that does not count: a producer waits up to a second before its first message."""
        self._ask("warm-up", 0)
        eventually(lambda: "warm-up" in self.answered, "the first answer")
        self.answered.clear()

    def __exit__(self, *_):
        self.is_sending = self.is_reading = False
        for thread in self.threads:
            thread.join()
        self.consumer.close()

    def _send(self):
        due = time.monotonic()
        while self.is_sending:
            due += 1 / self.rate
            time.sleep(max(0.0, due - time.monotonic()))
            query_id = f"{self.prefix}-{len(self.sent)}"
            self.sent[query_id] = time.monotonic()
            self._ask(query_id, int(self.rng.integers(self.n_partitions)))

    def _make(self, query_id):
        return pb.Query(id=query_id, space=SPACE, method=self.method, k=self.k,
                        vector=wire.vector(self.rng.standard_normal(MODEL["d"])))

    def _ask(self, query_id, partition):
        value = self._make(query_id).SerializeToString()
        self.producer.produce(self.replicas.topic("queries"), value, partition=partition)
        self.producer.poll(0)

    def _read(self):
        while self.is_reading:
            message = self.consumer.poll(0.05)
            if message is None:
                continue
            if message.error():
                self.errors.append(str(message.error()))
                continue
            answer = wire.decode_answer(message.value(), message.headers())
            if answer.HasField("error"):
                self.errors.append(f"{answer.id}: {answer.error}")
            self.answered[answer.id].append(time.monotonic())
            self._note(answer)

    def _note(self, answer):
        self.times[answer.id] = answer.times

    def n_sent(self):
        return len(self.sent)

    def n_written(self):
        """Return how many records the query topic has."""
        topic = self.replicas.topic("queries")
        return sum(self.consumer.get_watermark_offsets(TopicPartition(topic, p))[1]
                   for p in range(self.n_partitions))

    def wait_sent(self, n):
        """Wait until n more queries are sent."""
        target = self.n_sent() + n
        eventually(lambda: self.n_sent() >= target, f"{n} more queries", 60 + n / self.rate)

    def finish(self, timeout_s=30):
        """Send no more, and wait until each query is answered."""
        self.is_sending = False
        self.threads[0].join()
        assert self.producer.flush(30 * SLOWNESS) == 0, "queries could not be sent"
        eventually(lambda: not self.lost(), "the answers to all queries", timeout_s)
        time.sleep(0.5)  # a second answer would arrive about now; later ones are not noticed
        assert not self.errors, self.errors[:3]
        return self

    def lost(self):
        return [i for i in self.sent if i not in self.answered]

    def twice(self):
        return [i for i, times in self.answered.items() if len(times) > 1]

    def waits_ms(self):
        """Return how long each query waited for its first answer, in the order of sending."""
        return np.array([1000 * (self.answered[i][0] - at) for i, at in self.sent.items() if i in self.answered])
