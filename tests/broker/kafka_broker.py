#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A temporary Kafka broker for tests: one KRaft node on free loopback ports, with its data in a temporary directory.

    with KafkaBroker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})

As a program it runs until interrupted:

    tests/broker/kafka_broker.py run [--topics NAME:PARTITIONS ...] [--port PORT]
    tests/broker/kafka_broker.py check      start, write, read and stop; exits with status 0 if all of that works
                                 check --save-classes   the same, and write what makes later starts faster

kafka_faults.py causes the faults of users, operators and disks on such a broker.
"""

import argparse
import atexit
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ops"))
from kafka_node import KafkaMissing, KafkaNode, classes_path, why_unavailable  # noqa: E402, F401

TIMEOUT_S = 120  # of a request, and of waiting for what it has asked for. A busy machine may need most of it

# Short intervals and few threads. With the defaults, some of a broker's periodic work runs only every few minutes.
FOR_TESTS = {
    "num.partitions": 1,
    "group.min.session.timeout.ms": 1000,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "log.cleaner.threads": 1,
    "log.cleaner.backoff.ms": 200,
    "log.retention.check.interval.ms": 1000,
    "log.segment.delete.delay.ms": 100,  # with 0, a thread would look for logs to delete all the time
}


# For tests that start a broker again: it is let in only when its former session has ended, by default after 9 s. All
# others keep the default, so that a broker that gets no processor time for a moment is not taken for dead.
RESTARTS_SOON = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


class KafkaBroker(KafkaNode):
    def __init__(self, port=None, properties=None, **process):
        super().__init__(tempfile.mkdtemp(prefix="sluice-kafka-"), port, {**FOR_TESTS, **(properties or {})}, **process)
        self._admin = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.close()

    def start(self):
        atexit.register(self.close)
        return super().start()

    def close(self):
        self._admin = None
        self.stop()
        self._keep_classes()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def _keep_classes(self):
        saved = self.folder / classes_path().name
        if saved.exists():
            shutil.copy(saved, f"{classes_path()}.new")
            os.replace(f"{classes_path()}.new", classes_path())

    def admin(self):
        # Keep the client: when it is garbage-collected, it cancels its requests.
        if self._admin is None:
            import confluent_kafka.admin
            self._admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 3})
        return self._admin

    def create_topic(self, name, partitions=1, config=None):
        import confluent_kafka.admin
        topic = confluent_kafka.admin.NewTopic(name, num_partitions=partitions, replication_factor=1,
                                               config=config or {})
        self._finish(self.admin().create_topics([topic]))
        self.wait_for(lambda topics: name in topics and len(topics[name].partitions) == partitions
                      and all(p.leader == 1 for p in topics[name].partitions.values()), f"topic {name}")

    def delete_topic(self, name):
        self._finish(self.admin().delete_topics([name]))
        self.wait_for(lambda topics: name not in topics, f"the end of topic {name}")

    def topic_config(self, name):
        """Return the settings of a topic, as texts."""
        import confluent_kafka.admin
        resource = confluent_kafka.admin.ConfigResource("topic", name)
        entries = self.admin().describe_configs([resource])[resource].result(TIMEOUT_S)
        return {setting: entry.value for setting, entry in entries.items()}

    def grow_topic(self, name, partitions):
        import confluent_kafka.admin
        self._finish(self.admin().create_partitions([confluent_kafka.admin.NewPartitions(name, partitions)]))
        self.wait_for(lambda topics: len(topics[name].partitions) == partitions, f"{partitions} partitions of {name}")

    @staticmethod
    def _finish(futures):
        for future in futures.values():
            future.result(TIMEOUT_S)

    def wait_for_brokers(self, count):
        deadline = time.monotonic() + TIMEOUT_S
        while len(self.admin().list_topics(timeout=TIMEOUT_S).brokers) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{count} brokers did not appear within {TIMEOUT_S} s")
            time.sleep(0.05)

    def wait_for(self, condition, what, timeout_s=TIMEOUT_S):
        deadline = time.monotonic() + timeout_s
        while not condition(self.admin().list_topics(timeout=TIMEOUT_S).topics):
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {timeout_s} s for {what}, without success")
            time.sleep(0.05)


def run(arguments):
    with KafkaBroker(arguments.port) as broker:
        for topic in arguments.topics:
            name, _, partitions = topic.partition(":")
            broker.create_topic(name, int(partitions or 1))
        print(broker.bootstrap, flush=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: sys.exit(0))
        while broker.process.poll() is None:
            time.sleep(0.2)
        sys.exit(f"the broker ended:\n{broker.log_tail()}")


def check(arguments):
    import confluent_kafka
    started = time.monotonic()
    with KafkaBroker(saves_classes=arguments.save_classes) as broker:
        print(f"ready at {broker.bootstrap} after {time.monotonic() - started:.1f} s", flush=True)
        broker.create_topic("check", 2)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce("check", b"value", b"key")
        if producer.flush(10):
            sys.exit("a message could not be written")
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "check",
                                             "auto.offset.reset": "earliest"})
        consumer.subscribe(["check"])
        message = consumer.poll(20)
        consumer.close()
        if message is None or message.error() or message.value() != b"value":
            sys.exit(f"a message could not be read back: {message and message.error()}")
    print("written, read and stopped")


def main():
    parser = argparse.ArgumentParser(description="A temporary Kafka broker for tests.")
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="run until interrupted; print the address when ready")
    run_parser.add_argument("--topics", nargs="*", default=[], metavar="NAME[:PARTITIONS]")
    run_parser.add_argument("--port", type=int)
    run_parser.set_defaults(function=run)
    check_parser = commands.add_parser("check", help="start, write, read, stop")
    check_parser.add_argument("--save-classes", action="store_true", help=f"write {classes_path().name} beside the jars")
    check_parser.set_defaults(function=check)
    arguments = parser.parse_args()
    try:
        arguments.function(arguments)
    except KafkaMissing as reason:
        sys.exit(f"error: {reason}")


if __name__ == "__main__":
    main()
