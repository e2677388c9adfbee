#!/usr/bin/python3
"""A throw-away Kafka broker for tests: one KRaft node on free loopback ports, its data in a temporary directory.

    with KafkaBroker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})

As a program it runs until interrupted:

    tests/broker/kafka_broker.py run [--topics NAME:PARTITIONS ...] [--port PORT]
    tests/broker/kafka_broker.py check      start, write, read, stop; exit 0 when all of it worked

The jars come from ops/setup. KAFKA_JARS names another folder to take them from.
"""

import argparse
import atexit
import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAP_MB = 320
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 30

# Small buffers and single partitions: the defaults are for a cluster and take 128 MiB for the cleaner alone.
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={log_dir}
auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
num.network.threads=2
num.io.threads=4
background.threads=2
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=8388608
log.cleaner.backoff.ms=200
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=0
delete.topic.enable=true
message.max.bytes=8388608
controlled.shutdown.enable=false
"""

LOG4J = """
log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1}: %m%n
"""


class BrokerMissing(Exception):
    """The broker cannot be run here; the text says what is missing and how to get it."""


def jars_dir():
    return Path(os.environ.get("KAFKA_JARS", ROOT / "build" / "deps" / "kafka"))


def why_unavailable():
    """None when the broker can be run, else a sentence."""
    if not list(jars_dir().glob("kafka_2.13-*.jar")):
        return "the Kafka test broker's jars are missing; ops/setup fetches them"
    if shutil.which("java") is None:
        return "there is no java; ops/setup installs it"
    return None


def free_ports(count):
    # All held at once, so that no two are the same.
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


class KafkaBroker:
    def __init__(self, port=None):
        reason = why_unavailable()
        if reason:
            raise BrokerMissing(reason)
        self.dir = Path(tempfile.mkdtemp(prefix="sluice-kafka-"))
        ports = free_ports(2)
        self.port = port or ports[0]
        self.controller_port = ports[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.log_path = self.dir / "broker.log"
        self.process = None
        self._admin = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.close()

    def start(self):
        """Formats the storage on the first call; later calls go on with what the broker had when it was stopped."""
        atexit.register(self.close)
        config = self.dir / "server.properties"
        if not config.exists():
            (self.dir / "log4j.properties").write_text(LOG4J)
            config.write_text(PROPERTIES.format(port=self.port, controller_port=self.controller_port,
                                                log_dir=self.dir / "logs"))
            self._format(config)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self._java("kafka.Kafka", str(config)), cwd=self.dir,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self._wait_ready()
        return self

    def _java(self, main, *arguments):
        return ["java", "-Xms128m", f"-Xmx{HEAP_MB}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                "-Djava.net.preferIPv4Stack=true", f"-Dlog4j.configuration=file:{self.dir}/log4j.properties",
                "-cp", f"{jars_dir().resolve()}/*", main, *arguments]

    def _format(self, config):
        # Any 16 bytes in URL-safe base64 are a cluster id; made here it saves one start of a JVM.
        cluster_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a", 1)
        done = subprocess.run(self._java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config)),
                              cwd=self.dir, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"formatting the broker's storage failed:\n{done.stdout}{done.stderr}")

    def _wait_ready(self):
        import confluent_kafka.admin
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker ended with {self.process.returncode}:\n{self.log_tail()}")
            if self._accepts():
                # Quiet, because a broker that is still starting drops connections.
                admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
                try:
                    if admin.list_topics(timeout=5).brokers:
                        return
                except confluent_kafka.KafkaException:
                    pass
            time.sleep(0.1)
        raise RuntimeError(f"the broker was not ready after {START_TIMEOUT_S} s:\n{self.log_tail()}")

    def _accepts(self):
        with socket.socket() as s:
            s.settimeout(1)
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def log_tail(self, lines=30):
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def stop(self):
        """Stops the process and keeps the data, so that start() can go on with it."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def close(self):
        self._admin = None
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
        atexit.unregister(self.close)

    def admin(self):
        # Kept: a client that is collected cancels what it was asked to do.
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

    def grow_topic(self, name, partitions):
        import confluent_kafka.admin
        self._finish(self.admin().create_partitions([confluent_kafka.admin.NewPartitions(name, partitions)]))
        self.wait_for(lambda topics: len(topics[name].partitions) == partitions, f"{partitions} partitions of {name}")

    @staticmethod
    def _finish(futures):
        for future in futures.values():
            future.result(30)

    def wait_for(self, condition, what, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while not condition(self.admin().list_topics(timeout=10).topics):
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {timeout_s} s in vain for {what}")
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


def check(_):
    import confluent_kafka
    started = time.monotonic()
    with KafkaBroker() as broker:
        print(f"ready at {broker.bootstrap} after {time.monotonic() - started:.1f} s", flush=True)
        broker.create_topic("check", 2)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
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
    parser = argparse.ArgumentParser(description="A throw-away Kafka broker for tests.")
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="run until interrupted; prints the address when ready")
    run_parser.add_argument("--topics", nargs="*", default=[], metavar="NAME[:PARTITIONS]")
    run_parser.add_argument("--port", type=int)
    run_parser.set_defaults(function=run)
    commands.add_parser("check", help="start, write, read, stop").set_defaults(function=check)
    arguments = parser.parse_args()
    try:
        arguments.function(arguments)
    except BrokerMissing as reason:
        sys.exit(f"error: {reason}")


if __name__ == "__main__":
    main()
