#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure one daemon, and two and four shards with a merge, on a real broker under open-loop load, beside what
ops/simulate's model predicts for them.

The model gets its times from the first run: what the searches took, the processor time of the daemon, the broker and
the client for a query, and how long and how often the broker stops to collect its garbage. What is left of a wait is
two ways through Kafka. A merge's time for a part is from the first run that has a merge. Shards search their share of
the items. All these processes share the cores. What other programs use of them is measured, but not in the model.
"searches" are predictions of a model in which only searches take processor time. "own" are predictions from the
processor times of the layout's own run: what they miss is not the fault of the times.

Bytes of a query in the three topics are those of the broker's log, with each record in a batch of its own, beside the
formula of ops/record_bytes.py. After the load, all items are written again: update_us is the processor time of all
daemons for one of them, and updates_per_s what the busiest daemon could apply with a core of its own.

ops/bench shards runs it. The exit status is 1 if a query was lost, answered twice, or not by all shards.
"""

import argparse
import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ops"), str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "broker")]
import data  # noqa: E402
import kafka_broker  # noqa: E402
from harness import Daemon, eventually, merged  # noqa: E402
from kafka_log import lone_bytes  # noqa: E402
from processor_time import TICK_MS, Meter  # noqa: E402
from record_bytes import HEARTBEAT, Queries  # noqa: E402
from replicas import CATALOGUE_PARTITIONS, KEY_BYTES, SPACE, Load, Replicas  # noqa: E402
from result_rows import ResultRows  # noqa: E402
from simulation import Layout, Times, at_shard_size, simulate  # noqa: E402

LEAST_MS = 0.01
TOPICS = ("queries", "partials", "answers")
N_PARTITIONS = 3  # of the topics of queries, parts and answers
NO_BROKER = 77  # ctest calls this skipped; CI has a broker
IDLE_S = 20  # measured after the load, so that a query is not charged with what daemons and broker always do
SETTLE_S = 10  # in the first seconds of a load, the ways through Kafka take up to twice as long: not counted
MEMORY = {"heap_mb": 640, "young_mb": 320}  # of the broker
COLUMNS = ("shards", "queries", "lost", "twice", "median_ms", "predicted_median_ms", "own_median_ms",
           "searches_median_ms", "p99_ms", "predicted_p99_ms", "own_p99_ms", "searches_p99_ms", "searched_ms",
           "merged_ms", "client_ms", "broker_ms", "daemons_ms", "merge_ms", "stops", "stop_ms",
           "idle_cores", "other_cores", *(f"{word}{topic}_bytes" for topic in TOPICS
                                          for word in ("", "predicted_")),
           "update_us", "updates_per_s", "predicted_updates_per_s")


class Shards(Replicas):
    """A catalogue over n shards and a merge; with one shard, a daemon alone."""

    def __init__(self, broker, n_shards, n_items, delivery):
        self.n_shards = n_shards
        super().__init__(broker, n_shards, n_items, N_PARTITIONS,
                         config={"query": {"threads_per_search": 1, "workers": 1}})
        broker.create_topic(self.topic("partials"), N_PARTITIONS)
        self.merge = self._merge(delivery) if n_shards > 1 else None

    def _daemon(self, number):
        if self.n_shards == 1:
            return super()._daemon(number)
        self.base = merged(self.base, {"catalogue": {"shard": {"index": number, "of": self.n_shards}},
                                       "query": {"partials_topic": self.topic("partials")}})
        return super()._daemon(number)

    def _merge(self, delivery):
        folder = Path(self.folder.name) / "merge"
        folder.mkdir()
        query = {key: self.base["query"][key] for key in ("group", "answer_topic", "partials_topic")}
        return Daemon({"role": "merge", "merge": {"instance": "bench", "delivery": delivery},
                       "kafka": self.base["kafka"], "query": query}, folder)

    def open(self, timeout_s):
        """Start everything, and wait until all items are there."""
        started = self.daemons + ([self.merge] if self.merge else [])
        for daemon in started:
            daemon.start()
        for daemon in started:
            daemon.wait_ready(timeout_s)
        items = sum(daemon.status()["items"] for daemon in self.daemons)
        assert items == self.n_items, f"{items} of {self.n_items} items"

    def topics_bytes(self):
        return {kind: lone_bytes(self.broker.data_path, self.topic(kind)) for kind in TOPICS}

    def n_applied(self):
        """Return how many catalogue records the daemons have applied."""
        return sum(row["next"] for daemon in self.daemons for row in daemon.status()["catalogue_log"])

    def update_all(self):
        """Write all items again, and wait until the daemons have applied them."""
        self._write_items()
        eventually(lambda: self.n_applied() == 2 * self.n_items, "the updates", 60 + self.n_items / 5000)

    def close(self):
        if self.merge and self.merge.is_running():
            self.merge.stop()
        super().close()


@dataclass(frozen=True)
class Run:
    """A load that was answered, and the processor time meanwhile."""

    load: Load
    n_settling: int  # of the first queries, which do not count
    n_shards: int
    query_ms: dict  # processor time of client, broker, daemons and merge for a query
    idle_cores: float  # that they use without queries
    other_cores: float  # that other programs used
    stops_ms: list  # of the broker, to collect its garbage

    def waits_ms(self):
        return self.load.waits_ms()[self.n_settling:]

    def parts_ms(self, field):
        return np.array([getattr(self.load.times[i], field) for i in list(self.load.sent)[self.n_settling:]]) / 1000

    def ways_ms(self):
        """Both ways through Kafka of a query without a merge, sorted."""
        return np.sort(self.waits_ms() - self.parts_ms("searched_us") - self.parts_ms("queued_us"))

    def ways_without_stops_ms(self):
        """Suppose that each stop of the broker met a query, and that these took longest."""
        return self.ways_ms()[: -len(self.stops_ms) or None]

    def stops(self):
        """Of the broker, for the model."""
        n_records = len(self.waits_ms()) * self.records()
        return {"stop_ms": float(np.mean(self.stops_ms or [0])),
                "stop_records": n_records / len(self.stops_ms) if self.stops_ms else 0}

    def broker_ms(self):
        """Processor time of the broker for a record, without stops."""
        query_ms = self.query_ms["broker"] - sum(self.stops_ms) / len(self.waits_ms())
        return max(0.0, query_ms) / self.records()

    def records(self):
        """How often the broker takes in or gives out a record for a query: the query, its parts and the answer."""
        return 4 if self.n_shards == 1 else 3 * self.n_shards + 3


def spread_of(values):
    return float(np.log(np.maximum(values, LEAST_MS)).std())


def hops_of(ways_ms):
    """Return what two ways through Kafka say of one: its median and factors. One of the two took what was unusual."""
    hop_ms = max(LEAST_MS, float(np.median(ways_ms)) / 2)
    unusual = np.maximum(ways_ms / hop_ms - 1, 0)
    return {"hop_ms": hop_ms, "hop_factors": (1.0,) * len(unusual) + tuple(unusual.tolist())}


def times_of(run):
    """Return the times of the first run, for the model; those of a merge are not known."""
    searched_ms = run.parts_ms("searched_us")
    median_ms = max(LEAST_MS, float(np.median(searched_ms)))
    daemon_ms = max(0.0, run.query_ms["daemons"] - float(searched_ms.mean()))
    worked_ms = run.query_ms["client"] + run.records() * run.broker_ms() + daemon_ms
    return Times(batch_ms=0, query_ms=median_ms, spread=spread_of(searched_ms),
                 search_factors=tuple((searched_ms / median_ms).tolist()), join_ms=0,
                 client_ms=run.query_ms["client"], broker_ms=run.broker_ms(), daemon_ms=daemon_ms, **run.stops(),
                 **hops_of(run.ways_without_stops_ms() - worked_ms))


def own_times(times, first, run):
    """The times of a shard of this run, by its processor times. `times` are of the first run's whole catalogue."""
    share = run.query_ms["daemons"] / run.n_shards / first.query_ms["daemons"]
    return replace(times, query_ms=times.query_ms * share, daemon_ms=times.daemon_ms * share,
                   client_ms=run.query_ms["client"], broker_ms=run.broker_ms(),
                   join_ms=run.query_ms["merge"] / run.n_shards, **run.stops())


