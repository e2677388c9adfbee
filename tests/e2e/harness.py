# SPDX-License-Identifier: Apache-2.0
"""Run the daemon and talk to it through Kafka, as its users do.

    Daemon       one sluiced process, which can be stopped, killed and started again
    TopicReader  reads a topic to its end, as often as a test asks
    Client       sends queries and collects the answers
    Kcat         writes and reads records through the kcat program
    System       a daemon, its topics and clients, and the oracle that checks its answers
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

import data
import wire
from oracle import Oracle, Record
from wire import pb

sys.path.insert(0, str(data.ROOT / "ops"))
import kafka_node  # noqa: E402

# All timeouts are multiplied by this, for sanitizers and busy machines.
SLOWNESS = float(os.environ.get("SLUICE_SLOWNESS") or (8 if data.QUICK else 1))
# The clients outlive the daemon's embedded broker. This hides their log lines about the lost connection.
QUIET = {"log_level": 2}
# For transactions that stay open while a test waits. The default of 60 s is too short on a busy machine.
PATIENT = {"transaction.timeout.ms": 600000}
SANITIZER_WORDS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer", "runtime error:")


def build_dir():
    return Path(os.environ.get("SLUICE_BUILD") or data.ROOT / "build" / "dev")


def free_port():
    return kafka_node.free_ports(1)[0]


def to_yaml(value, indent=0):
    """Return block-style YAML, as people write it. Scalars are quoted as in JSON, which is valid YAML."""
    lines = []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            lines += [" " * indent + f"{key}:", to_yaml(inner, indent + 2)]
        else:
            lines.append(" " * indent + f"{key}: {json.dumps(inner)}")
    return "\n".join(lines)


def merged(base, more):
    out = dict(base)
    for key, value in more.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def eventually(condition, what, timeout_s=20, pause_s=0.02):
    """Call condition() until it returns a true value, and return that value."""
    deadline = time.monotonic() + timeout_s * SLOWNESS
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {timeout_s * SLOWNESS:.0f} s waiting for {what}")
        time.sleep(pause_s)


class Daemon:
    def __init__(self, config, folder):
        self.folder = Path(folder)
        self.port = free_port()
        self.config_path = self.folder / "sluice.yaml"
        self.config = merged(config, {"http": {"listen": f"127.0.0.1:{self.port}"}})
        self.config_path.write_text(to_yaml(self.config) + "\n")
        self.log_path = self.folder / "sluiced.log"
        self.environment = {}
        self.process = None
        self.kept_log = ""

    def start(self):
        assert not self.is_running(), "the daemon is already running"
        program = build_dir() / "sluiced"
        assert program.exists(), f"{program} does not exist; build it, or set SLUICE_BUILD to its folder"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([program, "--config", self.config_path], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                                            env={**os.environ, **self.environment})
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def get(self, path):
        """Return (status, body), or None if nothing listens on the port yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10 * SLOWNESS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None

    def wait_ready(self, timeout_s=60):
        def is_ready():
            assert self.is_running(), f"the daemon ended with {self.process.returncode}:\n{self.log_tail()}"
            answer = self.get("/readyz")
            return answer and answer[0] == 200
        eventually(is_ready, "/readyz", timeout_s)
        return self

    def status(self):
        code, body = self.get("/status")
        assert code == 200, f"/status answers {code}: {body}"
        return json.loads(body)

    def ctl(self, *words, code=0, timeout_s=60):
        """Run sluicectl, check its exit status, and return what it printed."""
        done = subprocess.run([build_dir() / "sluicectl", "--config", self.config_path, *words], capture_output=True,
                              text=True, timeout=timeout_s * SLOWNESS)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def log(self):
        if self.log_path.exists():
            self.kept_log = self.log_path.read_text(errors="replace")
        return self.kept_log

    def log_tail(self, lines=40):
        return "\n".join(self.log().splitlines()[-lines:])

    def stop(self, timeout_s=30):
        """Send SIGTERM, and check that the daemon exits with status 0 and that no sanitizer reported an error."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout_s * SLOWNESS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still up {timeout_s * SLOWNESS:.0f} s after SIGTERM:\n{self.log_tail()}") from None
        assert code == 0, f"exit status {code} after SIGTERM:\n{self.log_tail()}"
        self.check_log()

    def check_log(self):
        found = [line for line in self.log().splitlines() if any(words in line for words in SANITIZER_WORDS)]
        assert not found, f"{found[0]}\n{self.log_tail(100)}"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wait_exit(self, timeout_s=30):
        try:
            return self.process.wait(timeout_s * SLOWNESS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still up after {timeout_s * SLOWNESS:.0f} s:\n{self.log_tail()}") from None


def partitions_of(consumer, topic):
    found = consumer.list_topics(topic, timeout=60).topics[topic]
    return sorted(found.partitions) if found.error is None else []


class TopicReader:
    """Reads the committed records of a topic. read() returns those that arrived since the last call."""

    def __init__(self, bootstrap, topic):
        self.bootstrap, self.topic = bootstrap, topic
        self.next = {}

    def read(self):
        consumer = Consumer({**QUIET, "bootstrap.servers": self.bootstrap, "group.id": "reader",
                             "enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 10,
                             "isolation.level": "read_committed"})
        records, waiting = [], set(partitions_of(consumer, self.topic))
        consumer.assign([TopicPartition(self.topic, p, self.next.get(p, OFFSET_BEGINNING)) for p in waiting])
        deadline = time.monotonic() + 60 * SLOWNESS
        while waiting:
            assert time.monotonic() < deadline, f"topic {self.topic} could not be read to its end"
            for message in consumer.consume(10000, 0.05):
                if message.error() is None:
                    records.append(Record(message.partition(), message.offset(), message.key(), message.value(),
                                          message.headers() or []))
                    self.next[message.partition()] = message.offset() + 1
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition())
        consumer.close()
        return records


class Reply:
    def __init__(self, message, answer):
        self.topic, self.key, self.answer = message.topic(), message.key(), answer
        self.headers = message.headers()
        self.is_json = dict(message.headers()).get("content-type") == wire.JSON.encode()
        self.arrived = time.monotonic()


class Client:
    """Sends queries, and reads a set of answer topics from their beginning. fetch_wait_ms: see System."""

    def __init__(self, bootstrap, query_topic, answer_topics, fetch_wait_ms):
        self.query_topic = query_topic
        self.producer = Producer({**QUIET, "bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
        self.consumer = Consumer({**QUIET, "bootstrap.servers": bootstrap, "group.id": "client",
                                  "enable.auto.commit": False, "fetch.wait.max.ms": fetch_wait_ms,
                                  "fetch.message.max.bytes": 8 << 20})
        self.consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for topic in answer_topics
                              for p in partitions_of(self.consumer, topic)])
        self.sent = {}      # id -> (key, is JSON)
        self.asked_ms = {}  # id -> timestamp of the record
        self.replies = {}   # id -> [Reply]

    def send(self, query_id, value, headers, key=None, **where):
        key = key if key is not None else f"key of {query_id}".encode()
        self.sent[query_id] = key, wire.is_json(value, headers)
        self.asked_ms[query_id] = where.setdefault("timestamp", int(time.time() * 1000))
        self.producer.produce(self.query_topic, value, key, headers=headers, **where)
        self.producer.poll(0)

    def flush(self):
        assert self.producer.flush(30 * SLOWNESS) == 0, "queries could not be sent"

    def poll(self, timeout_s=0.0):
        for message in self.consumer.consume(1000, timeout_s):
            if message.error():
                raise AssertionError(f"reading answers: {message.error()}")
            reply = Reply(message, wire.decode_answer(message.value(), message.headers()))
            self.replies.setdefault(reply.answer.id, []).append(reply)

    def wait(self, ids, timeout_s=30):
        """Wait for these queries, and return {id: first answer}. Check the key and format of every reply. Others may be
        sent meanwhile by another thread, so the producer may never be empty."""
        deadline = time.monotonic() + timeout_s * SLOWNESS
        while not all(i in self.replies for i in ids):
            if time.monotonic() > deadline:
                missing = [i for i in ids if i not in self.replies]
                raise AssertionError(f"{len(missing)} of {len(ids)} queries have no answer after "
                                     f"{timeout_s * SLOWNESS:.0f} s: {missing[:5]}; "
                                     f"{len(self.producer)} messages are not sent yet")
            self.producer.poll(0)
            self.poll(0.01)
        for i in ids:
            key, is_json = self.sent[i]
            for reply in self.replies[i]:
                assert reply.key == key, f"the answer to {i} has the key {reply.key!r}, not {key!r}"
                assert reply.is_json == is_json, f"the answer to {i} is not in the format of its query"
        return {i: self.replies[i][0].answer for i in ids}

    def close(self):
        self.consumer.close()


class Kcat:
    def __init__(self, bootstrap):
        self.command = ["kcat", "-b", bootstrap]
        self.followers = []

    def produce(self, topic, pairs, headers=()):
        """Write (key, value) pairs; a value of None is a tombstone."""
        lines = b"".join(key + b"\t" + (value or b"") + b"\n" for key, value in pairs)
        flags = [flag for name, value in headers for flag in ("-H", f"{name}={value}")]
        subprocess.run([*self.command, "-P", "-t", topic, "-K", "\t", "-Z", *flags], input=lines, check=True,
                       timeout=60 * SLOWNESS)

    def follow(self, topic):
        """Return a queue that receives the (key, value) of every record of the topic, from its beginning."""
        process = subprocess.Popen([*self.command, "-C", "-t", topic, "-o", "beginning", "-u", "-q",
                                    "-X", "fetch.wait.max.ms=10", "-f", "%k\t%s\n"],
                                   stdout=subprocess.PIPE)
        self.followers.append(process)
        out = queue.Queue()

        def pump():
            for line in process.stdout:
                key, _, value = line.rstrip(b"\n").partition(b"\t")
                out.put((key, value))
        threading.Thread(target=pump, daemon=True).start()
        return out

    def close(self):
        for process in self.followers:
            process.kill()
            process.wait()
            process.stdout.close()


class System:
    """A daemon with its topics, models and clients. paths: {space: model file}; types: {attribute: type}; lifetimes:
    a Lifetimes, or None."""

    def __init__(self, paths, models, config=None, bootstrap=None, prefix="sluice", name="system", environment=None,
                 types=None, lifetimes=None):
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-e2e-"))
        self.models, self.prefix, self.bootstrap = models, prefix, bootstrap
        # The embedded broker answers only after this time. Kafka answers when there are records, and fetches that find
        # none would keep it busy.
        self.fetch_wait_ms = 100 if bootstrap else 1
        base = {
            "catalogue": {"topic": f"{prefix}.catalogue", "dead_letter_topic": f"{prefix}.dead-letters",
                          "max_items": 60000, "kafka": {"fetch.wait.max.ms": self.fetch_wait_ms}},
            "query": {"topic": f"{prefix}.queries", "answer_topic": f"{prefix}.answers", "group": f"{prefix}.group",
                      "max_k": 50000, "at_least_timeout_ms": int(20000 * SLOWNESS),
                      "kafka": {"fetch.wait.max.ms": self.fetch_wait_ms}},
            "store": {"path": str(self.folder / "store")},
            "spaces": {name: {"model": str(path)} for name, path in paths.items()},
        }
        self.types, self.lifetimes = types or {}, lifetimes
        for name, value in vars(lifetimes).items() if lifetimes else ():
            base["catalogue"][name] = value or ""
        if types:
            base["attributes"] = types
        if bootstrap:
            base["kafka"] = {"bootstrap.servers": bootstrap}
            # After a kill -9, the group waits for the dead member until its session times out.
            base["query"]["kafka"] |= {"session.timeout.ms": 2000, "heartbeat.interval.ms": 500}
        else:
            base["embedded_broker"] = {"enabled": True}
        self.daemon = Daemon(merged(base, config or {}), self.folder)
        self.daemon.environment = environment or {}
        self.rng = data.generator(name)
        self.items = data.Items(self.rng, models, types)
        self.queries = data.Queries(self.rng, models, name)
        self.records = []
        self.client = self.producer = None
        self.answers = []

    def topic(self, kind):
        return f"{self.prefix}.{kind}"

    def open(self, answer_topics=()):
        """Start the daemon and connect to it. A new oracle reads the catalogue topic from its beginning."""
        self.daemon.start()
        try:
            if self.bootstrap is None:
                self.daemon.wait_ready()
                self.bootstrap = self.daemon.status()["kafka"]["bootstrap"]
            self.connect(answer_topics)
            self.daemon.wait_ready()
        except Exception:
            print(f"\n--- the daemon's log\n{self.daemon.log_tail(60)}\n---", file=sys.stderr)
            raise
        return self

    def connect(self, answer_topics=()):
        self.producer = Producer({**QUIET, "bootstrap.servers": self.bootstrap, "linger.ms": 5, "acks": "all"})
        self.client = Client(self.bootstrap, self.topic("queries"), [self.topic("answers"), *answer_topics],
                             self.fetch_wait_ms)
        self.follow_catalogue()

    def follow_catalogue(self):
        """Forget the records read so far, and read the catalogue topic again from its beginning."""
        self.oracle = Oracle(self.models, self.types, self.lifetimes)
        self.reader = TopicReader(self.bootstrap, self.topic("catalogue"))
        self.records = []

    # -------------------------------------------------------------------------------------------- catalogue

    def put(self, key, item=None, producer=None, **where):
        """Write the given item, or a random one."""
        value, headers = self.items.encode(self.items.item() if item is None else item)
        self.put_raw(key, value, headers, producer, **where)

    def put_raw(self, key, value, headers=(), producer=None, **where):
        # `producer or self.producer` would be wrong: a Producer with an empty queue is false.
        producer = self.producer if producer is None else producer
        while True:
            try:
                producer.produce(self.topic("catalogue"), value, key, headers=list(headers), **where)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)

    def sync(self):
        """Flush all writes, and feed the new catalogue records to the oracle."""
        assert self.producer.flush(60 * SLOWNESS) == 0, "catalogue records could not be written"
        new = self.reader.read()
        self.records += new
        self.oracle.feed(new)

    def positions(self):
        return [pb.Position(partition=p, next=n) for p, n in self.oracle.end().items()]

    # ---------------------------------------------------------------------------------------------- queries

    def send(self, query, form=None, **where):
        value, headers = self.queries.encode(query, form)
        self.client.send(query.id, value, headers, **where)
        return query

    def ask(self, queries, form=None, timeout_s=30):
        """Send the queries, wait for all answers, and check each against the oracle."""
        for query in queries:
            self.send(query, form)
        self.check(queries, timeout_s)

    def check(self, queries, timeout_s=30, allowed_errors=()):
        self.client.wait([q.id for q in queries], timeout_s)
        # The answers may reflect records that the oracle has not read yet.
        self.sync()
        pairs = [(q, reply.answer) for q in queries for reply in self.client.replies[q.id]]
        pairs.sort(key=lambda pair: sum(p.next for p in pair[1].watermark))
        refused = 0
        for query, answer in pairs:
            if answer.HasField("error") and pb.Error.Code.Name(answer.error.code) in allowed_errors:
                refused += 1
            else:
                self.oracle.check(query, answer, self.client.asked_ms[query.id])
                self.answers.append(answer)
        return refused

    def check_catalogue(self, spaces=None):
        """Check that the daemon serves exactly the live items. Two queries per space ask for the whole catalogue."""
        self.sync()
        queries = [self.queries.draw(name, "exact", k=50000, at_least=self.positions())
                   for name in spaces or self.models for _ in range(2)]
        self.ask(queries, "protobuf", 60)

    def wait_dead_letters(self, expected, timeout_s=20):
        """Wait for the expected dead letters, and return all of them as {(topic, partition, offset): Record}."""
        letters, reader = {}, TopicReader(self.bootstrap, self.topic("dead-letters"))

        def complete():
            for record in reader.read():
                headers = dict(record.headers)
                for header in ("sluice.topic", "sluice.partition", "sluice.offset", "sluice.reason"):
                    assert headers.get(header), f"a dead letter has no header {header}: {headers}"
                topic = headers["sluice.topic"].decode()
                letters[topic, int(headers["sluice.partition"]), int(headers["sluice.offset"])] = record
            return expected <= letters.keys()
        try:
            eventually(complete, "dead letters", timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: missing {sorted(expected - letters.keys())[:5]}") from None
        return letters

    def close(self):
        if self.daemon.is_running():
            self.daemon.kill()
        if self.client:
            self.client.close()
        self.daemon.log()
        shutil.rmtree(self.folder, ignore_errors=True)


class Case(unittest.TestCase):
    """A test case that prints the daemon's log when a test fails. Subclasses store their System in `system`."""

    system = None

    def run(self, result=None):
        before, started = len(result.failures) + len(result.errors), time.monotonic()
        super().run(result)
        print(f"    {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
        if self.system and len(result.failures) + len(result.errors) > before:
            print(f"\n--- the daemon's log, after {self.id()}\n{self.system.daemon.log_tail(60)}\n---", file=sys.stderr)
        return result
