#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The simulation of shards and merges beside results of queueing theory that are known exactly."""

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np

OPS = Path(__file__).resolve().parents[2] / "ops"
sys.path[:0] = [str(OPS), str(OPS.parent / "tests" / "e2e")]
import line_chart  # noqa: E402
import record_bytes  # noqa: E402
import shared_cores  # noqa: E402
import simulation  # noqa: E402
from record_bytes import Queries  # noqa: E402
from simulation import Layout, Times, Trouble, simulate  # noqa: E402
from wire import pb  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
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


    def test_a_rebalance_holds_up_its_shard_alone(self):
        trouble = Trouble(pause_at_ms=5000, pause_for_ms=300, wait_ms=1e9)
        latency = simulate(self.layout, NO_HOP, 200, 20, trouble).latency_ms
        self.assertGreater(latency.max(), 290)
        self.assertAlmostEqual(float((latency > 20).mean()), 0.3 / 20, delta=0.006)


class SharedCores(unittest.TestCase):
    def test_work_that_shares_a_core_takes_as_long_as_theory_says(self):
        """Processor sharing: the mean is that of the work by 1 - load, whatever its distribution."""
        rng, machine, times = np.random.default_rng(4), shared_cores.Machine(1), []
        process = shared_cores.Process(threads=10**9)
        for at, work in zip(np.cumsum(rng.exponential(1 / 0.6, 20_000)), rng.lognormal(-0.5, 1, 20_000)):
            def begin(at=at, work=work):
                machine.work(process, work, lambda: times.append(machine.now - at))
            machine.at(float(at), begin)
        machine.run()
        self.assertAlmostEqual(np.mean(times[1000:]) * (1 - 0.6), 1, delta=0.1)
        self.assertAlmostEqual(machine.busy / machine.now, 0.6, delta=0.02)

    def test_pieces_share_cores_and_none_gets_more_than_one(self):
        machine, ends = shared_cores.Machine(2), {}
        for name, ms in (("a", 1), ("b", 3), ("c", 3)):
            machine.work(shared_cores.Process(), ms, lambda name=name: ends.setdefault(name, machine.now))
        machine.run()
        # Three on two cores until a ends at 1.5; then each of the others has a core for the 2 ms left.
        self.assertEqual({name: round(end, 9) for name, end in ends.items()}, {"a": 1.5, "b": 3.5, "c": 3.5})

    def test_a_process_does_one_thing_after_the_other(self):
        machine, process, ends = shared_cores.Machine(2), shared_cores.Process(), []
        for _ in range(2):
            machine.work(process, 5, lambda: ends.append(machine.now))
        machine.run()
        self.assertEqual(ends, [5, 10])

    def test_a_stop_holds_up_its_process_alone(self):
        machine, stopped, other, ends = shared_cores.Machine(3), shared_cores.Process(2), shared_cores.Process(), {}
        for name, process in (("a", stopped), ("b", stopped), ("other", other)):
            machine.work(process, 5, lambda name=name: ends.setdefault(name, machine.now))
        for moment in (1, 2):  # a stop during a stop is the same one
            machine.at(moment, lambda: machine.stop(stopped, 3))
        machine.run()
        self.assertEqual(ends, {"a": 8, "b": 8, "other": 5})

    def test_a_stop_takes_a_core_and_leaves_the_order_as_it_is(self):
        machine, process, ends = shared_cores.Machine(1), shared_cores.Process(), {}
        for name in ("a", "b", "c"):
            machine.work(process, 2, lambda name=name: ends.setdefault(name, machine.now))
        machine.work(shared_cores.Process(), 4, lambda: ends.setdefault("other", machine.now))
        machine.at(1, lambda: machine.stop(process, 1))
        machine.run()
        # Until 8 the core is shared with the other one: by a, by the stop from 1 to 3, by a until 6, by b.
        self.assertEqual(ends, {"a": 6, "other": 8, "b": 9, "c": 11})

    def test_the_broker_stops_after_so_many_records(self):
        times = replace(NO_HOP, broker_ms=0.25, stop_ms=30, stop_records=40)
        latency = simulate(Layout(merges=0, cores=4), times, 1, 1000, is_even=True).latency_ms
        self.assertAlmostEqual(float((latency > 30).mean()), 4 / 40, delta=0.002)  # a query is four records
        self.assertLess(float(np.median(latency)), 3)

    def test_measured_factors_are_drawn_instead_of_log_normal_ones(self):
        times = replace(NO_HOP, spread=3, hop_ms=10, hop_spread=3, search_factors=(1, 5), hop_factors=(1, 2))
        took = simulate(Layout(merges=0, cores=4), times, 1, 1000, is_even=True).latency_ms
        # A search of 1 ms or 5, and two hops of 10 ms or 20.
        self.assertEqual(sorted(set(took.round(6))), [21, 25, 31, 35, 41, 45])
        self.assertAlmostEqual(float((took < 30).mean()), 1 / 4, delta=0.05)

    def test_a_query_comes_into_the_broker_once_for_all_shards(self):
        times = replace(NO_HOP, broker_ms=0.25)
        busy = simulate(Layout(shards=4, merges=1, cores=100), times, 1, 1000, is_even=True).search_load * 100
        self.assertAlmostEqual(busy, (4 * 1 + (3 * 4 + 3) * 0.25) / 1000, places=4)

    def test_with_cores_to_spare_it_is_the_model_of_own_cores(self):
        times = replace(NO_HOP, spread=0.4, hop_ms=2, hop_spread=0.4)
        layout = Layout(shards=4, merges=1, batch_max=1)
        own, shared = (simulate(replace(layout, cores=cores), times, 5, 1000) for cores in (0, 100))
        for q in (0.5, 0.99):
            self.assertAlmostEqual(shared.quantile(q) / own.quantile(q), 1, delta=0.04)

    def test_each_process_adds_its_time(self):
        times = replace(NO_HOP, join_ms=0.5, client_ms=2, broker_ms=0.25, daemon_ms=3)
        alone = simulate(Layout(merges=0, cores=2), times, 1, 50)
        self.assertAlmostEqual(alone.quantile(0.5), 1 + 2 + 3 + 4 * 0.25, places=6)
        merged = simulate(Layout(merges=1, cores=2), times, 1, 50)
        self.assertAlmostEqual(merged.quantile(0.5), 1 + 2 + 3 + 6 * 0.25 + 0.5, places=6)

    def test_a_lost_shard_costs_the_wait(self):
        outcome = simulate(Layout(shards=2, merges=1, cores=2), NO_HOP, 1, 50, Trouble(lost_shards=1, wait_ms=70))
        self.assertFalse(outcome.complete.any())
        self.assertAlmostEqual(outcome.quantile(0.5), 71, places=6)


