#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what clients notice when daemons of one group stop, die and are added, on a real broker under open-loop load.

    restarts     each of three daemons is stopped and started again, in turn
    kills        the same with kill -9
    more         one daemon becomes four

ops/bench replicas runs it. A wait is the time from sending a query to its first answer. The exit status is 1 if a query
was lost, or answered twice without a kill.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "broker")]
import data  # noqa: E402
import kafka_broker  # noqa: E402
from replicas import Load, Replicas  # noqa: E402
from result_rows import ResultRows  # noqa: E402

# As in production: the broker's own limits, and the daemon's default session time-out.
BROKER = {"group.initial.rebalance.delay.ms": 3000, "group.min.session.timeout.ms": 6000}
SESSION_MS = 6000
NO_BROKER = 77  # ctest calls this skipped; CI has a broker
DAEMONS, MOST_DAEMONS = 3, 4
COLUMNS = ("case", "queries", "lost", "twice", "median_ms", "p95_ms", "p99_ms", "longest_ms")


def restart(load, replicas, options, end):
    """End each daemon and start it again, with a pause in between."""
    for i in range(DAEMONS):
        time.sleep(options.seconds)
        end(replicas.daemons[i])
        replicas.start([i], options.start_timeout)
    time.sleep(options.seconds)


def restarts(load, replicas, options):
    restart(load, replicas, options, lambda daemon: daemon.stop())


def kills(load, replicas, options):
    restart(load, replicas, options, lambda daemon: daemon.kill())


def more(load, replicas, options):
    for i in range(1, MOST_DAEMONS):
        time.sleep(options.seconds)
        replicas.start([i], options.start_timeout)
    time.sleep(options.seconds)


def calm(load, replicas, options):
    time.sleep(3 * options.seconds)


CASES = {"calm": calm, "restarts": restarts, "kills": kills, "more": more}


def row_of(case, load, options):
    waits = load.waits_ms()
    at = {f"p{p}_ms": round(float(np.percentile(waits, p)), 2) for p in (95, 99)}
    return {"workload": "replicas", "case": case, "items": options.items, "method": load.method, "k": load.k,
            "batch": 1, "threads": os.cpu_count(), "daemons": DAEMONS if case != "more" else MOST_DAEMONS,
            "queries_per_s": options.rate, "session_ms": SESSION_MS, "queries": len(load.sent),
            "lost": len(load.lost()), "twice": len(load.twice()), "median_ms": round(float(np.median(waits)), 2), **at,
            "longest_ms": round(float(waits.max()), 2)}


def measure(replicas, case, options):
    n_started = 1 if case == "more" else DAEMONS
    replicas.start(range(n_started), options.start_timeout)
    with Load(replicas, options.rate) as load:
        CASES[case](load, replicas, options)
        load.finish(60)
    row = row_of(case, load, options)
    for daemon in replicas.daemons:
        if daemon.is_running():
            daemon.stop()
    return row


def is_right(row):
    return row["lost"] == 0 and (row["twice"] == 0 or row["case"] == "kills")


def parse():
    parser = argparse.ArgumentParser(prog="ops/bench replicas")
    parser.add_argument("--items", type=int, default=100000)
    parser.add_argument("--rate", type=float, default=100, help="queries per second")
    parser.add_argument("--seconds", type=float, default=5, help="between two events")
    parser.add_argument("--methods", nargs="+", choices=CASES, default=list(CASES), help="the cases")
    parser.add_argument("--partitions", type=int, default=12, help="of the query topic")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.start_timeout = 60 + options.items / 5000
    return options


def main():
    options, rows = parse(), []
    table = ResultRows(COLUMNS, options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that daemons and broker end too
    reason = kafka_broker.why_unavailable()
    if reason:
        print(f"replicas: no broker: {reason}", file=sys.stderr)
        sys.exit(1 if data.CI else NO_BROKER)
    with kafka_broker.KafkaBroker(properties=BROKER) as broker:
        replicas = Replicas(broker, MOST_DAEMONS, options.items, options.partitions, SESSION_MS)
        try:
            for case in options.methods:
                rows.append(measure(replicas, case, options))
                table.show(rows[-1])
        finally:
            replicas.close()
    sys.exit(not all(is_right(row) for row in rows))


main()
