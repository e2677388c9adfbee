# SPDX-License-Identifier: Apache-2.0
"""Run a benchmark at a tiny size, and check that it reports no wrong result and that its JSON lines are complete."""
import json
import subprocess
import sys

FIELDS = {"workload", "items", "method", "k", "batch", "threads", "median_ms", "p95_ms"}


def check_memory(rows):
    """The formula promises what a catalogue takes. Cells with few items take more, as docs/scale.md says."""
    assert len(rows) == 10, rows
    for row in rows:
        promised = row["items"] * row["formula"]
        # Pages, the models and logs of fixed size are not in the formula.
        assert row["space"] == "recjpq" or abs(1e9 * row["gb"] - promised) < 8e6 + 0.1 * promised, row
        assert row["peak_gb"] >= 0.95 * row["gb"] > 0, row


def check_shards(rows):
    """The formula promises the bytes of queries, parts and answers in Kafka."""
    for row in rows:
        for topic in ("queries", "partials", "answers"):
            seen, promised = row[f"{topic}_bytes"], row[f"predicted_{topic}_bytes"]
            assert abs(seen - promised) <= 0.03 * promised, (topic, row)
        assert row["updates_per_s"] > 0 and row["answers_bytes"] > 0, row
        assert (row["partials_bytes"] > 0) == (row["shards"] > 1), row


def main(workload, program, *arguments):
    done = subprocess.run([program, "--json", *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode == 77:
        sys.exit(77)
    assert done.returncode == 0, f"exit status {done.returncode}"
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows, "no rows"
    if workload == "memory":
        return check_memory(rows)
    for row in rows:
        missing = FIELDS - row.keys()
        assert not missing, f"{row['method']}: missing {missing}"
        assert row["workload"] == workload, row
        assert 0 < row["median_ms"] <= row["p95_ms"], row
    if workload == "shards":
        check_shards(rows)
    judged = [row for row in rows if row.get("exact")]
    unjudged = ("apply", "scale", "threads", "fairness", "expiry", "filters_live", "merge", "replicas",
                "shards", "rollout")
    assert judged or workload in unjudged, "no method was found exact"
    print(f"{len(rows)} rows, {len(judged)} of them checked exact")


main(*sys.argv[1:])
