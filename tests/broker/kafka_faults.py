#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Faults that users, operators and disks cause in a Kafka broker, for tests of how the daemon handles them.

    recreate_topic      delete a topic and, after a delay, create it again with records in it
    damage_batch        flip a byte of a record batch on the broker's disk
    open_transaction    start a transaction that neither commits nor aborts, and holds back readers
    compacted_soon      return topic settings that make compaction remove records soon (see wait_compacted)
    create_leaderless   create topics with partitions that have no leader

Run as a program, it starts a broker for each fault, causes the fault, and prints what a client sees.
"""

import struct
import sys
import time
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from kafka_broker import KafkaBroker
from kafka_node import KafkaNode, free_ports

QUIET = {"log_level": 0}
SECOND = 2  # id of the second broker, which stops


def write(broker, topic, records, per_batch=10000, **where):
    """Write records, each (key, value) or (key, value, timestamp_ms), in order, at most per_batch of them in a batch.
    Return their offsets."""
    producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap, "linger.ms": 5, "acks": "all",
                         "batch.num.messages": per_batch})
    offsets = [None] * len(records := list(records))

    def remember(i):
        def report(error, message):
            if error:
                raise KafkaException(error)
            offsets[i] = message.offset()
        return report
    for i, (key, value, *timestamp) in enumerate(records):
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=remember(i),
                                 **({"timestamp": timestamp[0]} if timestamp else {}), **where)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise RuntimeError(f"some records could not be written to {topic}")
    return offsets


def recreate_topic(broker, name, partitions=1, config=None, delay_s=0.0, records=(), **where):
    """Delete a topic, wait, recreate it and write `records` at once. Return their offsets.

    A librdkafka 2.0.2 consumer continues at its old offset as soon as the new topic reaches it. With a delay of 1 s,
    its error callback gets _UNKNOWN_PARTITION and UNKNOWN_TOPIC_OR_PART. Without a delay, it reports nothing.
    """
    broker.delete_topic(name)
    time.sleep(delay_s)
    broker.create_topic(name, partitions, config)
    return write(broker, name, records, **where)


# ------------------------------------------------------------------------------------------------- damage on disk

# baseOffset i64, batchLength i32, partitionLeaderEpoch i32, magic i8, crc u32, attributes i16, lastOffsetDelta i32, ...
BATCH_HEAD = struct.Struct(">qiibIhi")
BATCH_LENGTH_FROM = 12
BATCH_MAGIC_AT = 16
BATCH_RECORDS_FROM = 61


def find_batch(broker, topic, partition, offset):
    """Return (path of the segment, position, length) of the batch that contains an offset."""
    for path in sorted((broker.data_path / f"{topic}-{partition}").glob("*.log")):
        content, at = path.read_bytes(), 0
        while at + BATCH_RECORDS_FROM <= len(content):
            base, length, _, magic, _, _, last_delta = BATCH_HEAD.unpack_from(content, at)
            if length == 0:
                break  # the rest of the file is preallocated
            assert magic == 2, f"{path} at {at}: magic {magic}"
            if base <= offset <= base + last_delta:
                return path, at, BATCH_LENGTH_FROM + length
            at += BATCH_LENGTH_FROM + length
    raise LookupError(f"{topic} [{partition}] has no batch with offset {offset}")


def damage_batch(broker, topic, offset, partition=0, at=-1):
    """Flip all bits of one byte of the batch that contains an offset. The same call again repairs it.

    at: index of the byte; a negative index counts from the end of the batch. -1 is the number of headers of the last
        record, and that record's value is just before it. BATCH_RECORDS_FROM is the length of the first record, and
        makes the batch unreadable whether or not a client verifies checksums. BATCH_MAGIC_AT makes the broker itself
        fail.
    The broker may be running. It sends the file's bytes without checking them, even after a clean restart.

    What librdkafka 2.0.2 does:
        check.crcs on                  _BAD_MSG at the first offset of the batch, several times a second, forever. Then
                                       it reads on at a wrong place, and aborts where it finds a negative size and
                                       version 0 or 1: in values of ff 00 ff ff ff, again and again, one place in five
        check.crcs off, value          delivers the damaged record
        check.crcs off, record length  no record, no error, no log line; the partition makes no progress
        magic, on or off               _NOT_IMPLEMENTED at the offset, twice; then it continues after the batch
    """
    path, start, length = find_batch(broker, topic, partition, offset)
    where = start + at + (length if at < 0 else 0)
    with open(path, "r+b") as file:
        file.seek(where)
        byte = file.read(1)[0]
        file.seek(where)
        file.write(bytes((byte ^ 0xff,)))


# ---------------------------------------------------------------------------------------------------- transactions

@contextmanager
def open_transaction(broker, topic, records, transactional_id="held", **where):
    """Write records in a transaction, and keep it open. Yield the producer, which can commit or abort.

    A transaction that is still open at the end of the block is aborted. Until then, readers of committed records see
    the log end just before the transaction. The broker aborts it after `transaction.timeout.ms`, here 15 minutes.
    """
    producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id,
                         "transaction.timeout.ms": 900000, "linger.ms": 5})
    producer.init_transactions(30)
    producer.begin_transaction()
    for key, value in records:
        producer.produce(topic, value, key, **where)
        producer.poll(0)
    producer.flush(30)
    try:
        yield producer
    finally:
        try:
            producer.abort_transaction(30)
        except KafkaException:
            pass  # the block has already committed or aborted it


# ------------------------------------------------------------------------------------------------------ compaction

def compacted_soon(batch_bytes=140):
    """Return the properties of a topic that is compacted quickly.

    Each batch closes the segment before it, whatever the timestamps of its records. The cleaner compacts a closed
    segment at once.

    batch_bytes: the maximum size of a batch; every batch must be larger than half of it. A batch takes 61 bytes, plus
        its keys and values, plus about 8 bytes for each record.
    """
    return {"cleanup.policy": "compact", "segment.bytes": str(batch_bytes), "min.cleanable.dirty.ratio": "0.0",
            "min.compaction.lag.ms": "0", "segment.index.bytes": "1024"}


def offsets_of(broker, topic, partition=0, first=0):
    """Return the offsets of the records in a partition, starting at `first`.

    While segments are removed, a broker may answer a fetch with an unknown error; the next fetch succeeds.
    """
    consumer = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": "offsets",
                         "enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(topic, partition, first)])
    found, deadline = [], time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                found.append(message.offset())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return found
            elif message.error().code() != KafkaError.UNKNOWN:
                raise KafkaException(message.error())
    finally:
        consumer.close()
    raise RuntimeError(f"{topic} [{partition}] could not be read to its end within 30 s")


def wait_compacted(broker, topic, offset, partition=0, timeout_s=60):
    """Wait until compaction has removed a record.

    A newer record with the same key must exist, followed by another batch, because the active segment is never cleaned.
    """
    deadline = time.monotonic() + timeout_s
    while offset in offsets_of(broker, topic, partition, offset):
        if time.monotonic() > deadline:
            raise RuntimeError(f"offset {offset} of {topic} [{partition}] is still there after {timeout_s} s")
        time.sleep(0.2)


# ------------------------------------------------------------------------------------------------------------ leaders

def create_leaderless(broker, assignments):
    """Create topics in which some partitions have no leader, because they belong to a second broker that has stopped.

    assignments: {topic: [node of each partition]}. The node is 1 for the broker itself, and SECOND for the stopped
        one: {"stuck": [SECOND], "half": [1, SECOND]}

    Writes to such a partition time out, and reads wait; neither reports an error. The call takes about 5 s. During it,
    create no other topic and no first consumer group, because they could be placed on the second broker.
    """
    (port,) = free_ports(1)
    second = KafkaNode(broker.folder / f"second-{port}", port, {
        **broker.properties, "process.roles": "broker", "node.id": SECOND, "controlled.shutdown.enable": "true",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}", "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": broker.folder / f"second-{port}" / "logs"})
    second.start(broker.cluster_id())
    try:
        # The second broker may be ready before the controller can assign partitions to it.
        broker.wait_for_brokers(2)
        topics = [NewTopic(name, len(nodes), replica_assignment=[[node] for node in nodes])
                  for name, nodes in assignments.items()]
        for future in broker.admin().create_topics(topics).values():
            future.result(30)
    finally:
        second.stop()
    broker.wait_for(lambda topics: all(
        name in topics and len(topics[name].partitions) == len(nodes)
        and all((topics[name].partitions[i].leader == -1) == (node == SECOND) for i, node in enumerate(nodes))
        for name, nodes in assignments.items()), "partitions without a leader")


# ------------------------------------------------------------------------------------------ a trial of each fault

class Reader:
    """A consumer of one partition that counts the records, partition ends and errors it sees."""

    def __init__(self, broker, topic, offset=0, partition=0, **properties):
        self.logged = []
        self.consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "try",
                                  "enable.auto.commit": False, "enable.partition.eof": True,
                                  "auto.offset.reset": "error", "log_level": 5, "logger": self,
                                  "error_cb": lambda e: self.logged.append(f"callback {e.name()}"), **properties})
        self.consumer.assign([TopicPartition(topic, partition, offset)])

    def log(self, level, form, *arguments):
        self.logged.append("log " + (form % arguments).strip()[:160])

    def see(self, seconds):
        """Return {what was seen: count}, ordered by first occurrence."""
        seen, end = {}, time.monotonic() + seconds
        while time.monotonic() < end:
            message = self.consumer.poll(0.1)
            if message is not None:
                error = message.error()
                what = (f"record {message.offset()} {message.key()} {str(message.value())[:40]}" if error is None else
                        f"{error.name()} {error.str()} at {message.offset()}")
                seen[what] = seen.get(what, 0) + 1
        for what in self.logged:
            seen[what] = seen.get(what, 0) + 1
        self.logged.clear()
        return seen

    def close(self):
        self.consumer.close()


def tell(what, seen):
    print(f"\n{what}")
    for line, count in seen.items():
        print(f"    {count:4} x {line}", flush=True)


def try_recreate(broker):
    for delay_s in (0.0, 1.0, 4.0):
        topic = f"again-{delay_s:.0f}"
        broker.create_topic(topic)
        write(broker, topic, [(b"old-%d" % i, b"v") for i in range(4)])
        reader = Reader(broker, topic)
        tell("before", reader.see(1))
        recreate_topic(broker, topic, delay_s=delay_s, records=[(b"new-%d" % i, b"v") for i in range(9)])
        tell(f"{topic} created again after {delay_s} s with 9 records", reader.see(3))
        reader.close()


def try_damage(broker):
    broker.create_topic("damaged")
    for i in range(5):
        write(broker, "damaged", [(b"key-%d" % i, b"a value of some length")])
    for at in (-1, -3, BATCH_RECORDS_FROM, BATCH_MAGIC_AT):
        damage_batch(broker, "damaged", 2, at=at)
        for crcs in (False, True):
            reader = Reader(broker, "damaged", **{"check.crcs": crcs})
            tell(f"damaged at {at}, check.crcs {crcs}", reader.see(2))
            reader.close()
        if at != BATCH_MAGIC_AT:
            damage_batch(broker, "damaged", 2, at=at)
    broker.stop()
    broker.start()
    reader = Reader(broker, "damaged", **{"check.crcs": True})
    tell("damaged, the broker stopped and started", reader.see(2))
    reader.close()


def try_transaction(broker):
    broker.create_topic("held")
    write(broker, "held", [(b"before", b"v")])
    reader = Reader(broker, "held")
    with open_transaction(broker, "held", [(b"inside", b"v")]) as producer:
        write(broker, "held", [(b"behind", b"v")] * 3)
        tell("an open transaction, and 3 records after it", reader.see(2))
        low, high = reader.consumer.get_watermark_offsets(TopicPartition("held", 0), 5)
        tell("ends", {f"committed {low}..{high}": 1})
        producer.commit_transaction(10)
        tell("committed", reader.see(2))
    reader.close()


def try_compaction(broker):
    broker.create_topic("compacted", config=compacted_soon())
    write(broker, "compacted", [(b"key", b"1")])
    started = time.monotonic()
    for record in ((b"key", b"2", 1000000000000), (b"other", b"3")):
        write(broker, "compacted", [record])
    wait_compacted(broker, "compacted", 0)
    tell(f"compacted after {time.monotonic() - started:.1f} s", {f"offsets {offsets_of(broker, 'compacted')}": 1})


def try_leaders(broker):
    started = time.monotonic()
    create_leaderless(broker, {"stuck": [SECOND], "half": [1, SECOND]})
    tell(f"created in {time.monotonic() - started:.1f} s", {
        f"{name} partition {p.id} leader {p.leader}": 1
        for name in ("stuck", "half") for p in broker.admin().list_topics(timeout=5).topics[name].partitions.values()})
    reports = {}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 3000, "log_level": 0})
    for topic in ("stuck", "half"):
        for partition in range(2 if topic == "half" else 1):
            producer.produce(topic, b"v", partition=partition, on_delivery=lambda e, m: reports.update(
                {f"{m.topic()} {m.partition()}: {e.name() if e else 'delivered'}": 1}))
    producer.flush(10)
    tell("written with a limit of 3 s", reports)
    reader = Reader(broker, "stuck")
    tell("read", reader.see(2))
    reader.close()


def main():
    tries = {name[4:]: function for name, function in globals().items() if name.startswith("try_")}
    for name in sys.argv[1:] or tries:
        with KafkaBroker() as broker:
            print(f"\n==== {name}", flush=True)
            tries[name](broker)


if __name__ == "__main__":
    main()
