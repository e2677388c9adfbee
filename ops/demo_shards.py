#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The part of ops/demo that shows shards: the same catalogue in one daemon and in N shards with two merges.

    demo_shards.py --shards N --build DIR --data DIR --work DIR [--kafka HOST:PORT]

It asks both the same queries and compares the answers to the bit, kills a shard and a merge, and shows what the
answers say then. Without --kafka, the daemon with the whole catalogue has the embedded broker. All processes end with
this one.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

# All timeouts are multiplied by this, for busy machines.
SLOWNESS = float(os.environ.get("SLUICE_SLOWNESS") or 1)
# How long a group waits for a member that was killed: the demo does, too. Kafka refuses less than its
# group.min.session.timeout.ms, 6 s, which is enough for a busy machine.
EMBEDDED_SESSION_MS, KAFKA_SESSION_MS = min(int(3000 * SLOWNESS), 6000), 6000
WAIT_MS = int(2000 * SLOWNESS)  # of a merge for parts
STARTED = time.monotonic()


class Failure(Exception):
    """The demo cannot go on; the text says why."""


def say(text):
    print(f"\n== {text}  ({time.monotonic() - STARTED:.0f} s)", flush=True)


def eventually(condition, what, timeout_s=60):
    """Call condition() until it returns a true value, and return that value."""
    deadline = time.monotonic() + timeout_s * SLOWNESS
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"timed out waiting for {what}")
        time.sleep(0.1)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Daemon:
    """A sluiced with a folder of its own, below the demo's."""

    def __init__(self, demo, name, config):
        self.demo, self.name, self.process = demo, name, None
        self.folder = demo.work / name
        self.folder.mkdir()
        self.at = f"127.0.0.1:{free_port()}"
        self.path = self.folder / "sluice.yaml"
        # YAML contains JSON
        self.path.write_text(json.dumps({**config, "http": {"listen": self.at}}, indent=1) + "\n")

    def start(self):
        with open(self.folder / "sluiced.log", "ab") as log:
            self.process = subprocess.Popen([self.demo.build / "sluiced", "--config", self.path],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        return self

    def log_tail(self):
        log = self.folder / "sluiced.log"  # not there before the first start
        return "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""

    def ctl(self, *words, fails=False):
        """Run sluicectl, and return what it prints."""
        done = subprocess.run([self.demo.build / "sluicectl", "--config", self.path, *words], capture_output=True,
                              text=True, timeout=300 * SLOWNESS)
        if done.returncode and not fails:
            raise Failure(f"sluicectl {words[0]} failed: {done.stdout}{done.stderr}\n{self.log_tail()}")
        return done.stdout

    def wait_ready(self):
        self.ctl("wait", "--timeout-s", str(int(120 * SLOWNESS)))
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        status = self.process.wait(60 * SLOWNESS)
        if status:
            raise Failure(f"{self.name} ended with status {status}:\n{self.log_tail()}")


class Demo:
    def __init__(self, arguments):
        self.n, self.build = arguments.shards, arguments.build.resolve()
        self.data, self.work = arguments.data.resolve(), arguments.work.resolve()
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.prefix = "sluice-demo" if arguments.kafka else "sluice"
        self.bootstrap = arguments.kafka
        self.session_ms = KAFKA_SESSION_MS if arguments.kafka else EMBEDDED_SESSION_MS
        self.whole = Daemon(self, "whole", {**self.search("whole", "answers"), **self.broker()})
        self.shards, self.merges = [], []

    def broker(self):
        """The broker of the whole daemon. Each partition of the embedded one has room for 5 MiB."""
        if self.bootstrap:
            return {"kafka": {"bootstrap.servers": self.bootstrap}}
        return {"embedded_broker": {"enabled": True, "partitions": max(32, self.n)}}

    def query(self, group, answers):
        return {"topic": f"{self.prefix}.queries", "answer_topic": f"{self.prefix}.{answers}",
                "partials_topic": f"{self.prefix}.partials", "group": f"{self.prefix}-{group}",
                "kafka": {"session.timeout.ms": self.session_ms, "heartbeat.interval.ms": self.session_ms // 6}}

    def search(self, group, answers, **catalogue):
        return {"store": {"path": "store"}, "query": self.query(group, answers),
                "catalogue": {"topic": f"{self.prefix}.catalogue", "dead_letter_topic": f"{self.prefix}.dead-letters",
                              **catalogue},
                "attributes": {"section": "keyword", "size": "integer", "priority": "keyword", "expires": "time"},
                "spaces": {space: {"model": str(self.data / f"{space}{end}.safetensors")}
                           for space, end in (("packages", "-mol"), ("packages-pq", ""))}}

    def make_shards(self):
        kafka = {"kafka": {"bootstrap.servers": self.bootstrap}}
        for i in range(self.n):
            config = self.search("shards", "joined", shard={"index": i, "of": self.n})
            self.shards.append(Daemon(self, f"shard-{i}", {**config, **kafka}))
        for i in range(2):
            config = {"role": "merge", "query": self.query("shards", "joined"), **kafka,
                      "merge": {"instance": f"demo-{i}", "wait_ms": WAIT_MS}}
            self.merges.append(Daemon(self, f"merge-{i}", config))

    def daemons(self):
        return [self.whole, *self.shards, *self.merges]

    def layout(self):
        """Return what sluicectl layout says about the shards and merges, for programs."""
        at = ",".join(d.at for d in self.shards + self.merges)
        return json.loads(self.whole.ctl("layout", "--json", "--at", at, fails=True))

    def show_layout(self):
        print(self.whole.ctl("layout", "--at", *(d.at for d in self.shards + self.merges), fails=True), end="")

    def start(self):
        partitions = str(max(8, self.n))
        if self.bootstrap:
            self.make_shards()
            self.whole.ctl("topics", "create", "--partitions", partitions)
            self.shards[0].ctl("topics", "create", "--partitions", partitions)
        self.whole.start().wait_ready()
        if not self.bootstrap:
            self.bootstrap = json.loads(self.whole.ctl("status", "--json"))["kafka"]["bootstrap"]
            self.make_shards()
            self.shards[0].ctl("topics", "create", "--partitions", partitions)
        for daemon in self.shards + self.merges:
            daemon.start()
        for daemon in self.shards + self.merges:
            daemon.wait_ready()

    def wait_whole(self):
        """Wait until the layout has no problems, and the shards have all that the whole daemon has."""
        def is_whole():
            found = self.layout()
            rows = [d for d in found["daemons"] if d["role"] == "shard" and d["ready"]]
            n_items = json.loads(self.whole.ctl("status", "--json"))["items"]
            return not found["problems"] and sum(d["items"] for d in rows) == n_items
        eventually(is_whole, "shards to have the whole catalogue", 120)

    def close(self):
        for daemon in self.daemons():
            if daemon.process and daemon.process.poll() is None:
                daemon.kill()


def questions(path):
    """Return the queries of the file, each with the exact method of its space."""
    queries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{**query, "method": "exact"} for query in queries]


def ask(daemon, queries, **fields):
    """Send the queries through a daemon's topics, and return the answers, those with an error too."""
    path = daemon.folder / "queries.jsonl"
    path.write_text("".join(json.dumps({**query, **fields}) + "\n" for query in queries))
    text = daemon.ctl("query", "--format", "json", "--timeout-ms", str(int(60000 * SLOWNESS)), "--file", str(path),
                      fails=True)
    answers = [json.loads(line) for line in text.splitlines()]
    if len(answers) != len(queries):
        raise Failure(f"{len(queries)} queries were sent, and {len(answers)} answers have come")
    return answers


def essence(answer):
    """What does not depend on the shards."""
    return answer.get("hits"), answer["receipt"], answer["counts"]["items"]


def print_hits(answer, other=()):
    """Print the best hits; a + marks those that the other answer does not have."""
    keys = [hit["key"] for hit in other]
    for rank, hit in enumerate(answer["hits"][:5], 1):
        print(f"  {'+' if other and hit['key'] not in keys else ' '} {rank}  {hit['key']:30} {hit['score']:8.4f}")


def compare(demo, queries):
    """Ask both, print one answer, and fail if any differ."""
    for query in queries:
        alone, joined = ask(demo.whole, [query])[0], ask(demo.merges[0], [query])[0]
        if "error" in alone or "error" in joined or essence(alone) != essence(joined):
            raise Failure(f"the answers differ:\n{json.dumps(alone)}\n{json.dumps(joined)}")
        if query is queries[0]:
            print(f"  {query['id']}")
            print_hits(joined)
    print(f"  {len(queries)} {'query' if len(queries) == 1 else 'queries'}: one daemon and {demo.n} shards give the same "
          "hits, scores and receipts")


def owner_of(demo, key):
    """Return the shard that has the item."""
    for shard in demo.shards:
        if shard.ctl("get", key, fails=True):
            return shard
    raise Failure(f"no shard has {key}")


def kill_a_shard(demo, query):
    whole = ask(demo.merges[0], [query])[0]
    victim = owner_of(demo, whole["hits"][0]["key"])
    victim.kill()
    print(f"  {victim.name}, which has the best hit, is killed. The query again:")
    error = ask(demo.merges[0], [query])[0].get("error")
    if not error or error["code"] != "PARTIAL":
        raise Failure(f"the query was not answered PARTIAL: {error}")
    print(f"    error {error['code']}: {error['message']}")
    answer = ask(demo.merges[0], [query], allow_partial=True)[0]
    if "error" in answer or answer["parts"] != {"answered": demo.n - 1, "of": demo.n}:
        raise Failure(f"the answer is not that of all shards but one: {json.dumps(answer)}")
    print(f"  with allow_partial: {answer['parts']['answered']} of {answer['parts']['of']} shards have answered, "
          f"exact: {str(answer['receipt'].get('exact', False)).lower()}")
    print_hits(answer, whole["hits"])
    demo.show_layout()
    victim.start().wait_ready()
    demo.wait_whole()
    print(f"  {victim.name} is back")


def kill_a_merge(demo, queries):
    victim = demo.merges[-1]
    victim.kill()
    began = time.monotonic()
    answers = ask(demo.merges[0], queries)
    if any("error" in answer for answer in answers):
        raise Failure(f"an answer has an error: {json.dumps(answers)}")
    print(f"  {victim.name} is killed. {len(queries)} queries at once are all answered within "
          f"{time.monotonic() - began:.1f} s, by the other one")
    victim.start().wait_ready()


def run(demo):
    queries = questions(demo.data / "queries.jsonl")

    say(f"starting one daemon with the whole catalogue, {demo.n} shards and 2 merges")
    demo.start()
    say("loading the catalogue")
    print(f"  {demo.whole.ctl('load', str(demo.data / 'items.jsonl')).strip()}")
    demo.wait_whole()
    demo.show_layout()
    say("the same answers")
    compare(demo, queries)
    say("a shard is killed")
    kill_a_shard(demo, queries[0])
    compare(demo, queries[:1])
    say("a merge is killed")
    kill_a_merge(demo, queries)
    say("stopping")
    for daemon in reversed(demo.daemons()):
        daemon.stop()
    print("  all have stopped cleanly, with status 0")


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, required=True)
    for name in ("build", "data", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--kafka")
    arguments = parser.parse_args()
    if not 2 <= arguments.shards <= 16:
        parser.error("--shards expects a number from 2 to 16")
    return arguments


def main():
    demo = Demo(read_arguments())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run(demo)
    except Failure as failure:
        raise SystemExit(f"\ndemo: error: {failure}") from None
    finally:
        demo.close()


if __name__ == "__main__":
    main()
