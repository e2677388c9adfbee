# SPDX-License-Identifier: Apache-2.0
"""A discrete-event simulation of shards, replicas, merges and the topics between them: what a layout would do.

A query goes from its client through Kafka to one replica of each shard, and the parts through Kafka to a merge, which
answers when it has the last part. Everything is in milliseconds. The queues are exact (first in, first out, a worker
takes what waits as one batch); service times and the ways through Kafka are drawn from log-normal distributions, which
is how they look when measured: a median and a long tail. Where processes share cores, they can be drawn from measured
times instead.
"""

import bisect
import heapq
from dataclasses import dataclass, field, replace

import numpy as np

import shared_cores


@dataclass(frozen=True, kw_only=True)
class Times:
    """Measured times. `batch_ms` and `query_ms` are of a search in one shard: one batch, and each query of it."""

    batch_ms: float = 0.1
    query_ms: float = 0.5
    spread: float = 0.35  # sigma of the logarithm: 0.35 makes p99 2.3 times the median
    hop_ms: float = 2.0  # from a producer through Kafka to a consumer, median
    hop_spread: float = 0.4
    join_ms: float = 0.01  # what a merge does for each part
    # What follows counts where processes share cores (shared_cores.py). Times of searches and hops, divided by their
    # median: drawn from these if there are any, and not from log-normal distributions.
    search_factors: tuple = ()
    hop_factors: tuple = ()
    # Means of processor time:
    client_ms: float = 0.0  # of the client for a query and its answer
    broker_ms: float = 0.0  # of the broker for a record that comes in, and for one that goes out
    daemon_ms: float = 0.0  # of a shard for a query, besides the search
    stop_ms: float = 0.0  # the broker stops for so long, to collect its garbage,
    stop_records: float = 0.0  # whenever so many records have come in or gone out; 0: never


@dataclass(frozen=True)
class Layout:
    shards: int = 1
    replicas: int = 1
    merges: int = 1  # 0: no merge; the only shard answers
    workers: int = 1  # searches at a time in each daemon
    batch_max: int = 32  # queries of one batch
    cores: int = 0  # all processes share so many cores; 0: each worker has one of its own

    def daemons(self):
        return self.shards * self.replicas + self.merges


@dataclass(frozen=True)
class Trouble:
    """What goes wrong. The default: nothing."""

    straggler_share: float = 0.0  # of the batches that take `straggler_factor` times as long
    straggler_factor: float = 10.0
    lost_shards: int = 0  # all replicas of so many shards are away, from the beginning to the end
    wait_ms: float = 200.0  # a merge answers without the missing parts after this time
    dead_at_ms: float = -1.0  # a replica of the first shard dies; -1: none
    dead_for_ms: float = 6000.0  # until Kafka gives its partitions to the others (session.timeout.ms)
    pause_at_ms: float = -1.0  # the group of the first shard rebalances: none of its replicas reads; -1: never
    pause_for_ms: float = 300.0  # assumed. In ops/bench replicas no query waited that long for a restart
    slow_brokers: float = 0.0  # this share of the partitions is led by brokers that take `slow_factor` times as long
    slow_factor: float = 10.0
    hedge: bool = False  # every replica answers every query, and the merge takes the first part


@dataclass(frozen=True)
class Outcome:
    latency_ms: np.ndarray  # [queries], from the client's send to the answer at its consumer
    complete: np.ndarray  # [queries], false: answered without all parts
    search_load: float  # share of the time that the busiest worker (or core) works
    merge_load: float  # share of the time that the busiest merge works
    records: float  # per second through Kafka: queries, parts, answers
    reads: float  # per second out of Kafka
    warm_up: int = field(default=0)  # the first queries, which found empty queues

    def quantile(self, q):
        return float(np.quantile(self.latency_ms[self.warm_up :], q))


def hops(rng, times, trouble, partition_draw):
    """Draw the time of one way through Kafka for each query. partition_draw: which partition, uniform in [0, 1)."""
    drawn = times.hop_ms * np.exp(times.hop_spread * rng.standard_normal(len(partition_draw)))
    return np.where(partition_draw < trouble.slow_brokers, drawn * trouble.slow_factor, drawn)


def serve(arrivals, workers, batch_max, batch_ms, query_ms, draw):
    """Serve queries in the order of their arrival, and return (when each is done, the time that workers worked).

    arrivals  sorted
    draw      draw() is the factor of the next batch's time
    """
    waiting = arrivals.tolist()
    done = np.empty(len(waiting))
    free = [0.0] * workers
    busy, at = 0.0, 0
    while at < len(waiting):
        begin = max(free[0], waiting[at])
        end = min(bisect.bisect_right(waiting, begin, at), at + batch_max)
        took = (batch_ms + (end - at) * query_ms) * draw()
        heapq.heapreplace(free, begin + took)
        done[at:end] = begin + took
        busy += took
        at = end
    return done, busy


def factors(rng, times, trouble, n):
    """Return a function that gives the factors of service times one by one; n of them are drawn at once."""
    drawn = np.exp(times.spread * rng.standard_normal(n))
    drawn[rng.random(n) < trouble.straggler_share] *= trouble.straggler_factor
    return iter(drawn.tolist()).__next__


def serve_unsorted(arrivals, order, *how):
    """serve() for arrivals in any order; order sorts them."""
    done = np.empty(len(arrivals))
    done[order], busy = serve(arrivals[order], *how)
    return done, busy


def paused(arrivals, at, until):
    """Queries that arrive while their group rebalances are read when it has ended."""
    return np.where((arrivals >= at) & (arrivals < until), until, arrivals)


