#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The simulation of shards and merges beside results of queueing theory that are known exactly."""

import subprocess
import sys
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np

OPS = Path(__file__).resolve().parents[2] / "ops"
sys.path.insert(0, str(OPS))
import simulation  # noqa: E402
from simulation import Layout, Times, Trouble, simulate  # noqa: E402

NO_HOP = Times(batch_ms=0, query_ms=1, spread=0, hop_ms=0, hop_spread=0, join_ms=0)


def mean_ms(outcome):
    return float(outcome.latency_ms[outcome.warm_up:].mean())


class Theory(unittest.TestCase):
    def test_one_server_waits_as_pollaczek_and_khinchine_say(self):
        one_by_one = Layout(merges=0, batch_max=1)
        for load in (0.3, 0.6, 0.8):
            for spread in (0.0, 0.5):
                times = replace(NO_HOP, spread=spread)
                mean, square = np.exp(spread**2 / 2), np.exp(2 * spread**2)
                rate = 1000 * load / mean
                wait = rate / 1000 * square / (2 * (1 - load))
                seen = mean_ms(simulate(one_by_one, times, rate, 400_000 / rate))
                self.assertAlmostEqual(seen / (mean + wait), 1, delta=0.06, msg=(load, spread))

    def test_two_workers_wait_as_in_m_m_2(self):
        rng = np.random.default_rng(5)
        arrivals = np.cumsum(rng.exponential(1 / 1.4, 400_000))  # a load of 0.7 on two workers
        drawn = iter(rng.exponential(1, 400_000).tolist())
        done, busy = simulation.serve(arrivals, 2, 1, 0, 1, drawn.__next__)
        expected = 1 / (1 - 0.7**2)  # mean time in an M/M/2 queue, in service times
        self.assertAlmostEqual(float((done - arrivals)[20_000:].mean()) / expected, 1, delta=0.05)
        self.assertAlmostEqual(busy / arrivals[-1] / 2, 0.7, delta=0.01)

    def test_an_answer_waits_for_the_slowest_of_its_shards(self):
        times = replace(NO_HOP, spread=0.5)
        latency = simulate(Layout(shards=8), times, 1, 20_000).latency_ms
        slowest = np.exp(0.5 * np.random.default_rng(9).standard_normal((200_000, 8)).max(axis=1))
        for q in (0.5, 0.9, 0.99):
            self.assertAlmostEqual(float(np.quantile(latency, q) / np.quantile(slowest, q)), 1, delta=0.05)

    def test_a_merge_is_a_queue_with_fixed_times(self):
        arrivals = np.cumsum(np.random.default_rng(3).exponential(1 / 0.8, 400_000))
        seen = float((simulation.join(arrivals, 1.0) - arrivals)[20_000:].mean())
        self.assertAlmostEqual(seen / (1 + 0.8 / (2 * 0.2)), 1, delta=0.06)


class Batches(unittest.TestCase):
    def test_what_waits_is_searched_together(self):
        done, busy = simulation.serve(np.array([0.0, 1.0, 2.0, 50.0]), 1, 32, 10, 1, lambda: 1.0)
        self.assertEqual(done.tolist(), [11.0, 23.0, 23.0, 61.0])
        self.assertEqual(busy, 34.0)

    def test_a_batch_has_no_more_than_its_maximum(self):
        done, _ = simulation.serve(np.zeros(5), 1, 2, 10, 0, lambda: 1.0)
        self.assertEqual(done.tolist(), [10, 10, 20, 20, 30])


class Troubles(unittest.TestCase):
    layout = Layout(shards=4, replicas=2, merges=2)

    def test_a_lost_shard_costs_the_wait_and_completeness(self):
        outcome = simulate(self.layout, NO_HOP, 50, 20, Trouble(lost_shards=1, wait_ms=150))
        self.assertFalse(outcome.complete.any())
        self.assertAlmostEqual(outcome.quantile(0.5), 151, delta=1)

    def test_queries_of_a_dead_replica_wait_for_the_group(self):
        trouble = Trouble(dead_at_ms=5000, dead_for_ms=3000, wait_ms=1e9)
        latency = simulate(self.layout, NO_HOP, 200, 20, trouble).latency_ms
        self.assertGreater(latency.max(), 2900)
        self.assertLess(latency.max(), 3400)
        self.assertAlmostEqual(float((latency > 100).mean()), 0.5 * 3 / 20, delta=0.03)

    def test_hedging_hides_stragglers_and_doubles_the_load(self):
        slow = Trouble(straggler_share=0.01, straggler_factor=100)
        plain, hedged = (simulate(self.layout, NO_HOP, 20, 500, replace(slow, hedge=h)) for h in (False, True))
        self.assertGreater(plain.quantile(0.99), 50)
        self.assertLess(hedged.quantile(0.99), 10)
        self.assertAlmostEqual(hedged.search_load / plain.search_load, 2, delta=0.3)

    def test_cores_that_daemons_share_do_all_the_work(self):
        alone = simulate(Layout(shards=4, merges=1), NO_HOP, 100, 50)
        shared = simulate(Layout(shards=4, merges=1, cores=2), NO_HOP, 100, 50)
        self.assertAlmostEqual(shared.search_load / alone.search_load, 2, delta=0.1)
        self.assertGreater(shared.quantile(0.5), alone.quantile(0.5))


class Command(unittest.TestCase):
    def simulate(self, *words):
        return subprocess.run([OPS / "simulate", *words], capture_output=True, text=True)

    def test_a_seed_gives_the_same_table_again(self):
        words = ("--shards", "2", "--seconds", "1", "--rate", "100", "--items", "1e6", "--json")
        first, second = self.simulate(*words), self.simulate(*words)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(first.stdout.count("\n"), 6)

    def test_overload_is_said(self):
        done = self.simulate("--shards", "1", "--replicas", "1", "--rate", "5000", "--seconds", "2", "--scenario",
                             "all is well")
        self.assertIn("OVERLOADED", done.stdout)

    def test_bad_numbers_are_refused_by_name(self):
        for words, name in ((("--rate", "0"), "--rate"), (("--wait-ms", "-1"), "--wait-ms"),
                            (("--merges", "0"), "--merges")):
            done = self.simulate(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(name, done.stderr)


if __name__ == "__main__":
    unittest.main()