def answer_of(asked, n_partitions, is_part):
    """Return an answer as daemons make it: the fields of wire_answer.c."""
    answer = pb.Answer(id="i" * asked.id_bytes, space="books", method="prune(8)", epoch=100_000, generation=1,
                       model="0" * 16, receipt=pb.Receipt(exact=True, bound=1.5),
                       counts=pb.Counts(items=10**7, scored=1000, candidates=10_000, admitted=10**7),
                       times=pb.Times(queued_us=300, searched_us=2000))
    for number in range(asked.k):
        hit = answer.hits.add(key=b"k" * asked.key_bytes, score=2.5)
        for a in range(asked.attributes):
            hit.attributes[f"name{a}"].text = "v" * (asked.attribute_bytes - len(f"name{a}"))
        if asked.value_bytes:
            hit.value.text = "v" * asked.value_bytes
        if asked.has_boosts:
            hit.similarity = 2
        if is_part:
            hit.vector.extend([0.5] * asked.vector_numbers)
    for partition in range(n_partitions):
        answer.watermark.add(partition=partition, next=200_000)
    for number in range(asked.explanations):
        answer.explanations.add(key=b"k" * asked.key_bytes, verdict="OUTRANKED", score=1, below_last_hit=1)
    if not is_part:
        answer.times.merged_us = 3000
        answer.parts.answered = answer.parts.of = 4
    return answer


