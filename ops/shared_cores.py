# SPDX-License-Identifier: Apache-2.0
"""One machine whose cores are shared by all: the client, the broker, the shards and the merge.

Whoever has something to do gets an equal part of the cores, and never more than one core for each thread. That is how
the system's scheduler divides them, so a short piece of work does not wait for a long one to end. Other programs are
not in the model: the scheduler prefers a process that mostly sleeps to those that always work.
"""

import heapq
import itertools
from collections import deque
from dataclasses import dataclass

import numpy as np


class Process:
    """Does at most `threads` pieces of work at a time; the others wait in the order in which they came."""

    def __init__(self, threads=1):
        self.threads, self.n_running, self.waiting = threads, 0, deque()
        self.stop = None  # the piece of work for which all others stop


class Machine:
    def __init__(self, cores):
        self.cores, self.now, self.busy = cores, 0.0, 0.0
        self.running = []  # [remaining ms, process, then]
        self.events, self.order = [], itertools.count()

    def at(self, moment, then):
        heapq.heappush(self.events, (moment, next(self.order), then))

    def after(self, ms, then):
        self.at(self.now + ms, then)

    def work(self, process, ms, then):
        """Let a process work for so many milliseconds of one core's time, then call then()."""
        if process.n_running < process.threads:
            process.n_running += 1
            self.running.append([ms, process, then])
        else:
            process.waiting.append((ms, then))

    def stop(self, process, ms):
        """Stop a process for so long: garbage is collected, which takes a core."""
        if process.stop is None:
            process.stop = [ms, process, None]
            self.running.append(process.stop)

    def run(self):
        """Go on until nothing is left to do."""
        while self.events or self.running:
            going_on = [piece for piece in self.running if piece[1].stop is None or piece[1].stop is piece]
            speed = min(1.0, self.cores / max(1, len(going_on)))
            next_end = min((left for left, _, _ in going_on), default=np.inf) / speed + self.now
            next_event = self.events[0][0] if self.events else np.inf
            self._advance(going_on, min(next_end, next_event), speed)
            if next_event <= next_end:
                heapq.heappop(self.events)[2]()
            else:
                self._end_one(going_on)

    def _advance(self, going_on, moment, speed):
        done = (moment - self.now) * speed
        for piece in going_on:
            piece[0] -= done
        self.busy += done * len(going_on)
        self.now = moment

    def _end_one(self, going_on):
        piece = min(going_on, key=lambda one: one[0])
        self.running.remove(piece)
        _, process, then = piece
        if process.stop is piece:
            process.stop = None
            return
        process.n_running -= 1
        if process.waiting:
            self.work(process, *process.waiting.popleft())
        then()


@dataclass
class Query:
    sent: float
    place: int  # of its partition: which replica and which merge read it
    hop_factor: float = 1.0  # of its partition's broker
    n_parts: int = 0
    answered: float = np.inf
    is_answering: bool = False
    is_complete: bool = True


def draw(rng, n, measured, sigma):
    """Return a function that gives factors of a median one by one: measured ones, or else log-normal ones."""
    drawn = rng.choice(measured, n) if len(measured) else np.exp(sigma * rng.standard_normal(n))
    return itertools.cycle(drawn.tolist()).__next__


class OneMachine:
    """The processes of a layout, and the way of a query through them."""

    def __init__(self, rng, layout, times, trouble, n_queries):
        self.machine, self.times, self.trouble = Machine(layout.cores), times, trouble
        self.client, self.broker = Process(), Process(threads=8)
        self.shards = [[Process(layout.workers) for _ in range(layout.replicas)] for _ in range(layout.shards)]
        self.merges = [Process() for _ in range(layout.merges)]
        self.n_records = 0  # through the broker, since it last stopped
        n_drawn = n_queries * (6 * layout.shards + 8)
        self.normals = itertools.cycle(rng.standard_normal(n_drawn).tolist()).__next__
        self.search_factor = draw(rng, n_drawn, times.search_factors, times.spread)
        self.hop_factor = draw(rng, n_drawn, times.hop_factors, times.hop_spread)
        self.uniforms = itertools.cycle(rng.random(n_queries * layout.shards).tolist()).__next__

    def spread(self, mean_ms):
        """Draw the time of a piece of work whose mean was measured."""
        sigma = self.times.spread
        return mean_ms * float(np.exp(sigma * self.normals() - sigma**2 / 2))

    def through_kafka(self, query, then, n_readers=1):
        """A record that n readers share into the broker, and out of it for one of them. The waits take no core."""
        n_records = 1 / n_readers + 1
        self.n_records += n_records
        if 0 < self.times.stop_records <= self.n_records and not self.broker.stop:
            self.n_records -= self.times.stop_records
            self.machine.stop(self.broker, self.times.stop_ms)
        hop = self.times.hop_ms * self.hop_factor() * query.hop_factor
        work = self.spread(n_records * self.times.broker_ms)
        self.machine.work(self.broker, work, lambda: self.machine.after(hop, then))

    def send(self, query):
        work = self.spread(self.times.client_ms / 2)
        self.machine.work(self.client, work, lambda: self.spread_to_shards(query))

    def spread_to_shards(self, query):
        shards = self.shards[: len(self.shards) - self.trouble.lost_shards]
        for replicas in shards:
            mine = replicas[query.place % len(replicas)]
            self.through_kafka(query, lambda mine=mine: self.search(query, mine), len(shards))

    def search(self, query, shard):
        """Median and spread of searches are measured; of what else a daemon does for a query, the mean."""
        factor = self.search_factor()
        if self.uniforms() < self.trouble.straggler_share:
            factor *= self.trouble.straggler_factor
        work = (self.times.batch_ms + self.times.query_ms) * factor + self.spread(self.times.daemon_ms)
        self.machine.work(shard, work, lambda: self.through_kafka(query, lambda: self.take(query)))

    def take(self, query):
        if self.merges:
            merge = self.merges[query.place // len(self.shards[0]) % len(self.merges)]
            self.machine.work(merge, self.spread(self.times.join_ms), lambda: self.join(query))
        else:
            self.read_answer(query)

    def join(self, query):
        query.n_parts += 1
        if query.n_parts == 1:
            self.machine.after(self.trouble.wait_ms, lambda: self.answer(query, is_complete=False))
        if query.n_parts == len(self.shards):
            self.answer(query, is_complete=True)

    def answer(self, query, is_complete):
        if query.is_answering:
            return
        query.is_answering, query.is_complete = True, is_complete
        self.through_kafka(query, lambda: self.read_answer(query))

    def read_answer(self, query):
        def note():
            query.answered = self.machine.now
        self.machine.work(self.client, self.spread(self.times.client_ms / 2), note)


def run(rng, layout, times, trouble, sent, partition_draw):
    """Simulate queries that are sent at these moments. Returns (latencies, complete, milliseconds of busy cores)."""
    one = OneMachine(rng, layout, times, trouble, len(sent))
    slow = np.where(partition_draw < trouble.slow_brokers, trouble.slow_factor, 1.0).tolist()
    places = (partition_draw * 65536).astype(np.int64).tolist()
    queries = [Query(*query) for query in zip(sent.tolist(), places, slow)]
    for query in queries:
        one.machine.at(query.sent, lambda query=query: one.send(query))
    one.machine.run()
    latencies = np.array([query.answered - query.sent for query in queries])
    return latencies, np.array([query.is_complete for query in queries]), one.machine.busy
