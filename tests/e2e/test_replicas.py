#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of several daemons that share a query group on a real broker, under load: stops, kills, and more daemons."""

import signal
import sys
import unittest

from confluent_kafka import Consumer

import data
import real_broker
from harness import QUIET, eventually
from replicas import Load, Replicas

N_ITEMS = 500
N_PARTITIONS = 8
RATE = 50
# Queries that are sent between two events.
BETWEEN = 50


def setUpModule():
    global broker
    broker = real_broker.open_for()


class ReplicasCase(unittest.TestCase):
    def open(self, n, **options):
        replicas = Replicas(broker, n, N_ITEMS, N_PARTITIONS, **options)
        self.addCleanup(replicas.close)
        self.addCleanup(self.show_logs, replicas)  # before the folder is removed
        return replicas

    def show_logs(self, replicas):
        if self._outcome.result.failures or self._outcome.result.errors:
            for daemon in replicas.daemons:
                print(f"\n--- {daemon.folder.name}\n{daemon.log_tail(40)}", file=sys.stderr)

    def assert_all_answered(self, load):
        self.assertEqual(load.lost(), [], "these queries have no answer")

    def assert_all_answered_once(self, load):
        self.assert_all_answered(load)
        twice = load.twice()
        if twice:
            self.fail(f"these queries were answered more than once: {twice}; the query topic has {load.n_written()} "
                      f"records for {load.n_sent()} queries and the warm-up")


class Stops(ReplicasCase):
    def test_a_rolling_restart_answers_each_query_once(self):
        replicas = self.open(3)
        replicas.start()
        with Load(replicas, RATE) as load:
            for i, daemon in enumerate(replicas.daemons):
                load.wait_sent(BETWEEN)
                daemon.stop()
                replicas.start([i])
            load.wait_sent(BETWEEN)
            self.assert_all_answered_once(load.finish())
        eventually(lambda: sum(replicas.partitions()) == N_PARTITIONS, "all partitions to have an owner")

    def test_daemons_that_come_and_go_answer_each_query_once(self):
        replicas = self.open(4)
        replicas.start([0])
        with Load(replicas, RATE) as load:
            for i in (1, 2, 3):
                load.wait_sent(BETWEEN)
                replicas.start([i])
            eventually(lambda: replicas.partitions() == [2, 2, 2, 2], "each of four daemons to read two partitions")
            load.wait_sent(BETWEEN)
            for daemon in replicas.daemons[1:]:
                daemon.stop()
            eventually(lambda: replicas.partitions() == [N_PARTITIONS], "the last daemon to read all partitions")
            load.wait_sent(BETWEEN)
            self.assert_all_answered_once(load.finish())


class Kills(ReplicasCase):
    def test_no_query_is_lost_when_daemons_are_killed(self):
        replicas = self.open(3, session_ms=3000)
        replicas.start()
        with Load(replicas, RATE) as load:
            for i, daemon in enumerate(replicas.daemons):
                load.wait_sent(BETWEEN)
                daemon.kill()
                replicas.start([i])
                # Otherwise the group would have waited for the dead member, and the other daemons with it.
                self.assertIn("event=query_member_forgotten", daemon.log())
            load.wait_sent(BETWEEN)
            self.assert_all_answered(load.finish(60))

    def test_a_daemon_that_was_suspended_says_that_it_lost_its_partitions(self):
        replicas = self.open(2, session_ms=2000)
        replicas.start()
        first, second = replicas.daemons
        with Load(replicas, RATE) as load:
            load.wait_sent(BETWEEN)
            eventually(lambda: replicas.partitions() == [N_PARTITIONS // 2] * 2, "each daemon to read its partitions")
            self.assertNotIn(" lost=", first.log() + second.log())
            before = len(second.log())
            first.process.send_signal(signal.SIGSTOP)
            eventually(lambda: f"assigned={N_PARTITIONS}" in second.log()[before:], "the other daemon to read them all")
            first.process.send_signal(signal.SIGCONT)
            eventually(lambda: " lost=" in first.log(), "the lost partitions in the log")
            load.wait_sent(BETWEEN)
            self.assert_all_answered(load.finish(60))

    def test_a_clean_stop_leaves_no_member_to_wait_for(self):
        replicas = self.open(1)
        replicas.start()
        replicas.daemons[0].stop()
        replicas.start()
        self.assertNotIn("event=query_member_forgotten", replicas.daemons[0].log())


class NotLetIn(ReplicasCase):
    def test_a_member_with_another_kind_of_rebalance_is_named(self):
        replicas = self.open(1)
        other = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": replicas.topic("group"),
                          "partition.assignment.strategy": "cooperative-sticky"})
        other.subscribe([replicas.topic("queries")])
        eventually(lambda: other.poll(0.1) or other.assignment(), "the other program to be in the group")
        daemon = replicas.daemons[0].start()

        def says_why():
            other.poll(0)
            answer = daemon.get("/readyz")
            return answer and "another program in query.group shares partitions in another way" in answer[1]
        eventually(says_why, "the reason in /readyz")
        other.close()
        daemon.wait_ready()

    def test_a_session_timeout_that_the_broker_refuses_is_named(self):
        replicas = self.open(1, session_ms=500)
        daemon = replicas.daemons[0].start()
        eventually(lambda: "session.timeout.ms is outside the broker's" in (daemon.get("/readyz") or ("", ""))[1],
                   "the reason in /readyz")


if __name__ == "__main__":
    data.main()