def part_of(asked, n_shards):
    answer = answer_of(asked, asked.partitions // n_shards, is_part=True)
    return pb.Partial(shard=1, of=n_shards, model="0" * 16, k=asked.k, asked_unix_ms=1_800_000_000_000,
                      trace=[b"t" * asked.trace_bytes, b"", b""], boosts=asked.has_boosts,
                      attributes=asked.attributes, answer=answer.SerializeToString())


class Bytes(unittest.TestCase):
    """The formula beside messages that are encoded. ops/bench shards compares it with a broker's log."""
    cases = (Queries(), Queries(id_bytes=36, key_bytes=8, partitions=4), Queries(partitions=128),
             Queries(attributes=4), Queries(attributes=1, attribute_bytes=100), Queries(value_bytes=5),
             Queries(has_boosts=True), Queries(explanations=16), Queries(vector_numbers=256), Queries(trace_bytes=55))

    def assert_near(self, predicted, exact, what):
        self.assertLess(abs(predicted / exact - 1), 0.04, (what, predicted, exact))

    def test_the_formula_is_within_4_percent_of_what_is_encoded(self):
        for case in self.cases:
            for k in (10, 100, 2000):
                asked = replace(case, k=k)
                key = asked.topic_bytes + len("/12/1234567/1800000000000")
                record = record_bytes.BATCH + record_bytes.RECORD
                header = 2 + len("content-type" + "application/x-protobuf")
                self.assert_near(asked.part(4), record + key + header + part_of(asked, 4).ByteSize(), ("part", asked))
                self.assert_near(asked.answer(), record + header + asked.trace_bytes +
                                 answer_of(asked, asked.partitions, is_part=False).ByteSize(), ("answer", asked))
                mark = pb.Partial(kind=pb.Partial.ANSWERED).ByteSize()
                self.assert_near(asked.mark(), record + key + mark, ("mark", asked))

    def test_what_goes_through_kafka_is_counted_once_for_each_who_writes_or_reads_it(self):
        asked, layout = Queries(k=100), Layout(shards=4, replicas=2, merges=3)
        for is_hedged, searches in ((False, 4), (True, 8)):
            taken, given = record_bytes.per_second(asked, 50, layout, is_hedged)
            answered = asked.query() + searches * asked.part(4) + asked.mark() + asked.answer()
            self.assertAlmostEqual(taken, 50 * answered + 8 * record_bytes.HEARTBEAT)
            self.assertAlmostEqual(given - taken, 50 * (searches - 1) * asked.query())
        alone = record_bytes.per_second(asked, 50, Layout(merges=0))
        self.assertEqual(alone, (50 * (asked.query() + asked.answer()),) * 2)


class Plots(unittest.TestCase):
    def plot(self, text):
        with tempfile.TemporaryDirectory() as folder:
            rows, drawing = Path(folder) / "rows.json", Path(folder) / "plot.svg"
            rows.write_text(text)
            done = subprocess.run([OPS / "plot-load", rows, drawing], capture_output=True, text=True)
            return done, drawing.read_text() if drawing.exists() else ""

    def test_the_plot_of_the_page_is_that_of_its_numbers(self):
        images = OPS.parent / "docs" / "images"
        done, drawing = self.plot((images / "scale-load.json").read_text())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(drawing, (images / "scale-load.svg").read_text())

    def test_each_scenario_has_a_panel_with_three_lines(self):
        row = {"rate": 10, "p50": 1, "p99": 2, "p99.9": 3, "complete": 1, "search_load": 0.5, "merge_load": 0}
        rows = [{**row, "scenario": name, "rate": rate} for name in ("calm & quiet", "lost") for rate in (10, 20)]
        rows.append({**row, "scenario": "lost", "rate": 30, "search_load": 1.2})
        done, drawing = self.plot("\n".join(map(json.dumps, rows)))
        self.assertEqual(done.returncode, 0, done.stderr)
        root = xml.etree.ElementTree.fromstring(drawing)
        self.assertEqual(len(root.findall(f"{SVG}polyline")), 6)
        words = [text.text for text in root.iter(f"{SVG}text")]
        self.assertIn("calm & quiet", words)
        self.assertIn("overloaded from 30 on", words)

    def test_other_input_is_refused(self):
        for text in ("no JSON", "{}", "[]"):
            done, _ = self.plot(text)
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not what ops/simulate --json prints", done.stderr)

    def test_ticks_are_round_numbers_within_the_axis(self):
        self.assertEqual(line_chart.log_ticks(0.9, 30), [1, 2, 5, 10, 20])
        self.assertEqual(line_chart.log_ticks(0.001, 100), [0.001, 0.01, 0.1, 1, 10, 100])
        self.assertEqual(line_chart.even_ticks(0, 6000), [0, 1000, 2000, 3000, 4000, 5000, 6000])

    def test_tails_are_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            drawing = Path(folder) / "tails.svg"
            done = subprocess.run([OPS / "simulate", "--shards", "2", "--seconds", "1", "--rate", "100", "--items", "1e6",
                                   "--plot", drawing], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            root = xml.etree.ElementTree.parse(drawing).getroot()
            self.assertEqual(len(root.findall(f"{SVG}polyline")), 7)


class Command(unittest.TestCase):
    def simulate(self, *words):
        return subprocess.run([OPS / "simulate", *words], capture_output=True, text=True)

    def test_a_seed_gives_the_same_table_again(self):
        words = ("--shards", "2", "--seconds", "1", "--rate", "100", "--items", "1e6", "--json")
        first, second = self.simulate(*words), self.simulate(*words)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(first.stdout.count("\n"), 7)

    def test_overload_is_said(self):
        done = self.simulate("--shards", "1", "--replicas", "1", "--rate", "5000", "--seconds", "2", "--scenario",
                             "all is well")
        self.assertIn("OVERLOADED", done.stdout)

    def test_times_of_shared_cores_count(self):
        def median(*words):
            done = self.simulate("--shards", "1", "--replicas", "1", "--merges", "0", "--items", "1e6", "--rate", "5",
                                 "--measured-items", "1e6", "--seconds", "20", "--spread", "0", "--hop-spread", "0",
                                 "--batch-ms", "0", "--query-ms", "1", "--hop-ms", "2", "--cores", "4",
                                 "--scenario", "all is well", "--json", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["p50"]

        self.assertAlmostEqual(median(), 1 + 2 * 2, places=3)
        self.assertAlmostEqual(median("--client-ms", "3"), 5 + 3, places=3)
        self.assertAlmostEqual(median("--broker-ms", "0.5"), 5 + 4 * 0.5, places=3)
        self.assertAlmostEqual(median("--daemon-ms", "4"), 5 + 4, places=3)
        self.assertAlmostEqual(median("--stop-ms", "7", "--stop-records", "4"), 5 + 7, places=3)

    def row(self, *words):
        done = self.simulate("--shards", "4", "--replicas", "1", "--merges", "1", "--items", "1e6", "--rate", "20",
                             "--seconds", "5", "--spread", "0", "--hop-spread", "0", "--scenario", "all is well",
                             "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_k_changes_a_merges_time_and_the_bytes_alone(self):
        few, many = self.row("--join-ms", "0.5", "--hit-us", "2"), self.row("--join-ms", "0.5", "--hit-us", "2",
                                                                            "--k", "1010")
        # A merge takes 4 parts, one after the other: 1,000 hits more are 2 ms more for each.
        self.assertAlmostEqual(many["p50"] - few["p50"], 4 * 2, delta=0.01)
        self.assertEqual(many["search_load"], few["search_load"])
        self.assertAlmostEqual((many["bytes_in"] - few["bytes_in"]) / (20 * 5 * 1000 * Queries().hit()), 1, delta=1e-3)
        self.assertEqual(self.row(), self.row("--k", "10"))

    def test_the_sizes_of_records_count(self):
        def more(*words):
            return self.row(*words)["bytes_in"] - self.row()["bytes_in"]

        self.assertEqual(more("--query-bytes", "400"), 20 * 100)
        self.assertEqual(more("--key-bytes", "30"), 20 * 5 * 10 * 10)
        self.assertEqual(more("--partitions", "24"), 20 * 2 * 20 * record_bytes.POSITION)  # once in all parts together
        self.assertEqual(more("--attributes", "2"), 20 * 5 * 10 * 2 * (record_bytes.SHOWN + 12))
        self.assertEqual(more("--attributes", "2", "--attribute-bytes", "22"),
                         20 * 5 * 10 * 2 * (record_bytes.SHOWN + 22))

    def test_bad_numbers_are_refused_by_name(self):
        for words, name in ((("--rate", "0"), "--rate"), (("--wait-ms", "-1"), "--wait-ms"),
                            (("--merges", "0"), "--merges"), (("--rate", "5", "-1"), "--rate"),
                            (("--plot", "x.svg", "--rate", "5", "6"), "--plot"),
                            (("--cores", "2", "--scenario", "a rebalance"), "--cores"),
                            (("--k", "0"), "--k"), (("--hit-us", "-1"), "--hit-us"),
                            (("--stop-ms", "5"), "--stop-records")):
            done = self.simulate(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(name, done.stderr)


if __name__ == "__main__":
    unittest.main()
