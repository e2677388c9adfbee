# SPDX-License-Identifier: Apache-2.0
"""Tests of the book of open requests: answers in any order, late, twice and to others; deadlines; threads."""

import pickle
import threading
import unittest

import installed  # noqa: F401

from sluice_client import Closed, Counters, NoAnswer, QueryError, WriteError
from sluice_client.pending import Pending


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class PendingTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.pending = Pending(self.clock)

    def answer(self, request_id, value="hits"):
        self.pending.answer(request_id, lambda: value)

    def counted(self, **expected):
        self.assertEqual(self.pending.counters(), Counters(**expected))

    def test_answers_in_another_order_reach_their_requests(self):
        requests = [self.pending.add(5) for _ in range(10)]
        for n, (request_id, _) in reversed(list(enumerate(requests))):
            self.answer(request_id, n)
        self.assertEqual([future.result(0) for _, future in requests], list(range(10)))
        self.counted(sent=10, answered=10)

    def test_ids_are_unique_in_one_client_and_between_clients(self):
        others = [Pending(self.clock) for _ in range(3)]
        ids = [client.add(5)[0] for client in (self.pending, *others) for _ in range(5)]
        self.assertEqual(len(set(ids)), 20)

    def test_the_first_answer_counts_and_the_second_is_a_duplicate(self):
        request_id, future = self.pending.add(5)
        self.answer(request_id, "first")
        self.answer(request_id, "second")
        self.answer(request_id, "third")
        self.assertEqual(future.result(0), "first")
        self.counted(sent=1, answered=1, duplicates=2)

    def test_answers_to_other_clients_are_not_even_made(self):
        def refuse():
            self.fail("made")
        for other in ("", "q1", Pending(self.clock).add(5)[0]):
            self.pending.answer(other, refuse)
        self.counted(foreign=3)

    def test_a_request_is_given_up_when_its_time_is_over(self):
        _, future = self.pending.add(5)
        self.clock.now += 4.9
        self.assertAlmostEqual(self.pending.expire(), 0.1)
        self.assertFalse(future.done())
        self.clock.now += 0.2
        self.assertEqual(self.pending.expire(), 60)
        self.assertIsInstance(future.exception(0), NoAnswer)
        self.assertIsInstance(future.exception(0), TimeoutError)
        self.counted(sent=1, timed_out=1)

    def test_no_answer_says_what_the_trouble_is_until_an_answer_comes(self):
        for answered, due in ((False, "no answer within 5 s: all brokers are down"), (True, "no answer within 5 s")):
            _, future = self.pending.add(5)
            self.pending.note("all brokers are down")
            if answered:
                self.answer("some other")
            self.clock.now += 6
            self.pending.expire()
            self.assertEqual(str(future.exception(0)), due)

    def test_a_timeout_that_is_no_number_is_refused_and_others_end(self):
        for wrong in (float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, f"a timeout is a number of seconds, not {wrong}"):
                self.pending.add(wrong)
        _, future = self.pending.add(5)
        self.clock.now += 6
        self.pending.expire()
        self.assertIsInstance(future.exception(0), NoAnswer)
        self.counted(sent=1, timed_out=1)

    def test_deadlines_end_in_their_own_order(self):
        long, short, middle = (self.pending.add(timeout_s)[1] for timeout_s in (30, 1, 10))
        for step, done in ((2, [short]), (10, [short, middle]), (30, [short, middle, long])):
            self.clock.now += step
            self.pending.expire()
            self.assertEqual([f for f in (short, middle, long) if f.done()], done)

    def test_an_answer_after_the_deadline_is_late_and_the_next_one_a_duplicate(self):
        request_id, future = self.pending.add(5)
        self.clock.now += 6  # nobody has called expire() yet
        self.answer(request_id)
        self.assertIsInstance(future.exception(0), NoAnswer)
        self.answer(request_id)
        self.counted(sent=1, timed_out=1, late=1, duplicates=1)

    def test_an_answered_request_does_not_time_out(self):
        request_id, future = self.pending.add(5)
        self.answer(request_id)
        self.clock.now += 6
        self.assertEqual(self.pending.expire(), 60)
        self.assertEqual(future.result(0), "hits")
        self.counted(sent=1, answered=1)

    def test_an_error_of_the_daemon_is_an_answer(self):
        def refuse():
            raise ValueError("bad")
        request_id, future = self.pending.add(5)
        self.pending.answer(request_id, refuse)
        self.assertIsInstance(future.exception(0), ValueError)
        self.counted(sent=1, answered=1)

    def test_an_error_of_the_daemon_crosses_processes(self):
        error = pickle.loads(pickle.dumps(QueryError("BAD_QUERY", "k: -1")))
        self.assertEqual((error.code, error.message, str(error)), ("BAD_QUERY", "k: -1", "BAD_QUERY: k: -1"))

    def test_a_request_that_could_not_be_sent_fails_once(self):
        request_id, future = self.pending.add(5)
        self.pending.fail(request_id, WriteError("no broker"))
        self.pending.fail(request_id, WriteError("again"))
        self.clock.now += 6
        self.pending.expire()
        self.assertEqual(str(future.exception(0)), "no broker")
        self.answer(request_id)  # the record was in Kafka all the same
        self.counted(sent=1, failed=1, late=1)

    def test_a_cancelled_request_drops_its_answer(self):
        request_id, future = self.pending.add(5)
        self.assertTrue(future.cancel())
        self.answer(request_id)
        self.answer(request_id)
        self.counted(sent=1, timed_out=1, late=1, duplicates=1)

    def test_a_cancelled_request_may_time_out_and_be_closed(self):
        self.pending.add(5)[1].cancel()
        self.clock.now += 6
        self.pending.expire()
        self.pending.add(5)[1].cancel()
        self.pending.close()
        self.counted(sent=2, timed_out=1, failed=1)

    def test_closing_ends_open_requests_and_refuses_new_ones(self):
        _, future = self.pending.add(5)
        self.pending.close()
        self.assertIsInstance(future.exception(0), Closed)
        with self.assertRaises(Closed):
            self.pending.add(5)
        self.counted(sent=1, failed=1)

    def test_a_callback_may_use_the_book(self):
        request_id, future = self.pending.add(5)
        more = []
        future.add_done_callback(lambda _: more.append(self.pending.add(5)))
        self.answer(request_id)
        self.answer(more[0][0])
        self.assertEqual(more[0][1].result(0), "hits")

    def test_a_callback_that_ends_its_thread_holds_up_no_other_future(self):
        def leave(_):
            raise SystemExit

        def open_two(timeout_s):
            requests = [self.pending.add(timeout_s) for _ in range(2)]
            requests[0][1].add_done_callback(leave)
            return [request_id for request_id, _ in requests], [future for _, future in requests]
        with self.assertLogs("sluice_client", "ERROR"):
            ids, answered = open_two(5)
            for request_id in ids:
                self.answer(request_id)
            _, late = open_two(1)
            self.clock.now += 2
            self.pending.expire()
            _, left = open_two(5)
            self.pending.close()
        self.assertEqual([future.done() for future in answered + late + left], 6 * [True])

    def test_memory_of_requests_that_were_given_up_is_bounded(self):
        self.pending = Pending(self.clock, remember=2)
        ids = [self.pending.add(5)[0] for _ in range(3)]
        self.clock.now += 6
        self.pending.expire()
        self.answer(ids[0])
        self.counted(sent=3, timed_out=3, duplicates=1)  # the oldest is forgotten
        for request_id in ids[1:]:
            self.answer(request_id)
        self.counted(sent=3, timed_out=3, duplicates=1, late=2)

    def test_every_request_of_many_threads_ends_once(self):
        futures = []

        def send():
            for _ in range(500):
                request_id, future = self.pending.add(5)
                futures.append(future)
                self.answer(request_id, request_id)
                self.answer(request_id)
        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({future.result(0) for future in futures}), 2000)
        self.counted(sent=2000, answered=2000, duplicates=2000)


if __name__ == "__main__":
    unittest.main()