def of_searches(times, first):
    """The same times, if only searches took processor time."""
    return replace(times, join_ms=0.01, client_ms=0, broker_ms=0, daemon_ms=0, stop_ms=0, stop_records=0,
                   **hops_of(first.ways_ms()))


def predict(times, n_shards, options):
    layout = Layout(shards=n_shards, merges=int(n_shards > 1), cores=os.cpu_count(), batch_max=1)
    return simulate(layout, times, options.rate, max(options.seconds, 200), seed=7, is_even=True)


def predictions(times, first, run, options):
    """Return what is predicted, by name. `times` are of the whole catalogue, and know the merge's."""
    def at_size(known):
        return at_shard_size(known, options.items / run.n_shards, options.items)
    return {"predicted": predict(at_size(times), run.n_shards, options),
            "own": predict(own_times(times, first, run), run.n_shards, options),
            "searches": predict(at_size(of_searches(times, first)), run.n_shards, options)}


def row_of(run, predicted, options):
    load, waits = run.load, run.waits_ms()
    return {"workload": "shards", "shards": run.n_shards, "items": options.items, "method": load.method, "k": load.k,
            "queries_per_s": options.rate, "delivery": options.delivery, "cores": os.cpu_count(),
            "queries": len(waits), "lost": len(load.lost()), "twice": len(load.twice()),
            "batch": 1, "threads": 1, "median_ms": round(float(np.median(waits)), 2),
            "p95_ms": round(float(np.percentile(waits, 95)), 2), "p99_ms": round(float(np.percentile(waits, 99)), 2),
            **{f"{name}_{word}_ms": round(outcome.quantile(q), 2)
               for name, outcome in predicted.items() for word, q in (("median", 0.5), ("p95", 0.95), ("p99", 0.99))},
            **{f"{name}_ms": round(ms, 3) for name, ms in run.query_ms.items()},
            "stops": len(run.stops_ms), "stop_ms": round(run.stops()["stop_ms"], 2),
            "idle_cores": round(run.idle_cores, 3), "other_cores": round(run.other_cores, 3),
            "searched_ms": round(float(np.median(run.parts_ms("searched_us"))), 3),
            "merged_ms": round(float(np.median(run.parts_ms("merged_us"))), 3)}