def owners(arrivals, replicas, partition_draw, trouble):
    """Return (which replica reads each query of the first shard, when it can). A dead one's wait for the group."""
    owner = owner_of(partition_draw, replicas)
    if trouble.pause_at_ms >= 0:
        arrivals = paused(arrivals, trouble.pause_at_ms, trouble.pause_at_ms + trouble.pause_for_ms)
    if trouble.dead_at_ms < 0:
        return owner, arrivals
    back = trouble.dead_at_ms + trouble.dead_for_ms
    is_stranded = (owner == 0) & (arrivals >= trouble.dead_at_ms)
    owner = np.where(is_stranded & (replicas > 1), 1 % replicas, owner)
    return owner, np.where(is_stranded & (arrivals < back), back, arrivals)


def owner_of(partition_draw, replicas):
    return (partition_draw * 65536).astype(np.int64) % replicas


def shard_parts(rng, layout, times, trouble, arrivals, partition_draw, is_first_shard):
    """Return (when the part of each query is found, the most that a replica worked)."""
    n = len(arrivals)
    groups = []
    if trouble.hedge:
        groups = [np.arange(n) for _ in range(layout.replicas)]
    else:
        owner = owner_of(partition_draw, layout.replicas)
        if is_first_shard:
            owner, arrivals = owners(arrivals, layout.replicas, partition_draw, trouble)
        groups = [np.flatnonzero(owner == r) for r in range(layout.replicas)]
    found = np.full(n, np.inf)
    most = 0.0
    for mine in groups:
        done, busy = serve_unsorted(arrivals[mine], np.argsort(arrivals[mine], kind="stable"), layout.workers,
                                    layout.batch_max, times.batch_ms, times.query_ms,
                                    factors(rng, times, trouble, len(mine)))
        found[mine] = np.minimum(found[mine], done)
        most = max(most, busy / layout.workers)
    return found, most


def join(arrivals, join_ms):
    """Return when a merge has dealt with each part. arrivals: sorted. One thread, the same time for each part."""
    steps = np.arange(len(arrivals)) * join_ms
    return np.maximum.accumulate(arrivals - steps) + steps + join_ms


def merge_parts(layout, times, trouble, parts, partition_draw):
    """Join the parts of each query: parts [shards][n], when they reach the merge. Returns (when, complete, load)."""
    n_shards, n = parts.shape
    n_here = n_shards - trouble.lost_shards
    owner = (partition_draw * 65536).astype(np.int64) // layout.replicas % layout.merges
    ready = np.empty(n)
    most = 0.0
    for m in range(layout.merges):
        mine = np.flatnonzero(owner == m)
        if len(mine) == 0:
            continue
        flat = parts[:n_here, mine].reshape(-1)
        order = np.argsort(flat, kind="stable")
        joined = np.empty(len(flat))
        joined[order] = join(flat[order], times.join_ms)
        ready[mine] = joined.reshape(n_here, len(mine)).max(axis=0)
        most = max(most, len(flat) * times.join_ms)
    first = parts[:n_here].min(axis=0)
    is_late = (ready > first + trouble.wait_ms) | (trouble.lost_shards > 0)
    ready = np.where(is_late, first + trouble.wait_ms, ready)
    return ready, ~is_late, most


def simulate(layout, times, rate, seconds, trouble=Trouble(), seed=1, is_even=False):
    """Simulate queries, `rate` a second, for so many seconds. Returns an Outcome.

    is_even  they come at even distances; if not, at random moments
    """
    rng = np.random.default_rng(seed)
    n = max(1, int(rate * seconds))
    sent = np.cumsum(np.full(n, 1000.0 / rate) if is_even else rng.exponential(1000.0 / rate, n))
    partition = rng.random(n)
    kind = on_shared_cores if layout.cores else on_own_cores
    latency_ms, complete, search_busy, merge_busy = kind(rng, layout, times, trouble, sent, partition)
    span, copies = max(sent[-1], 1.0), layout.replicas if trouble.hedge else 1
    n_parts = layout.shards * copies if layout.merges else 0
    return Outcome(latency_ms, complete, search_busy / span, merge_busy / span, rate * (2 + n_parts),
                   rate * (1 + n_parts + layout.shards * copies), warm_up=n // 20)


def on_shared_cores(rng, layout, times, trouble, sent, partition):
    """The load of searches is that of the cores, whoever works."""
    latency_ms, complete, busy = shared_cores.run(rng, layout, times, trouble, sent, partition)
    return latency_ms, complete, busy / layout.cores, 0.0


def on_own_cores(rng, layout, times, trouble, sent, partition):
    read = [sent + hops(rng, times, trouble, partition) for _ in range(layout.shards)]
    served = [shard_parts(rng, layout, times, trouble, read[s], partition, s == 0) for s in range(layout.shards)]
    found, most = np.stack([done for done, _ in served]), max(busy for _, busy in served)
    complete, merge_busy, joined = np.ones(len(sent), bool), 0.0, found[0]
    if layout.merges:
        parts = np.stack([found[s] + hops(rng, times, trouble, partition) for s in range(layout.shards)])
        joined, complete, merge_busy = merge_parts(layout, times, trouble, parts, partition)
    answered = joined + hops(rng, times, trouble, rng.random(len(sent)))
    return answered - sent, complete, most, merge_busy


def at_shard_size(times, items, measured_items):
    """Times for shards of `items`, if those of `measured_items` are known: what a query takes grows with the items."""
    return replace(times, query_ms=times.query_ms * items / measured_items)
