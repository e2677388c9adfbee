# SPDX-License-Identifier: Apache-2.0
"""Shards and merges beside a daemon with the whole catalogue, on the same topics."""

import collections
import json
import subprocess

from harness import SLOWNESS, Daemon, build_dir, eventually, merged
from wire import value_of


class Layout:
    """n shards, each with some replicas, and some merges of a System: their answers go to a topic of their own,
    `PREFIX.merged`. The System's daemon has the whole catalogue and answers the same queries in `PREFIX.answers`."""

    def __init__(self, system, n, n_merges=2, shard_config=None, merge_config=None, name="sharded", n_replicas=1):
        self.system, self.n = system, n
        self.answer_topic = system.topic("merged")
        group = {"query": {"group": f"{system.prefix}.{name}", "partials_topic": system.topic("partials"),
                           "answer_topic": self.answer_topic}}
        self.base = merged(system.daemon.config, group)
        self.shards = [self.shard(i, n, shard_config, r) for i in range(n) for r in range(n_replicas)]
        self.merges = [self.merge(f"{name}-{i}", merge_config) for i in range(n_merges)]

    def _daemon(self, name, config):
        folder = self.system.folder / name
        folder.mkdir(exist_ok=True)
        return Daemon(config, folder)

    def shard(self, index, of, config=None, replica=0):
        name = f"shard-{index}-of-{of}" + (f"-replica-{replica}" if replica else "")
        own = {"catalogue": {"shard": {"index": index, "of": of}},
               "store": {"path": str(self.system.folder / name / "store")}}
        return self._daemon(name, merged(merged(self.base, own), config or {}))

    def merge(self, name, config=None):
        own = {"role": "merge", "merge": {"instance": name}, "kafka": self.base["kafka"], "query": self.base["query"]}
        return self._daemon(name, merged(own, config or {}))

    def daemons(self):
        return self.shards + self.merges

    def open(self):
        for daemon in self.daemons():
            daemon.start()
        for daemon in self.daemons():
            daemon.wait_ready()
        eventually(lambda: all(len(merge.status()["shards"]) == self.n for merge in self.merges),
                   "merges to hear of all shards")
        return self

    def close(self):
        for daemon in self.daemons():
            if daemon.is_running():
                daemon.kill()
            daemon.log()

    def are_ready(self):
        """Are all ready? Fails if one has ended."""
        for daemon in self.daemons():
            assert daemon.is_running(), f"{daemon.folder.name} ended:\n{daemon.log_tail()}"
        return all((daemon.get("/readyz") or [0])[0] == 200 for daemon in self.daemons())

    def stop(self):
        for daemon in self.daemons():
            if daemon.is_running():
                daemon.stop()

    def logs(self):
        return "\n".join(f"--- {daemon.folder.name}\n{daemon.log_tail(25)}" for daemon in self.daemons())


def same(answer, has_limit=False):
    """What of an answer must not depend on the shards. With a max_per, items that it leaves out need no bound, but may
    have one: a merge does not know whether others are left."""
    receipt = answer.receipt.exact if has_limit else answer.receipt.SerializeToString(deterministic=True)
    return ([(hit.key, hit.score, value_of(hit.value), hit.similarity, hit.HasField("similarity"),
              sorted((name, value_of(value)) for name, value in hit.attributes.items())) for hit in answer.hits],
            receipt, answer.HasField("now_unix_ms"), answer.now_unix_ms,
            [(p.partition, p.next) for p in answer.watermark], answer.counts.items,
            answer.counts.admitted if answer.counts.HasField("admitted") else None,
            [e.SerializeToString(deterministic=True) for e in answer.explanations])


def show_layout(daemons, code=0):
    """Return what `sluicectl layout --json` prints about these daemons."""
    at = ",".join(f"127.0.0.1:{daemon.port}" for daemon in daemons)
    done = subprocess.run([build_dir() / "sluicectl", "layout", "--json", "--at", at], capture_output=True, text=True,
                          timeout=60 * SLOWNESS)
    assert done.returncode == code, f"exit status {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


def by_topic(client, query_id):
    """Return {topic: [answer]} of a query."""
    replies = collections.defaultdict(list)
    for reply in client.replies.get(query_id, []):
        replies[reply.topic].append(reply.answer)
    return replies


def wait_both(client, ids, topics, timeout_s=60):
    """Wait until each query has an answer in each topic."""
    client.flush()

    def complete():
        client.poll(0.01)
        return all(len(by_topic(client, i)) >= len(topics) for i in ids)
    eventually(complete, f"the answers in {topics}", timeout_s)