def processes_of(broker, system):
    """Return the names and process ids of all who take part. This process is the client."""
    return {"client": [os.getpid()], "broker": [broker.process.pid],
            "daemons": [daemon.process.pid for daemon in system.daemons],
            "merge": [system.merge.process.pid] if system.merge else []}


def meter_load(load, broker, processes, n_shards, options):
    """Send the load, and return its run. What all do without queries is measured after it."""
    load.wait_sent(int(options.rate * min(SETTLE_S, options.seconds)))
    n_settling, n_stops, meter = load.n_sent(), len(broker.stops_ms()), Meter(processes)
    load.wait_sent(int(options.rate * options.seconds))
    load.finish(60)
    used, other_cores = meter.read()
    stops_ms = broker.stops_ms()[n_stops:]
    span_ms, meter = 1000 * meter.span_s(), Meter(processes)
    time.sleep(min(IDLE_S, options.seconds))
    idle, _ = meter.read()
    least = {name: TICK_MS if processes[name] else 0.0 for name in used}  # the clock tells no less
    n_counted = load.n_sent() - n_settling
    query_ms = {name: max(least[name], (used[name] - idle[name]) * span_ms) / n_counted for name in used}
    return Run(load, n_settling, n_shards, query_ms, sum(idle.values()), other_cores, stops_ms)


