#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of sluicectl bench: what it sends, what it counts, and that a pause of the daemon counts for every query."""

import json
import signal
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree
from pathlib import Path

import numpy as np

import data
import harness
import models
from harness import Daemon, eventually
from wire import pb


def setUpModule():
    """Start one daemon with the embedded broker, and 500 items."""
    global daemon, folder, rng, topic
    temporary = tempfile.TemporaryDirectory(prefix="sluice-bench-")
    unittest.addModuleCleanup(temporary.cleanup)
    folder = Path(temporary.name)
    rng = data.generator("queries to bench")
    models.random_vectors(rng, folder / "films.safetensors", "dot", 3)
    models.random_vectors(rng, folder / "songs.safetensors", "cosine", 5)
    daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"}, "attributes": {"price": "number"},
                     "spaces": {name: {"model": f"{name}.safetensors"} for name in ("films", "songs")},
                     "catalogue": {"kafka": {"fetch.wait.max.ms": 1}}}, folder)
    unittest.addModuleCleanup(daemon.kill)
    daemon.start().wait_ready()
    np.save(folder / "items.npy", rng.standard_normal((500, 3)).astype(np.float32))
    daemon.ctl("load", str(folder / "items.npy"), "--space", "films")
    topic = harness.TopicReader(daemon.status()["kafka"]["bootstrap"], "sluice.queries")


def n_answers():
    return daemon.status()["counters"]["answers"]


def answers_nothing():
    """Does the daemon answer no query for half a second?"""
    answers = n_answers()
    time.sleep(0.5)
    return n_answers() == answers


class Bench(unittest.TestCase):
    def command(self, *words):
        patient = ["--timeout-ms", str(int(10000 * harness.SLOWNESS))]  # unless the words say otherwise
        return [harness.build_dir() / "sluicectl", "--config", daemon.config_path, "bench", *patient, *map(str, words)]

    def bench(self, *words, code=0):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=120 * harness.SLOWNESS)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def measure(self, *words, code=0):
        return json.loads(self.bench("--json", *words, code=code)[0])

    @staticmethod
    def sent():
        """Return the queries that were sent since the last call."""
        return [pb.Query.FromString(record.value) for record in topic.read()]

    def start(self, *words):
        """Start a load, and wait until the daemon has answered some of it."""
        eventually(answers_nothing, "the end of the answers to the load before", 60)
        answers = n_answers()
        process = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        eventually(lambda: n_answers() > answers + 20, "answers", 60)
        return process


