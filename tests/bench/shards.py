#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure one daemon, and two and four shards with a merge, on a real broker under open-loop load, beside what
ops/simulate's model predicts for them.

The model gets its times from the first run alone: what a search takes, and what is left of a wait is two ways through
Kafka. Shards search their share of the items, and all processes share the machine's cores. ops/bench shards runs it.
The exit status is 1 if a query was lost, answered twice, or not by all shards.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ops"), str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "broker")]
import data  # noqa: E402
import kafka_broker  # noqa: E402
from harness import Daemon, merged  # noqa: E402
from replicas import SPACE, Load, Replicas  # noqa: E402
from simulation import Layout, Times, at_shard_size, simulate  # noqa: E402

NO_BROKER = 77  # ctest calls this skipped; CI has a broker
COLUMNS = ("shards", "queries", "lost", "twice", "median_ms", "predicted_median_ms", "p99_ms", "predicted_p99_ms",
           "searched_ms", "merged_ms")


class Shards(Replicas):
    """A catalogue over n shards and a merge; with one shard, a daemon alone."""

    def __init__(self, broker, n_shards, n_items, delivery):
        self.n_shards = n_shards
        super().__init__(broker, n_shards, n_items, 3, config={"query": {"threads_per_search": 1, "workers": 1}})
        broker.create_topic(self.topic("partials"), 3)
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

    def close(self):
        if self.merge and self.merge.is_running():
            self.merge.stop()
        super().close()


def parts_us(load, field):
    return np.array([getattr(load.times[i], field) for i in load.sent])


def times_of(load):
    """Return the times of the first run, for the model."""
    searched_ms = parts_us(load, "searched_us") / 1000
    ways_ms = load.waits_ms() - searched_ms - parts_us(load, "queued_us") / 1000
    hop_ms = float(np.median(ways_ms)) / 2
    spread = float(np.log(searched_ms).std())
    hop_spread = float(np.log(np.maximum(ways_ms / 2, 0.01)).std()) * np.sqrt(2)
    return Times(batch_ms=0, query_ms=float(np.median(searched_ms)), spread=spread, hop_ms=hop_ms,
                 hop_spread=hop_spread)


def predict(times, n_shards, options):
    layout = Layout(shards=n_shards, merges=int(n_shards > 1), cores=os.cpu_count(), batch_max=1)
    at_size = at_shard_size(times, options.items / n_shards, options.items)
    return simulate(layout, at_size, options.rate, max(options.seconds, 200), seed=7)


def row_of(n_shards, load, predicted, options):
    waits = load.waits_ms()
    return {"workload": "shards", "shards": n_shards, "items": options.items, "method": load.method, "k": load.k,
            "queries_per_s": options.rate, "delivery": options.delivery, "cores": os.cpu_count(),
            "queries": len(load.sent), "lost": len(load.lost()), "twice": len(load.twice()),
            "batch": 1, "threads": 1, "median_ms": round(float(np.median(waits)), 2),
            "p95_ms": round(float(np.percentile(waits, 95)), 2), "p99_ms": round(float(np.percentile(waits, 99)), 2),
            "predicted_median_ms": round(predicted.quantile(0.5), 2),
            "predicted_p99_ms": round(predicted.quantile(0.99), 2),
            "searched_ms": round(float(np.median(parts_us(load, "searched_us"))) / 1000, 3),
            "merged_ms": round(float(np.median(parts_us(load, "merged_us"))) / 1000, 3)}


def show(row, options, is_first):
    if options.json:
        print(json.dumps(row), flush=True)
        return
    edge, gap = ("| ", " | ") if options.markdown else ("", "  ")
    if is_first:
        print(edge + gap.join(COLUMNS) + edge.rstrip(), flush=True)
        if options.markdown:
            print("|" + "---|" * len(COLUMNS), flush=True)
    print(edge + gap.join(str(row[c]) for c in COLUMNS) + edge.rstrip(), flush=True)


def measure(broker, n_shards, options):
    """Return the load of one layout, which is complete."""
    system = Shards(broker, n_shards, options.items, options.delivery)
    try:
        system.open(60 + options.items / 5000)
        with Load(system, options.rate, method=options.method) as load:
            load.wait_sent(int(options.rate * options.seconds))
            load.finish(60)
    finally:
        system.close()
    return load


def parse():
    parser = argparse.ArgumentParser(prog="ops/bench shards")
    parser.add_argument("--items", type=int, default=200000)
    parser.add_argument("--rate", type=float, default=20, help="queries per second")
    parser.add_argument("--seconds", type=float, default=30, help="of load on each layout")
    parser.add_argument("--method", default="default", help=f"of space {SPACE}, which is recjpq")
    parser.add_argument("--shards", type=int, nargs="+", default=[2, 4], help="layouts; one daemon always comes first")
    parser.add_argument("--delivery", choices=("at_least_once", "exactly_once"), default="at_least_once")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


def main():
    options, rows, times = parse(), [], None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that daemons and broker end too
    reason = kafka_broker.why_unavailable()
    if reason:
        print(f"shards: no broker: {reason}", file=sys.stderr)
        sys.exit(1 if data.CI else NO_BROKER)
    with kafka_broker.KafkaBroker(properties={"group.initial.rebalance.delay.ms": 0}) as broker:
        measure(broker, 1, options)  # does not count: a broker that has just started is slow
        for n_shards in [1, *options.shards]:
            load = measure(broker, n_shards, options)
            times = times or times_of(load)
            rows.append(row_of(n_shards, load, predict(times, n_shards, options), options))
            show(rows[-1], options, len(rows) == 1)
    sys.exit(any(row["lost"] or row["twice"] for row in rows))


main()