def bytes_of(load, system, before, span_s):
    """Return the bytes of a query in each topic since they were so large, and what the formula says of them."""
    n, n_shards = load.n_sent() + 1, system.n_shards  # with the one to warm up
    query_id = f"{load.prefix}-{load.n_sent() // 2}"
    asked = Queries(k=load.k, query_bytes=len(load._make(query_id).SerializeToString()), id_bytes=len(query_id),
                    key_bytes=KEY_BYTES, topic_bytes=len(system.topic("queries")), partitions=CATALOGUE_PARTITIONS)
    partials = n_shards * (asked.part(n_shards) + HEARTBEAT * span_s / n) + asked.mark() if system.merge else 0
    predicted = dict(zip(TOPICS, (asked.query(), partials, asked.answer())))
    return {**{f"{topic}_bytes": round((size - before[topic]) / n, 1) for topic, size in system.topics_bytes().items()},
            **{f"predicted_{topic}_bytes": round(size, 1) for topic, size in predicted.items()}}


def meter_updates(system):
    """Return the processor time of all daemons for an update of one item, and what the busiest one could apply."""
    meter = Meter({daemon.port: [daemon.process.pid] for daemon in system.daemons})
    system.update_all()
    used, _ = meter.read()
    update_us = [max(TICK_MS, cores * meter.span_s() * 1000) * 1000 / system.n_items for cores in used.values()]
    return {"update_us": round(sum(update_us), 2), "updates_per_s": round(1e6 / max(update_us))}


def measure(broker, n_shards, options):
    """Return the run of one layout, which is complete, and what was measured beside its times."""
    system = Shards(broker, n_shards, options.items, options.delivery)
    try:
        system.open(60 + options.items / 5000)
        before, began = system.topics_bytes(), time.monotonic()
        with Load(system, options.rate, method=options.method, k=options.k) as load:
            run = meter_load(load, broker, processes_of(broker, system), n_shards, options)
            sizes = bytes_of(load, system, before, time.monotonic() - began)
        return run, {**sizes, **meter_updates(system)}
    finally:
        system.close()


def measure_all(broker, options):
    """Yield the row of each layout, and predict it from the first one."""
    measure(broker, 1, options)  # does not count: a broker that has just started is slow
    first = times = updates_per_s = None
    for n_shards in [1, *options.shards]:
        run, beside = measure(broker, n_shards, options)
        first, times, updates_per_s = first or run, times or times_of(run), updates_per_s or beside["updates_per_s"]
        if n_shards > 1 and times.join_ms == 0:
            times = replace(times, join_ms=run.query_ms["merge"] / n_shards)
        yield {**row_of(run, predictions(times, first, run, options), options), **beside,
               "predicted_updates_per_s": n_shards * updates_per_s}


def parse():
    parser = argparse.ArgumentParser(prog="ops/bench shards")
    parser.add_argument("--items", type=int, default=200000)
    parser.add_argument("--rate", type=float, default=20, help="queries per second")
    parser.add_argument("--seconds", type=float, default=30, help="of load on each layout")
    parser.add_argument("--method", default="default", help=f"of space {SPACE}, which is recjpq")
    parser.add_argument("--k", type=int, default=10, help="hits of an answer, and of each part")
    parser.add_argument("--shards", type=int, nargs="+", default=[2, 4], help="layouts; one daemon always comes first")
    parser.add_argument("--delivery", choices=("at_least_once", "exactly_once"), default="at_least_once")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


def main():
    options, rows = parse(), []
    table = ResultRows(COLUMNS, options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that daemons and broker end too
    reason = kafka_broker.why_unavailable()
    if reason:
        print(f"shards: no broker: {reason}", file=sys.stderr)
        sys.exit(1 if data.CI else NO_BROKER)
    with kafka_broker.KafkaBroker(properties={"group.initial.rebalance.delay.ms": 0}, **MEMORY) as broker:
        for row in measure_all(broker, options):
            table.show(row)
            rows.append(row)
    sys.exit(any(row["lost"] or row["twice"] for row in rows))


main()
