#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what a rollout of a new model costs the queries that are answered meanwhile, on a real broker under open-loop
load, and check the answers.

    idle         nothing happens: what the other rows are compared with
    fill         the new generation's parts are in the store already, and its model is added
    apply        the model is there already, and a new generation's parts arrive: all at once, in one transaction
    switch       sluicectl switches to the new generation and back; the time is that of the slowest
    switch_at_once  sluicectl switches as soon as those parts are there: the daemon builds their index first
    retire       the former generations are retired: until their parts are deleted, and their memory is free

With --derived, the model is one of mol whose networks alone change, and in place of fill, apply and switch_at_once:

    derive       the new model is added, and the daemon fills the generation from the vectors in its store

With --apart, the daemon has half of the cores, and the broker and the clients have the others, so they do not take each
other's time.

ops/bench rollout runs it. A wait is the time from sending a query to its answer; the daemon's part of it is from the
query's arrival there to the end of its search. The exit status is 1 if a query was lost or answered twice, or if an
answer of a sample is not that of the generation that it names, or if memory or parts of a retired generation are left.
With --derived, the scores of an answer's hits are checked, and no parts are deleted.
"""

import argparse
import contextlib
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
from harness import eventually  # noqa: E402
from replicas import SPACE, Load  # noqa: E402
from result_rows import ResultRows  # noqa: E402
from rollout_catalogues import Derived, Retrained, part_name  # noqa: E402

NO_BROKER = 77  # ctest calls this skipped; CI has a broker
COLUMNS = ("case", "took_s", "queries", "lost", "twice", "wrong", "median_ms", "p99_ms", "p99_ratio", "daemon_p99_ms",
           "daemon_p99_ratio", "anonymous_mib", "anonymous_ratio")
SAMPLE = 20           # answers that are checked for each case
SHORTEST_S = 1        # a shorter case is measured by the queries of this time
MEMORY_ALLOWED = 1.1  # after the retirement, of what there was before
MEMORY_SLACK_MIB = 8  # of a small catalogue's process, which is no data


class Answers(Load):
    """Load that keeps what it needs to judge."""

    def __init__(self, *arguments, **more):
        self.queries, self.answers = {}, {}
        super().__init__(*arguments, **more)

    def _make(self, query_id):
        self.queries[query_id] = super()._make(query_id)
        return self.queries[query_id]

    def _note(self, answer):
        super()._note(answer)
        self.answers[answer.id] = answer


class Window:
    """A stretch of time, and the queries that were sent in it."""

    def __init__(self, load):
        self.load, self.began = load, time.monotonic()
        self.took_s = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.took_s is None:
            self.took_s = time.monotonic() - self.began
        time.sleep(max(0.0, SHORTEST_S - (time.monotonic() - self.began)))
        self.ended = time.monotonic()

    def ids(self):
        return [i for i, at in list(self.load.sent.items()) if self.began <= at < self.ended]


# ---- The cases, in the order of a rollout: each returns its window ----


def idle(rollout, load, options):
    with Window(load) as window:
        time.sleep(options.seconds)
    return window


def add(rollout, generation, options, *words):
    rollout.daemon.ctl("model", "add", SPACE, "--file", str(rollout.paths[generation]), *words, "--timeout-s",
                       str(options.start_timeout), timeout_s=options.start_timeout)


def derive(rollout, load, options):
    with Window(load) as window:
        add(rollout, 2, options, "--derive")
    return window


def fill(rollout, load, options):
    with Window(load) as window:
        add(rollout, 2, options)
    return window


def switch(rollout, load, options):
    """There and back, several times. The answer comes when the daemon answers with the other generation."""
    times = []
    with Window(load) as window:
        for generation in [2, 1] * options.rounds + [2]:
            began = time.monotonic()
            rollout.daemon.ctl("model", "switch", SPACE, str(generation))
            times.append(time.monotonic() - began)
            time.sleep(0.5)
        window.took_s = max(times)
    return window


def apply(rollout, load, options):
    add(rollout, 3, options)
    with Window(load) as window:
        rollout.transaction.commit_transaction(600)
        eventually(lambda: rollout.row(3)["coverage"] == 1, "the parts", options.start_timeout)
    return window


def switch_at_once(rollout, load, options):
    """As soon as the parts are there. The daemon builds their index first."""
    with Window(load) as window:
        rollout.daemon.ctl("model", "switch", SPACE, "3", timeout_s=options.start_timeout)
    return window


def retire(rollout, load, options):
    with Window(load) as window:
        for generation in rollout.GENERATIONS[:-1]:
            rollout.daemon.ctl("model", "retire", SPACE, str(generation), "--timeout-s", str(options.start_timeout),
                               timeout_s=options.start_timeout)
        window.memory_is_back = wait_for_memory(rollout)
    return window


def is_little(rollout):
    return rollout.memory_mib() <= rollout.memory_before * MEMORY_ALLOWED + MEMORY_SLACK_MIB


def wait_for_memory(rollout):
    """Return whether the daemon gives back the memory of what is gone. Its allocator does that within seconds."""
    try:
        return eventually(lambda: is_little(rollout), "the memory", 30, 0.1)
    except AssertionError:
        return False


CASES = {
    Retrained: {"idle": idle, "fill": fill, "switch": switch, "apply": apply, "switch_at_once": switch_at_once,
                "retire": retire},
    Derived: {"idle": idle, "derive": derive, "switch": switch, "retire": retire},
}


# ---- Rows ----


def row_of(case, rollout, load, window, options):
    sent = window.ids()
    ids = [i for i in sent if i in load.answers]
    if not ids:
        sys.exit(f"rollout: {case}: none of {len(sent)} queries was answered: this machine is too slow for --rate")
    waits = np.array([1000 * (load.answered[i][0] - load.sent[i]) for i in ids])
    in_daemon = np.array([load.times[i].queued_us + load.times[i].searched_us for i in ids]) / 1000
    sample = data.generator(case).permutation(ids)[:SAMPLE]
    wrong = [i for i in sample if not rollout.is_right(load.queries[i], load.answers[i])]
    at = {f"p{p}_ms": round(float(np.percentile(waits, p)), 2) for p in (95, 99)}
    return {"workload": "rollout", "case": case, "items": options.items, "method": load.method, "k": load.k, "batch": 1,
            "threads": os.cpu_count(), "queries_per_s": options.rate, "took_s": round(window.took_s, 3),
            "queries": len(sent), "lost": len(sent) - len(ids), "twice": sum(len(load.answered[i]) > 1 for i in ids),
            "wrong": len(wrong), "checked": len(sample), "median_ms": round(float(np.median(waits)), 2), **at,
            "daemon_median_ms": round(float(np.median(in_daemon)), 3),
            "daemon_p99_ms": round(float(np.percentile(in_daemon, 99)), 3),
            "anonymous_mib": round(window.memory_mib, 1),
            "generations": sorted({load.answers[i].generation for i in ids})}


def compare(rows, rollout):
    """Say how much worse than idle each case is, and how much memory each had of that before the rollout."""
    for row in rows:
        row["p99_ratio"] = round(row["p99_ms"] / rows[0]["p99_ms"], 2)
        row["daemon_p99_ratio"] = round(row["daemon_p99_ms"] / max(rows[0]["daemon_p99_ms"], 0.001), 2)
        row["anonymous_ratio"] = round(row["anonymous_mib"] / rollout.memory_before, 2)
    return rows


# ---- The run ----


def halves_of_cores():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("rollout: --apart needs two cores")
    return set(cores[:len(cores) // 2]), set(cores[len(cores) // 2:])


def move_daemon(daemon, cores):
    """Threads that start later are where the thread is that starts them."""
    for task in Path(f"/proc/{daemon.process.pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # the thread has ended
            os.sched_setaffinity(int(task.name), cores)


def prepare(rollout, options):
    """Bring the daemon to where the rollout begins. If items get new parts, those of generation 3 wait in a transaction
    that is open."""
    rollout.start(timeout_s=options.start_timeout)
    if options.apart:
        move_daemon(rollout.daemon, options.daemon_cores)
    if options.derived:
        return
    rollout.write_parts(2)
    rollout.await_read(options.start_timeout)
    rollout.transaction = rollout.open_transaction()
    rollout.write_parts(3, rollout.transaction)


def run_cases(rollout, load, options):
    windows = {}
    rollout.memory_before = rollout.memory_mib()
    for case, run in CASES[type(rollout)].items():
        windows[case] = run(rollout, load, options)
        windows[case].memory_mib = rollout.memory_mib()
    return windows


def find_left_parts(rollout):
    """A derived generation uses the parts of the first one."""
    newest = part_name(rollout.GENERATIONS[-1]) if isinstance(rollout, Retrained) else SPACE
    left = {name for number in (0, rollout.n_items // 2, rollout.n_items - 1) for name in rollout.parts_of(number)}
    return [] if left == {newest} else [f"items have the parts {left} after the retirement"]


def find_faults(rollout, windows, rows, load):
    faults = [f"{len(load.lost())} of {len(load.sent)} queries have no answer"] if load.lost() else []
    faults += [f"{row['case']}: {row['twice']} queries were answered twice" for row in rows if row["twice"]]
    faults += [f"{row['case']}: {row['wrong']} of {row['checked']} answers are wrong" for row in rows if row["wrong"]]
    faults += [] if windows["retire"].memory_is_back else ["memory of the retired generations is not free"]
    return faults + find_left_parts(rollout)


def finish(load):
    """Wait for all answers. If the rate is too high for the machine, some do not come in time, and count as lost."""
    try:
        load.finish(60)
    except AssertionError as error:
        print(f"rollout: {error}", file=sys.stderr)


def measure(broker, options):
    """Return the rows, and what is wrong."""
    rollout = (Derived if options.derived else Retrained)(broker, options.items, options.partitions)
    try:
        prepare(rollout, options)
        with Answers(rollout, options.rate, method=options.method) as load:
            windows = run_cases(rollout, load, options)
            finish(load)
        rows = compare([row_of(case, rollout, load, w, options) for case, w in windows.items()], rollout)
        return rows, find_faults(rollout, windows, rows, load)
    finally:
        rollout.close()


def parse():
    parser = argparse.ArgumentParser(prog="ops/bench rollout")
    parser.add_argument("--derived", action="store_true", help="a generation that is derived from another one, of mol")
    parser.add_argument("--items", type=int, help="default: 2200000; with --derived, 674044")
    parser.add_argument("--rate", type=float, help="queries per second; default: 200; with --derived, 40")
    parser.add_argument("--seconds", type=float, default=20, help="of the measurement without a rollout")
    parser.add_argument("--rounds", type=int, default=3, help="how often to switch there and back")
    parser.add_argument("--method", help=f"default: {Retrained.METHOD}; with --derived, {Derived.METHOD}")
    parser.add_argument("--partitions", type=int, default=3, help="of the query topic")
    parser.add_argument("--apart", action="store_true", help="give the daemon cores of its own")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.items = options.items or (674044 if options.derived else 2200000)
    options.rate = options.rate or (40 if options.derived else 200)
    options.method = options.method or (Derived if options.derived else Retrained).METHOD
    options.start_timeout = 120 + options.items // 2000
    return options


def main():
    options = parse()
    if options.apart:
        options.daemon_cores, others = halves_of_cores()
        os.sched_setaffinity(0, others)  # of this process, and of all that it starts
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that daemon and broker end too
    reason = kafka_broker.why_unavailable()
    if reason:
        print(f"rollout: no broker: {reason}", file=sys.stderr)
        sys.exit(1 if data.CI else NO_BROKER)
    with kafka_broker.KafkaBroker(properties={"group.initial.rebalance.delay.ms": 0}) as broker:
        rows, faults = measure(broker, options)
    table = ResultRows(COLUMNS, options)
    for row in rows:
        table.show(row)
    for fault in faults:
        print(f"rollout: {fault}", file=sys.stderr)
    sys.exit(bool(faults))


main()
