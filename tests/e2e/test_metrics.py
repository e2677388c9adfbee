#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of /metrics as Prometheus reads it: the format, the histograms, and what a known workload counts."""

import json
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import data
import harness
import models
import promtool
import safetensors_io
from harness import Daemon, eventually

N_QUERIES = 5


def labels_of(text):
    return dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text or ""))


def parse(body):
    """Return {(name, labels): value} of a page in the text format; labels are a frozenset of pairs."""
    values = {}
    for name, labels, value in re.findall(r"^(\w+)(\{.*\})? (\S+)$", body, re.MULTILINE):
        key = name, frozenset(labels_of(labels).items())
        assert key not in values, f"twice: {key}"
        values[key] = float(value)
    return values


class Metrics(unittest.TestCase):
    """One daemon with three items, which has answered N_QUERIES queries for each of two methods."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice-metrics-")
        cls.addClassCleanup(cls.folder.cleanup)
        model = Path(cls.folder.name) / "dot.safetensors"
        safetensors_io.write(model, {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
        cls.daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                             "kafka": {"statistics.interval.ms": 100}, "seen": {"topic": "sluice.seen"},
                             "spaces": {"films": {"model": str(model)}, "books": {"model": str(model)}}},
                            cls.folder.name)
        cls.addClassCleanup(cls.daemon.kill)
        cls.daemon.start()
        cls.daemon.wait_ready()
        for i in range(3):
            cls.daemon.ctl("put", f"film-{i}", json.dumps({"parts": {"films": {"vector": [i, 1]}}}))
        for method in ("exact", "brute_force"):
            for _ in range(N_QUERIES):
                cls.query(method=method)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    @classmethod
    def query(cls, code=0, **fields):
        query = {"space": "films", "k": 2, "vector": [1, 0], **fields}
        return cls.daemon.ctl("query", "--format", "json", "--json", json.dumps(query), code=code)

    def page(self):
        status, body = self.daemon.get("/metrics")
        self.assertEqual(status, 200)
        return body

    def value(self, metric, **labels):
        """Return the value of one series; None if it is not there."""
        return parse(self.page()).get((metric, frozenset(labels.items())))

    def test_promtool_finds_nothing(self):
        self.assertEqual(promtool.run("check", "metrics", text=self.page()), (0, ""))

    def test_promtool_would_find_something(self):
        status, said = promtool.run("check", "metrics", text="# TYPE sluice_some counter\nsluice_some 1\n")
        self.assertNotEqual((status, said), (0, ""))

    def test_histograms_are_cumulative(self):
        histograms = {}
        for (name, labels), value in parse(self.page()).items():
            if name.endswith("_bucket"):
                labels = dict(labels)
                bound = float(labels.pop("le"))
                histograms.setdefault((name.removesuffix("_bucket"), frozenset(labels.items())), {})[bound] = value
        self.assertGreaterEqual(len(histograms), 5)
        values = parse(self.page())
        for (name, labels), buckets in histograms.items():
            counts = [buckets[bound] for bound in sorted(buckets)]
            self.assertEqual(counts, sorted(counts), name)
            self.assertEqual(counts[-1], values[f"{name}_count", labels], name)
            self.assertEqual(sorted(buckets)[-1], float("inf"))

    def test_searches_are_counted_by_space_and_method(self):
        for method in ("exact", "brute_force"):
            where = {"space": "films", "generation": "1", "method": method}
            self.assertEqual(self.value("sluice_search_seconds_count", **where), N_QUERIES)
            self.assertEqual(self.value("sluice_searched_queries_total", **where), N_QUERIES)
            self.assertEqual(self.value("sluice_searched_proven_total", **where), N_QUERIES)
            self.assertEqual(self.value("sluice_searched_items_total", **where), 3 * N_QUERIES)
        where = {"space": "films", "generation": "1", "method": "brute_force"}
        self.assertEqual(self.value("sluice_searched_scored_items_total", **where), 3 * N_QUERIES)
        self.assertIsNone(self.value("sluice_search_seconds_count", space="books", generation="1", method="exact"))

    def test_an_answer_is_measured_when_a_broker_has_it(self):
        eventually(lambda: self.value("sluice_answer_seconds_count") == 2 * N_QUERIES, "the last delivery report")
        self.assertGreater(self.value("sluice_answer_seconds_sum"), 0)
        latency = self.daemon.status()["latency_since_start_us"]
        self.assertEqual(latency["answer"]["count"], 2 * N_QUERIES)
        self.assertEqual(latency["search"]["count"], 2 * N_QUERIES)

    def test_errors_have_their_codes(self):
        before = parse(self.page())
        self.query(code=1, method="no_such_method")
        self.query(code=1, k=0)
        self.query(code=1, k=0)
        for code, more in (("BAD_QUERY", 2), ("UNKNOWN_METHOD", 1), ("INTERNAL", 0)):
            key = "sluice_error_answers_total", frozenset({("code", code)})
            self.assertEqual(parse(self.page())[key] - before[key], more, code)

    def test_dead_letters_have_their_reasons(self):
        before = {reason: self.value("sluice_dead_letters_total", reason=reason)
                  for reason in ("unreadable", "unusable", "unknown_space", "too_large", "no_reply")}
        self.assertNotIn(None, before.values())
        bootstrap = self.daemon.status()["kafka"]["bootstrap"]
        for value in (b"{", b"{", b'{"parts": {"films": {"vector": [1]}}}'):
            subprocess.run(["kcat", "-b", bootstrap, "-P", "-t", "sluice.catalogue", "-k", "bad"], input=value,
                           check=True, timeout=60 * harness.SLOWNESS)
        for topic in "sluice.catalogue", "sluice.queries":
            subprocess.run(["kcat", "-b", bootstrap, "-P", "-t", topic, "-k", "bad", "-X", "message.max.bytes=8388608"],
                           input=b"{" + b" " * (4 << 20), check=True, timeout=60 * harness.SLOWNESS)
        for reason, more in (("unreadable", 2), ("unusable", 1), ("too_large", 2)):
            eventually(lambda r=reason, n=more: self.value("sluice_dead_letters_total", reason=r) == before[r] + n,
                       reason)

    def test_memory_store_and_epoch(self):
        status = self.daemon.status()
        self.assertGreater(self.value("process_resident_memory_bytes"), 1 << 20)
        self.assertGreater(status["memory_bytes"], 1 << 20)
        self.assertGreater(self.value("process_open_fds"), 3)
        self.assertGreater(self.value("process_cpu_seconds_total"), 0)
        self.assertGreater(self.value("sluice_store_map_bytes"), self.value("sluice_store_used_bytes"))
        self.assertEqual(self.value("sluice_store_used_bytes"), status["store_bytes"])
        self.assertGreater(self.value("sluice_seen_store_used_bytes"), 0)
        free = shutil.disk_usage(self.folder.name).free
        self.assertAlmostEqual(self.value("sluice_disk_free_bytes") / free, 1, delta=0.5)
        self.assertAlmostEqual(status["disk_free_bytes"] / free, 1, delta=0.5)

        def is_new():
            self.daemon.ctl("put", "film-0", json.dumps({"parts": {"films": {"vector": [0, 1]}}}))
            return self.value("sluice_epoch_age_seconds") < before
        eventually(lambda: self.value("sluice_epoch_age_seconds") > 1, "the epoch to age")
        before = self.value("sluice_epoch_age_seconds")
        eventually(is_new, "a new epoch")

    def test_without_canaries_nothing_is_said_of_them(self):
        self.assertIn("# TYPE sluice_canary_age_seconds gauge\n", self.page())
        self.assertIsNone(self.value("sluice_canary_age_seconds"))
        self.assertEqual(self.value("sluice_canary_visible_seconds_count"), 0)

    def test_latencies_since_the_start_are_beside_those_of_the_last_minutes(self):
        status = self.daemon.status()
        self.assertEqual(set(status["latency_us"]), set(status["latency_since_start_us"]))
        self.assertEqual(status["latency_since_start_us"]["queued"]["count"], 2 * N_QUERIES)
        self.assertLessEqual(status["latency_us"]["queued"]["count"], 2 * N_QUERIES)
        shown = self.daemon.ctl("status")
        self.assertIn("latency since the start: p50, p95, p99\n", shown)
        self.assertRegex(shown, r"epoch \d+, published .* ago\n")

    def test_statistics_of_the_clients(self):
        for client in ("catalogue", "seen", "queries", "answers", "dead_letters"):
            eventually(lambda c=client: self.value("sluice_kafka_connected", client=c, broker="1") == 1
                       and self.value("sluice_kafka_round_trip_seconds", client=c, broker="1") is not None, client)
            self.assertEqual(self.value("sluice_kafka_request_timeouts_total", client=client, broker="1"), 0)
            self.assertEqual(self.value("sluice_kafka_queued_messages", client=client), 0)


class Filters(unittest.TestCase):
    YEARS = {"alien": 1979, "heat": 1995, "ran": 1985}

    def test_they_are_counted_by_how_they_were_searched(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-filters-")
        self.addCleanup(folder.cleanup)
        dot, mol = (Path(folder.name) / f"{name}.safetensors" for name in ("dot", "mol"))
        safetensors_io.write(dot, {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
        models.random_mol(data.generator(self.id()), mol, dq=2, dx=2)
        daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                         "attributes": {"year": "integer"},
                         "spaces": {"films": {"model": str(dot)}, "learned": {"model": str(mol)}}}, folder.name)
        self.addCleanup(daemon.kill)
        daemon.start()
        daemon.wait_ready()
        for i, (key, year) in enumerate(self.YEARS.items()):
            parts = {space: {"vector": [i, 1]} for space in ("films", "learned")}
            daemon.ctl("put", key, json.dumps({"parts": parts, "attributes": {"year": year}}))
        # The method's own search, the same for all items, and just the items: fewer than average(50) would choose.
        some, all_, none = "year < 1990", "has(year)", ""
        for space, method, text, n in (("films", "exact", some, 3), ("films", "exact", all_, 2),
                                       ("films", "exact", none, 1), ("learned", "average(50)", some, 4),
                                       ("learned", "average(50)", none, 1)):
            for _ in range(n):
                daemon.ctl("query", "--json", json.dumps({"space": space, "method": method, "k": 2, "vector": [1, 0],
                                                          "filter": text}))
        values = parse(daemon.get("/metrics")[1])
        for plan, n in (("masked", 3), ("all", 2), ("few", 4), ("scan", 0)):
            self.assertEqual(values["sluice_filter_plans_total", frozenset({("plan", plan)})], n, plan)
        for name, n in (("filtered_queries", 9), ("filtered_items", 9 * 3), ("filtered_admitted_items", 7 * 2 + 2 * 3),
                        ("filters_evaluated", 3), ("filters_patched", 0), ("filters_known", 6)):
            self.assertEqual(values[f"sluice_{name}_total", frozenset()], n, name)
        daemon.stop()


class Canaries(unittest.TestCase):
    def test_they_are_measured_from_the_topic_to_the_epoch(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-canaries-")
        self.addCleanup(folder.cleanup)
        model = Path(folder.name) / "dot.safetensors"
        safetensors_io.write(model, {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
        daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                         "spaces": {"films": {"model": str(model)}}, "canary": {"interval_ms": 20}}, folder.name)
        self.addCleanup(daemon.kill)
        began = time.monotonic()
        daemon.start()
        daemon.wait_ready()

        def value(name):
            return parse(daemon.get("/metrics")[1])[name, frozenset()]
        eventually(lambda: value("sluice_canary_visible_seconds_count") > 10, "canaries")
        passed_s = time.monotonic() - began
        self.assertLess(value("sluice_canary_visible_seconds_sum"), passed_s)  # one at a time
        self.assertLess(value("sluice_canary_age_seconds"), time.monotonic() - began)
        self.assertGreater(daemon.status()["latency_since_start_us"]["canary"]["count"], 10)
        for name in ("sluice_items", "sluice_items_applied_total", "sluice_items_deleted_total"):
            self.assertEqual(value(name), 0, name)
        daemon.stop()


if __name__ == "__main__":
    data.main()
