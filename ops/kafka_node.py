# SPDX-License-Identifier: Apache-2.0
"""Starts and stops one Apache Kafka node (KRaft, on 127.0.0.1 only) with configuration, log and data in one folder.

ops/kafka runs it for people, tests/broker/kafka_broker.py for tests. ops/setup installs the jars; KAFKA_JARS names
another folder with jars.
"""

import base64
import importlib.util
import os
import random
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORTS = range(10000, 32768)
# Into how many parts processes divide them, and those that this process was given.
SHARES, returned = 16, set()
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 30

# Everything has one replica, because there is one node. A client with a mistyped name must not create a topic. A value
# may have 4 MiB: 8 MiB have room for a batch.
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "default.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "message.max.bytes": 8 << 20,
    "controlled.shutdown.enable": "false",
    # The default, 128 MiB, is for large clusters and too much for a small heap.
    "log.cleaner.dedupe.buffer.size": 8 << 20,
}

LOG4J = """
log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1}: %m%n
"""


class KafkaMissing(Exception):
    """Kafka cannot run on this machine; the text says what is missing and how to get it."""


def jars_dir():
    return Path(os.environ.get("KAFKA_JARS", ROOT / "build" / "deps" / "kafka"))


def classes_path():
    """Kafka's classes as the JVM has them in memory: a start with this file takes half of the processor time.

    `tests/broker/kafka_broker.py check --save-classes` writes it. A JVM of another version ignores it.
    """
    return jars_dir().resolve() / "classes.jsa"


def why_unavailable():
    """Say why Kafka cannot run on this machine; None if it can."""
    if shutil.which("java") is None:
        return "there is no java; ops/setup installs it"
    if not list(jars_dir().glob("kafka_2.13-*.jar")):
        return f"Kafka's jars are not in {jars_dir()}; ops/setup fetches them"
    if importlib.util.find_spec("confluent_kafka") is None:
        return "there is no python3-confluent-kafka; ops/setup installs it"
    return None


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count):
    """Return ports that nobody uses. They are outside of the range from which Linux takes ports for connections.

    Otherwise a connection of any program could take the port of a broker that is down for a moment. No port is returned
    twice, and processes beside each other rarely choose among the same: between the choice and its use, a port is free.
    """
    own = [port for port in PORTS[os.getpid() % SHARES::SHARES] if port not in returned]
    found = [port for port in random.SystemRandom().sample(own, min(100 + count, len(own))) if is_free(port)]
    if len(found) < count:
        raise OSError(f"fewer than {count} of {len(own)} ports are free")
    returned.update(found[:count])
    return found[:count]


def accepts(port):
    """Does a program listen on this port?"""
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def answers(port, timeout_s=5):
    """Does a Kafka broker answer on this port?"""
    import confluent_kafka.admin
    # No log: a broker that is still starting drops connections.
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=timeout_s).brokers)
    except confluent_kafka.KafkaException:
        return False


def random_cluster_id():
    # A cluster id is any 16 bytes in URL-safe base64. Making it here saves the start of a JVM.
    return base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a", 1)


class KafkaNode:
    def __init__(self, folder, port=None, properties=None, heap_mb=320, outlives_us=False, young_mb=None,
                 saves_classes=False):
        """Nothing is written before start(). Without a port, a free one is chosen.

        young_mb       of the heap, which is taken at once, for new objects: whenever they are full, the broker stops to
                       collect garbage, and stops_ms() tells
        saves_classes  when it ends, it writes them into the folder, as classes_path() is named
        """
        self.folder = Path(folder).resolve()
        ports = free_ports(2)
        self.port = port or ports[0]
        self.controller_port = ports[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.config_path = self.folder / "server.properties"
        self.log_path = self.folder / "broker.log"
        self.stops_path = self.folder / "stops.log"
        self.data_path = self.folder / "logs"
        self.heap_mb = heap_mb
        self.outlives_us = outlives_us
        self.young_mb = young_mb
        self.saves_classes = saves_classes
        self.properties = {
            **PROPERTIES,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "log.dirs": self.data_path,
            **(properties or {}),
        }
        self.process = None

    def start(self, cluster_id=None):
        """Start it and wait until it answers. It has the data that is in the folder."""
        reason = why_unavailable()
        if reason:
            raise KafkaMissing(reason)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j.properties").write_text(LOG4J)
        self.config_path.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        if not (self.data_path / "meta.properties").exists():
            self._format(cluster_id or random_cluster_id())
        self._spawn()
        self._wait_ready()
        return self

    def _spawn(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self._java("kafka.Kafka", str(self.config_path), saves=self.saves_classes),
                                            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=self.outlives_us)
        (self.folder / "pid").write_text(f"{self.process.pid}\n")

    def _java(self, main, *arguments, saves=False):
        heap = ["-Xms128m"]
        if self.young_mb:
            heap = [f"-Xms{self.heap_mb}m", f"-Xmn{self.young_mb}m", f"-Xlog:gc:file={self.stops_path}"]
        classes = []
        if saves:
            classes = [f"-XX:ArchiveClassesAtExit={self.folder}/{classes_path().name}"]
        elif classes_path().exists():
            classes = [f"-XX:SharedArchiveFile={classes_path()}"]
        return ["java", *heap, f"-Xmx{self.heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                *classes, "-Djava.net.preferIPv4Stack=true",
                f"-Dlog4j.configuration=file:{self.folder}/log4j.properties",
                "-cp", f"{jars_dir().resolve()}/*", main, *arguments]

    def _format(self, cluster_id):
        done = subprocess.run(self._java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c",
                                         str(self.config_path)), cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"formatting the broker's storage failed:\n{done.stdout}{done.stderr}")

    def _wait_ready(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker ended with {self.process.returncode}:\n{self.log_tail()}")
            if accepts(self.port) and answers(self.port):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the broker was not ready after {START_TIMEOUT_S} s:\n{self.log_tail()}")

    def stops_ms(self):
        """How long each stop to collect garbage took, since the broker started."""
        return [float(ms) for ms in re.findall(r" Pause .* ([0-9.]+)ms$", self.stops_path.read_text(), re.MULTILINE)]

    def cluster_id(self):
        """The cluster id of the data in the folder."""
        lines = (self.data_path / "meta.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]

    def log_tail(self, lines=30):
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def stop(self):
        """Stop the process and keep the data for the next start()."""
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
