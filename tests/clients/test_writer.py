# SPDX-License-Identifier: Apache-2.0
"""Tests of the Python client's writers with a producer that does what the test says."""

import threading
import unittest
from datetime import datetime, timezone
from unittest import mock

import installed  # noqa: F401

from sluice_client import Catalogue, Closed, SeenItems, SluiceError, WriteError
from sluice_client import sluice_pb2 as pb


class Producer:
    """Holds records until deliver(), and reports them in poll(), as librdkafka does."""

    def __init__(self, settings):
        self.settings, self.held, self.reports, self.room = settings, [], [], 1000
        self.lock = threading.Lock()

    def produce(self, topic, value, key, on_delivery):
        with self.lock:
            if len(self.held) >= self.room:
                raise BufferError
            self.held.append((topic, value, key, on_delivery))

    def deliver(self, partition=0, first=0, error=None):
        with self.lock:
            held, self.held = self.held, []
            self.reports += [(report, error, mock.Mock(**{"partition.return_value": partition,
                                                          "offset.return_value": first + n}))
                             for n, (*_, report) in enumerate(held)]
        return held

    def purge(self):
        self.deliver(error="purged")

    def flush(self, _):
        self.poll(0)

    def poll(self, _):
        with self.lock:
            reports, self.reports = self.reports, []
        for report, error, message in reports:
            report(error, message)
        threading.Event().wait(0.001)