class Measures(Bench):
    def test_every_query_is_sent_and_answered_once(self):
        plot = folder / "plot.svg"
        result = self.measure("--space", "films", "--rate", 200, "--count", 100, "--k", 7, "--plot", plot)
        self.assertEqual([result[name] for name in ("sent", "answered", "missing", "errors", "twice", "interrupted")],
                         [100, 100, 0, {}, 0, False])
        self.assertGreaterEqual(result["sent_s"], 0.49)  # the last one is due after 99 / 200 s
        values = list(result["latency_us"].values())
        self.assertEqual(values, sorted(values))
        self.assertGreater(values[0], 0)
        self.assertEqual(sum(row["count"] for row in result["histogram"]), 100)
        self.assertEqual(xml.etree.ElementTree.parse(plot).getroot().tag, "{http://www.w3.org/2000/svg}svg")
        text, _ = self.bench("--space", "films", "--count", 20, "--seed", 5)
        for words in ("100 queries/s to films, k 10, method exact", "1,000 random ones of --seed 5", "sent      20 in",
                      "answered  20; 0 with an error; 0 missing", "p99.9", "latency from"):
            self.assertIn(words, text)

    def test_a_seed_gives_the_same_queries(self):
        def vectors(*words):
            self.sent()
            result = self.measure("--space", "songs", "--count", 5, "--random", 3, *words)
            return {tuple(query.vector.values) for query in self.sent()}, result["seed"]
        first, seed = vectors()
        self.assertEqual(len(first), 3)
        self.assertEqual(vectors("--seed", seed), (first, seed))
        self.assertNotEqual(vectors("--seed", 1)[0], first)

    def test_given_queries_are_sent(self):
        rows = rng.standard_normal((4, 3)).astype(np.float32)
        np.save(folder / "rows.npy", rows)
        self.sent()
        self.measure("--space", "films", "--queries", folder / "rows.npy", "--count", 8, "--method", "brute_force")
        sent = self.sent()
        self.assertEqual({query.method for query in sent}, {"brute_force"})
        self.assertEqual({tuple(query.vector.values) for query in sent}, {tuple(row) for row in rows.tolist()})
        lines = folder / "lines.jsonl"
        lines.write_text('{"id": "dropped", "space": "films", "k": 3, "vector": [1, 0, 0]}\n\n'
                         '{"space": "songs", "vector": [1, 0, 0, 0, 1]}\n')
        self.measure("--queries", lines, "--count", 6, "--filter", "price < $1", "--parameters", "[20]")
        sent = self.sent()
        self.assertEqual({(query.space, query.k, query.filter) for query in sent},
                         {("films", 3, "price < $1"), ("songs", 10, "price < $1")})
        self.assertEqual(len({query.id for query in sent}), 7)
        result = self.measure("--queries", lines, "--count", 2, "--show", "price", "--boost", "0.5:price",
                              "--mmr", "0.3:20")
        self.assertEqual(result["fields"], {"attributes": ["price"], "mmr": {"diversity": 0.3, "candidates": 20},
                                            "boosts": [{"weight": 0.5, "attribute": "price"}]})
        for query in self.sent():
            self.assertEqual((query.attributes, query.mmr.candidates, query.boosts[0].weight), (["price"], 20, 0.5))

    def test_a_plot_that_cannot_be_written_is_refused_before_the_first_query(self):
        self.sent()
        _, said = self.bench("--space", "films", "--count", 5, "--plot", folder / "absent" / "plot.svg", code=1)
        self.assertIn("absent/plot.svg\" cannot be written: No such file", said)
        plot = folder / "not-drawn.svg"
        self.bench("--space", "nowhere", "--count", 5, "--plot", plot, code=2)
        self.assertFalse(plot.exists())
        self.assertEqual(self.sent(), [])

    def test_a_plot_does_not_replace_the_queries(self):
        queries, link = folder / "mine.npy", folder / "mine.svg"
        np.save(queries, np.eye(3, dtype=np.float32))
        link.hardlink_to(queries)
        before = queries.read_bytes()
        self.sent()  # those of other tests
        for plot in (queries, link):
            _, said = self.bench("--space", "films", "--count", 5, "--queries", queries, "--plot", plot, code=2)
            self.assertIn(f"--plot: {plot} has the queries: name another file", said)
            self.assertEqual(queries.read_bytes(), before)
        self.assertEqual(self.sent(), [])

    def test_errors_are_counted_by_their_code(self):
        lines = folder / "errors.jsonl"
        lines.write_text('{"space": "films", "vector": [1, 0, 0]}\n{"space": "nowhere", "vector": [1]}\n'
                         '{"space": "films", "vector": [1, 0]}\n')
        result = self.measure("--queries", lines, "--count", 9, code=1)
        self.assertEqual((result["answered"], result["errors"]), (3, {"BAD_QUERY": 3, "UNKNOWN_SPACE": 3}))
        text, said = self.bench("--queries", lines, "--count", 9, code=1)
        self.assertIn("3 UNKNOWN_SPACE", text)
        self.assertIn("6 of 9 queries were not answered, or with an error", said)

    def test_values_that_are_no_answers_are_counted(self):
        process = self.start("--json", "--space", "films", "--rate", 100, "--count", 300)
        others = harness.Kcat(daemon.status()["kafka"]["bootstrap"])
        others.produce("sluice.answers", [(b"a", b"\xff\xff"), (b"b", b'{"id": "of another client"}')])
        text, said = process.communicate(timeout=60 * harness.SLOWNESS)
        result = json.loads(text)
        self.assertEqual((result["answered"], result["unreadable"]), (300, 1), said)

    def test_a_wrong_command_sends_nothing(self):
        self.sent()
        lines = folder / "wrong.jsonl"
        lines.write_text('{"vector": [1, 0, 0]}\n{"vektor": [1]}\n')
        (folder / "shown.jsonl").write_text('{"space": "films", "vector": [1, 0, 0], "attributes": ["a"]}\n')
        np.save(folder / "wide.npy", np.zeros((2, 4), np.float32))
        for words, code, says in (
                ([], 2, "--space NAME, of films, songs"), (["--space", "x"], 2, 'no space "x"'),
                (["--space", "films", "--rate", "0"], 2, "--rate expects"),
                (["--space", "films", "--count", "5", "--duration-s", "5"], 2, "not both"),
                (["--space", "films", "--queries", lines], 1, "wrong.jsonl, line 2: "),
                (["--space", "films", "--queries", folder / "wide.npy"], 1, "films needs 3"),
                (["--space", "films", "--queries", lines, "--seed", "1"], 2, "leave them out"),
                (["--queries", folder / "shown.jsonl", "--show", "b"], 2, "line 1: the query has a field attributes of its own"),
                (["--space", "films", "--parameters", "[1]"], 2, "--filter")):
            self.assertIn(says, self.bench(*words, code=code)[1])
        self.assertEqual(self.sent(), [])

    def test_a_load_that_sluicectl_cannot_make_is_said(self):
        result = self.measure("--space", "films", "--rate", 1000000, "--count", 20000)
        self.assertIn("sluicectl itself was the limit", result["doubt"])


class Pauses(Bench):
    def test_a_pause_counts_for_every_query_that_it_delays(self):
        process = self.start("--json", "--space", "films", "--rate", 100, "--count", 600)
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(4)  # most of the six seconds that the load takes
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        result = json.loads(process.communicate(timeout=120 * harness.SLOWNESS)[0])
        self.assertEqual(result["answered"], 600)
        # Some 400 queries were due in the pause. If each waited for the answer before it, only one would have been late.
        self.assertGreater(result["latency_us"]["p90"], 200000)
        self.assertGreater(result["latency_us"]["max"], 1000000)

    def test_ctrl_c_ends_it_with_what_was_measured(self):
        process = self.start("--json", "--space", "films", "--rate", 100, "--duration-s", 3600)
        process.send_signal(signal.SIGINT)
        text, said = process.communicate(timeout=60 * harness.SLOWNESS)
        self.assertEqual(process.returncode, 0, said)
        result = json.loads(text)
        self.assertTrue(result["interrupted"])
        self.assertGreater(result["answered"], 10)
        self.assertLess(result["sent"], 360000)

    def test_answers_that_do_not_come_are_missing(self):
        process = self.start("--json", "--space", "films", "--rate", 200, "--count", 2000, "--timeout-ms", 300)
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            text, said = process.communicate(timeout=120 * harness.SLOWNESS)
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        result = json.loads(text)
        self.assertEqual((process.returncode, result["sent"]), (1, 2000), said)
        self.assertGreater(result["missing"], 0)
        self.assertEqual(result["missing"] + result["answered"], 2000)


if __name__ == "__main__":
    data.main()