class WriterTest(unittest.TestCase):
    def setUp(self):
        with mock.patch("sluice_client.writer.Producer", Producer):
            self.catalogue = Catalogue("127.0.0.1:1")
        self.producer = self.catalogue._producer

    def tearDown(self):
        self.producer.deliver()
        self.catalogue.close()

    def test_records_are_what_the_daemon_reads(self):
        self.catalogue.put("a", {"films": [1, 2]}, {"year": 1979, "country": None})
        self.catalogue.delete(b"b")
        (topic, value, key, _), tombstone = self.producer.deliver()
        item = pb.Item.FromString(value)
        self.assertEqual((topic, key, item.attributes["year"].integer), ("sluice.catalogue", b"a", 1979))
        self.assertIsNone(item.attributes["country"].WhichOneof("kind"))
        self.assertEqual(tombstone[1:3], (None, b"b"))
        self.assertTrue(self.producer.settings["enable.idempotence"])

    def test_positions_are_the_highest_of_each_partition(self):
        first = self.catalogue.put("a", {"films": [1]})
        second = self.catalogue.put("b", {"films": [1]})
        self.producer.deliver(partition=2, first=7)
        self.assertEqual((first.result(60), second.result(60)), ({2: 8}, {2: 9}))
        self.catalogue.delete("a")
        self.producer.deliver(partition=1, first=4)
        self.assertEqual(self.catalogue.flush(), {1: 5, 2: 9})
        self.catalogue.delete("a")
        self.producer.deliver(partition=1, first=2)
        self.assertEqual(self.catalogue.flush(), {1: 5, 2: 9})
        self.assertEqual(self.catalogue.positions, {1: 5, 2: 9})

    def test_a_flush_says_what_is_not_there_in_time(self):
        self.catalogue.put("a", {"films": [1]})
        with self.assertRaisesRegex(WriteError, "1 of 1 records"):
            self.catalogue.flush(0.01)

    def test_closing_ends_the_futures_of_records_that_are_not_there_in_time(self):
        future = self.catalogue.put("a", {"films": [1]})
        self.producer.room, ends = 1, []

        def put():
            try:
                self.catalogue.put("b", {"films": [1]})
            except Closed as error:
                ends.append(str(error))
        waiting = threading.Thread(target=put)
        waiting.start()
        while len(self.catalogue._open) < 2:
            threading.Event().wait(0.001)
        with self.assertRaisesRegex(WriteError, "2 of 2 records are not in Kafka after 0.01 s"):
            self.catalogue.close(0.01)
        self.assertRegex(str(future.exception(60)), "topic sluice.catalogue: purged")
        waiting.join(60)
        self.assertEqual(ends, ["the writer was closed while a record waited for room"])

    def test_a_failure_is_told_once(self):
        futures = [self.catalogue.put(key, {"films": [1]}) for key in "ab"]
        self.producer.deliver(error="no leader")
        with self.assertRaisesRegex(WriteError, "2 records were not written; the first: .*no leader"):
            self.catalogue.flush()
        self.assertIsInstance(futures[0].exception(60), WriteError)
        self.assertEqual(self.catalogue.flush(), {})

    def test_a_callback_that_ends_its_thread_holds_up_no_other_record(self):
        def leave(_):
            raise SystemExit
        with self.assertLogs("sluice_client", "ERROR"):
            self.catalogue.put("a", {"films": [1]}).add_done_callback(leave)
            self.producer.deliver()
            self.catalogue.flush()
            second = self.catalogue.put("b", {"films": [1]})
            self.producer.deliver(first=1)
            self.assertEqual(second.result(60), {0: 2})

    def test_a_writer_does_not_wait_for_itself(self):
        said = []

        def wait(_):
            for call in (lambda: self.catalogue.flush(1), lambda: self.catalogue.close(1)):
                try:
                    call()
                except SluiceError as error:
                    said.append(str(error))
        first, second = (self.catalogue.put(key, {"films": [1]}) for key in "ab")
        first.add_done_callback(wait)
        self.producer.deliver()
        self.assertEqual(second.result(60), {0: 2})
        self.assertEqual(said, 2 * ["flush() or close() in a callback would wait for its own thread"])
        self.assertEqual(self.catalogue.flush(60), {0: 2})

    def test_a_full_queue_is_waited_for(self):
        self.producer.room = 1
        self.catalogue.put("a", {"films": [1]})
        threading.Timer(0.05, self.producer.deliver).start()
        second = self.catalogue.put("b", {"films": [1]})
        self.producer.deliver(first=1)
        self.assertEqual(second.result(60), {0: 2})

    def test_an_interrupted_program_ends_with_its_own_error(self):
        with self.assertRaises(KeyboardInterrupt), mock.patch.object(self.catalogue, "close",
                                                                     side_effect=WriteError("late")) as close:
            with self.catalogue:
                raise KeyboardInterrupt
        self.assertLess(close.call_args.args[0], 5)
        with self.assertRaises(WriteError), mock.patch.object(self.catalogue, "close", side_effect=WriteError("late")):
            with self.catalogue:
                pass

    def test_a_record_that_was_interrupted_is_not_waited_for(self):
        self.producer.room = 0
        with mock.patch.object(self.producer, "poll", side_effect=KeyboardInterrupt), \
                self.assertRaises(KeyboardInterrupt):
            self.catalogue.put("a", {"films": [1]})
        self.assertEqual(self.catalogue.flush(60), {})

    def test_a_record_cannot_be_cancelled(self):
        self.assertFalse(self.catalogue.put("a", {"films": [1]}).cancel())

    def test_what_was_seen_may_have_a_time(self):
        with mock.patch("sluice_client.writer.Producer", Producer):
            seen = SeenItems("127.0.0.1:1")
        self.addCleanup(seen.close)
        seen.add("7", ["a", "b"], datetime(1970, 1, 2, tzinfo=timezone.utc))
        seen.add("7", (key for key in ["c"]))
        values = [pb.Seen.FromString(value) for _, value, _, _ in seen._producer.deliver()]
        self.assertEqual([(list(v.items), v.HasField("time_unix_ms"), v.time_unix_ms) for v in values],
                         [([b"a", b"b"], True, 86400000), ([b"c"], False, 0)])
        for wrong in ([], ["a"] * 10001):
            with self.assertRaisesRegex(ValueError, "a record has 1 to 10000"):
                seen.add("7", wrong)

    def test_a_closed_writer_takes_no_records(self):
        self.catalogue.close()
        self.catalogue.close()
        with self.assertRaises(Closed):
            self.catalogue.put("a", {"films": [1]})


if __name__ == "__main__":
    unittest.main()
