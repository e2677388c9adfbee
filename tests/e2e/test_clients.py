#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the clients for Python and Java, and of the examples, with a real Kafka broker and one daemon."""

import dataclasses
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import uuid
import weakref

import numpy as np
from confluent_kafka import Producer

import data
import harness
import real_broker
import safetensors_io
from harness import QUIET, SLOWNESS, Case, Daemon, eventually

sys.path.insert(0, str(data.ROOT / "tests" / "clients"))
import installed  # noqa: E402  makes sluice_client importable

import sluice_client  # noqa: E402
from sluice_client import Boost, Catalogue, Closed, NoAnswer, Queries, Query, QueryError, SeenItems  # noqa: E402

PATIENCE_S = 30 * SLOWNESS
DIM = 8


def setUpModule():
    global broker, daemon
    broker = real_broker.open_for()
    folder = harness.tempfile.TemporaryDirectory(prefix="sluice-clients-")
    unittest.addModuleCleanup(folder.cleanup)
    daemon = Daemon(config_in(folder.name), folder.name)
    daemon.kafka = broker.bootstrap
    for topic in ("catalogue", "queries", "answers", "dead-letters", "seen"):
        broker.create_topic(f"sluice.{topic}", 2, {"cleanup.policy": "compact"} if topic == "catalogue" else None)
    daemon.start()
    unittest.addModuleCleanup(daemon.kill)
    daemon.wait_ready()


def config_in(folder):
    spaces = {}
    for name, tensors, metadata in (
            ("films", {}, {"sluice.similarity": "dot", "sluice.dim": "2"}),
            ("java", {}, {"sluice.similarity": "dot", "sluice.dim": "2"}),
            ("wide", {}, {"sluice.similarity": "dot", "sluice.dim": str(DIM)}),
            ("codes", {"centroids": np.arange(16, dtype=np.float32).reshape(2, 4, 2)},
             {"sluice.similarity": "recjpq"})):
        path = f"{folder}/{name}.safetensors"
        safetensors_io.write(path, tensors, metadata)
        spaces[name] = {"model": path}
    return {"kafka": {"bootstrap.servers": broker.bootstrap}, "store": {"path": f"{folder}/store"}, "spaces": spaces,
            "catalogue": {"kafka": {"fetch.wait.max.ms": 100}}, "seen": {"topic": "sluice.seen"},
            "query": {"at_least_timeout_ms": int(20000 * SLOWNESS)},
            "attributes": {"year": "integer", "country": "keyword", "tags": "keywords"}}


def url():
    return f"http://127.0.0.1:{daemon.port}"


class PythonClient(Case):
    def setUp(self):
        self.catalogue = Catalogue(broker.bootstrap)
        self.addCleanup(self.catalogue.close)
        self.queries = Queries(broker.bootstrap)
        self.addCleanup(self.queries.close)

    def ask(self, *words, **fields):
        answer = self.queries.ask(Query(*words, **fields), PATIENCE_S)
        return [hit.text for hit in answer.hits]

    def put_films(self):
        films = {"alien": ([3, 1], 1979), "heat": ([1, 0], 1995), "ran": ([0, 2], 1985)}
        for key, (vector, year) in films.items():
            self.catalogue.put(key, {"films": vector}, {"year": year, "country": "jp" if key == "ran" else "us"})
        return self.catalogue.flush(PATIENCE_S)

    def test_a_callback_may_submit_and_not_ask(self):
        written = self.put_films()
        said, done = [], threading.Event()

        def go_on(_):
            try:
                self.queries.ask(Query("films", 1, [1, 0]))
            except sluice_client.SluiceError as error:
                said.append(str(error))
            self.queries.submit(Query("films", 1, [1, 0], at_least=written), PATIENCE_S).add_done_callback(
                lambda future: (said.append(future.result().hits[0].text), done.set()))

        self.queries.submit(Query("films", 1, [1, 0]), PATIENCE_S).add_done_callback(go_on)
        self.assertTrue(done.wait(2 * PATIENCE_S))
        self.assertEqual(said, ["ask() in a callback would wait for an answer that nobody reads: use submit()",
                                "alien"])

    def test_a_query_sees_what_was_written(self):
        written = self.put_films()
        answer = self.queries.ask(Query("films", 2, [1, 0], at_least=written), PATIENCE_S)
        self.assertEqual([hit[:2] for hit in answer.hits], [(b"alien", 3.0), (b"heat", 1.0)])
        self.assertTrue(answer.exact)
        self.assertEqual(answer.bound, 1.0)
        self.assertTrue(all(answer.watermark[partition] >= n for partition, n in written.items()))
        deleted = self.catalogue.delete("alien").result(PATIENCE_S)
        self.assertEqual(self.ask("films", 2, [1, 0], at_least=deleted), ["heat", "ran"])

    def test_the_first_query_does_not_wait_for_the_topic_to_be_found(self):
        def time_of_the_first():
            with Queries(broker.bootstrap) as queries:
                started = time.monotonic()
                queries.ask(Query("films", 1, [1, 0]), PATIENCE_S)
                return time.monotonic() - started
        self.assertLess(min(time_of_the_first() for _ in range(3)), 0.9 * SLOWNESS)

    def test_filters_and_exclusions(self):
        written = self.put_films()
        wanted = {"space": "films", "k": 3, "vector": [1, 0], "at_least": written}
        self.assertEqual(self.ask(**wanted, filter="year < $1 and country in $2", parameters=[1990, ["us", "de"]]),
                         ["alien"])
        self.assertEqual(self.ask(**wanted, exclude=["alien"]), ["heat", "ran"])
        with SeenItems(broker.bootstrap) as seen:
            user = uuid.uuid4().hex
            saw = seen.add(user, ["alien", "ran"]).result(PATIENCE_S)
            self.assertEqual(self.ask(**wanted, exclude_seen_by=user, at_least_seen=saw), ["heat"])
            forgot = seen.forget(user).result(PATIENCE_S)
            self.assertEqual(self.ask(**wanted, exclude_seen_by=user, at_least_seen=forgot), ["alien", "heat", "ran"])

    def test_an_attribute_is_changed_and_removed(self):
        self.put_films()
        wanted = {"space": "films", "k": 3, "vector": [1, 0], "filter": "year = 1986"}
        changed = self.catalogue.put("ran", {}, {"year": 1986}).result(PATIENCE_S)
        self.assertEqual(self.ask(**wanted, at_least=changed), ["ran"])
        removed = self.catalogue.put("ran", {}, {"year": None}).result(PATIENCE_S)
        self.assertEqual(self.ask(**wanted, at_least=removed), [])

    def test_codes(self):
        self.catalogue.put("a", {"codes": sluice_client.codes([0, 3])})
        self.catalogue.put("b", {"codes": sluice_client.codes([3, 0])})
        answer = self.queries.ask(Query("codes", 2, [1, 0, 0, 1], at_least=self.catalogue.flush()), PATIENCE_S)
        self.assertEqual([hit[:2] for hit in answer.hits], [(b"a", 0 + 15.0), (b"b", 6 + 9.0)])

    def test_boosts(self):
        written = self.put_films()
        boosts = [Boost(weight=0.25, attribute="year"), Boost(5, filter="country = $1", parameters=["jp"])]
        query = Query("films", 3, [1, 0], at_least=written, boosts=boosts)
        answer = self.queries.ask(query, PATIENCE_S)
        self.assertEqual([(hit.text, hit.score, hit.similarity) for hit in answer.hits],
                         [("ran", 501.25, 0), ("heat", 499.75, 1), ("alien", 497.75, 3)])
        self.assertTrue(answer.exact)
        self.assertLess(abs(answer.now.timestamp() - time.time()), 60)
        again = self.queries.ask(dataclasses.replace(query, now=answer.now), PATIENCE_S)
        self.assertEqual((again.hits, again.now), (answer.hits, answer.now))

    def test_waiting_until_one_daemon_has_it(self):
        sluice_client.wait_visible(url(), self.put_films(), PATIENCE_S)
        self.assertIn("alien", self.ask("films", 3, [1, 0]))
        with self.assertRaisesRegex(NoAnswer, "after 0.01 s the daemon at .* has read to {.*0: .*}, not to {0: "):
            sluice_client.wait_visible(url(), {0: 1 << 40}, 0.01)
        with self.assertRaisesRegex(NoAnswer, "127.0.0.1:1 does not say how far it has read: .*refused"):
            sluice_client.wait_visible("http://127.0.0.1:1", {0: 1}, 0.01)
        with self.assertRaisesRegex(NoAnswer, "/none does not say how far it has read: HTTP Error 404"):
            sluice_client.wait_visible(url() + "/none", {0: 1}, 0.01)
        with self.assertRaisesRegex(ValueError, "127.0.0.1:1 is not the address of a page"):
            sluice_client.wait_visible("127.0.0.1:1", {0: 1}, 0.01)

    def test_errors_have_codes(self):
        for fields, code in (({"space": "films", "k": 0, "vector": [1, 0]}, "BAD_QUERY"),
                             ({"space": "films", "k": 1, "vector": [1]}, "BAD_QUERY"),
                             ({"space": "nothing", "k": 1, "vector": [1]}, "UNKNOWN_SPACE"),
                             ({"space": "films", "k": 1, "vector": [1, 0], "at_least": {0: 1 << 40}, "no_wait": True},
                              "NOT_SEEN")):
            with self.assertRaises(QueryError) as caught:
                self.ask(**fields)
            self.assertEqual(caught.exception.code, code)

    def test_what_is_too_large_for_kafka_is_named(self):
        vector = np.zeros(1 << 20, np.float32)
        with self.assertRaisesRegex(sluice_client.WriteError, "topic sluice.queries: .*MSG_SIZE_TOO_LARGE"):
            self.queries.ask(Query("films", 1, vector), PATIENCE_S)
        with self.assertRaisesRegex(sluice_client.WriteError, "topic sluice.catalogue: .*MSG_SIZE_TOO_LARGE"):
            self.catalogue.put("a", {"films": vector})
        self.catalogue.flush(PATIENCE_S)

    def test_a_fork_is_told_that_its_client_is_not_there(self):
        def try_all():
            for call in (lambda: self.queries.ask(Query("films", 1, [1, 0]), 1),
                         lambda: self.catalogue.put("a", {"films": [1, 0]}).result(1), lambda: self.catalogue.flush(1)):
                try:
                    call()
                    return 1
                except sluice_client.SluiceError as error:
                    if f"opened in process {os.getppid()}, of which this one is a fork" not in str(error):
                        return 2
            self.catalogue.close()
            self.queries.close()
            return 0
        self.ask("films", 1, [1, 0])
        child = os.fork()
        if child == 0:
            code = 3
            try:
                signal.alarm(int(PATIENCE_S))
                code = try_all()
            finally:
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.ask("films", 1, [1, 0])

    def test_many_threads_get_their_own_answers(self):
        vectors = data.generator("clients").standard_normal((200, DIM)).astype(np.float32)
        for row, vector in enumerate(vectors):
            self.catalogue.put(f"wide-{row}", {"wide": vector})
        written, best, wrong = self.catalogue.flush(PATIENCE_S), np.argmax(vectors @ vectors.T, axis=0), []

        def ask(rows):
            futures = {row: self.queries.submit(Query("wide", 1, vectors[row], at_least=written), PATIENCE_S)
                       for row in rows}
            wrong.extend(row for row, future in futures.items() if future.result().hits[0].text != f"wide-{best[row]}")
        with Queries(broker.bootstrap) as other:
            threads = [threading.Thread(target=ask, args=(range(n, 200, 4),)) for n in range(4)]
            for thread in threads:
                thread.start()
            other.ask(Query("films", 1, [1, 0]), PATIENCE_S)
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            eventually(lambda: other.counters.foreign >= 200, "the others' answers")
            self.assertEqual((other.counters.sent, other.counters.answered), (1, 1))
        counters = self.queries.counters
        self.assertEqual((counters.sent, counters.answered, counters.late, counters.duplicates), (200, 200, 0, 0))

    def test_a_second_answer_is_counted_and_dropped(self):
        sent = []
        produce = self.queries._producer.produce

        class Twice:
            """A producer whose records arrive twice, as after a lost acknowledgement."""

            def __getattr__(twice, name):
                return getattr(Twice.inner, name)

            def produce(twice, topic, value, key, on_delivery):
                sent.append(key)
                produce(topic, value, key, on_delivery=on_delivery)
                produce(topic, value, key)
        Twice.inner, self.queries._producer = self.queries._producer, Twice()
        self.ask("films", 1, [1, 0])
        eventually(lambda: self.queries.counters.duplicates == 1, "the second answer")
        self.assertEqual((self.queries.counters.answered, len(sent)), (1, 1))

    def test_an_answer_that_cannot_be_read_is_an_error_of_this_package(self):
        request_id, future = self.queries._pending.add(PATIENCE_S)
        producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap})
        producer.produce("sluice.answers", b"{}", request_id)
        producer.flush(PATIENCE_S)
        self.assertRegex(str(future.exception(PATIENCE_S)), "an answer that cannot be read: ")
        self.assertIsInstance(future.exception(0), sluice_client.SluiceError)

    def test_without_an_answer_the_time_ends_and_the_answer_is_late(self):
        self.ask("films", 1, [1, 0])
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            with self.assertRaises(NoAnswer):
                self.queries.ask(Query("films", 1, [1, 0]), 0.2)
            left = Queries(broker.bootstrap)
            open_one = left.submit(Query("films", 1, [1, 0]), PATIENCE_S)
            left.close()
            self.assertIsInstance(open_one.exception(0), Closed)
            with self.assertRaises(Closed):
                left.submit(Query("films", 1, [1, 0]))
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        eventually(lambda: self.queries.counters.late == 1, "the late answer", 60)
        self.assertEqual(self.queries.counters.timed_out, 1)
        self.ask("films", 1, [1, 0])

    def test_a_closed_client_is_freed_with_the_queries_that_were_not_sent(self):
        left = Queries(broker.bootstrap, producer={"linger.ms": 60000})
        future = left.submit(Query("films", 1, [1, 0]), PATIENCE_S)
        left.close()
        self.assertIsInstance(future.exception(0), Closed)
        freed = weakref.ref(left)
        del left
        gc.collect()
        self.assertIsNone(freed())

    def test_a_topic_that_does_not_exist_is_named(self):
        for topics in ({"answers_topic": "no.such.topic"}, {"queries_topic": "no.such.topic"}):
            with self.assertRaisesRegex(sluice_client.SluiceError, "no.such.topic"):
                Queries(broker.bootstrap, **topics)
        with Catalogue({**QUIET, "bootstrap.servers": broker.bootstrap, "topic.metadata.propagation.max.ms": 10},
                       "no.such.topic") as catalogue:
            catalogue.put("a", {"films": [1, 0]})
            with self.assertRaisesRegex(sluice_client.WriteError, "no.such.topic"):
                catalogue.flush(PATIENCE_S)


class NoBrokers(Case):
    def test_clients_without_a_broker_say_so(self):
        address = f"127.0.0.1:{harness.free_port()}"
        with self.assertRaisesRegex(sluice_client.NoBroker, address):
            sluice_client.Queries({**QUIET, "bootstrap.servers": address}, start_timeout_s=0.5)
        catalogue = sluice_client.Catalogue({**QUIET, "bootstrap.servers": address})
        catalogue.put("a", {"films": [1, 2]})
        with self.assertRaisesRegex(sluice_client.WriteError, f"after 2 s: .*{address}"):
            catalogue.flush(2)
        future = catalogue.put("b", {"films": [1, 2]})
        with self.assertRaises(sluice_client.WriteError):
            catalogue.close(0)
        self.assertIsInstance(future.exception(PATIENCE_S), sluice_client.WriteError)


class GrowingAnswers(Case):
    """A test that changes the answer topic."""

    def test_new_partitions_are_read(self):
        with Queries(broker.bootstrap, refresh_s=0.2) as queries:
            broker.grow_topic("sluice.answers", 4)
            # The daemon writes to new partitions when its own look has found them. Write there in its stead.
            request_id, future = queries._pending.add(PATIENCE_S)
            answer = sluice_client.answer.pb.Answer(id=request_id)
            producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap})
            producer.produce("sluice.answers", answer.SerializeToString(), request_id, partition=3)
            producer.flush(PATIENCE_S)
            self.assertEqual(future.result(PATIENCE_S).hits, [])


class Examples(Case):
    def run_example(self, *words):
        done = subprocess.run(words, cwd=data.ROOT, capture_output=True, text=True, timeout=120 * SLOWNESS,
                              env={**harness.os.environ, "PATIENCE_S": str(int(PATIENCE_S))})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_page_of_the_python_client(self):
        page = (data.ROOT / "clients" / "python" / "README.md").read_text()
        (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        program = program.replace("127.0.0.1:9092", broker.bootstrap).replace("timeout_s=2", f"timeout_s={PATIENCE_S}")
        said = self.run_example("/usr/bin/python3", "-c", f"import sys; sys.path.insert(0, {installed.SITE!r})\n{program}")
        self.assertEqual(said, "[('alien', 3.0), ('heat', 1.0)] True\n{'alien'}\n")

    def test_shell(self):
        answer, duplicates, without = self.run_example("examples/shell/films", broker.bootstrap).splitlines()
        self.assertRegex(answer, r'^answer: .*"hits":\[\{"key":"alien","score":3\.0\},\{"key":"heat","score":1\.0\}\]')
        self.assertEqual(duplicates, "duplicates: 1")
        self.assertRegex(without, r'^without alien: .*"hits":\[\{"key":"heat","score":1\.0\},\{"key":"ran"')


class JavaClient(Case):
    """The client in clients/java, compiled with its tests."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = harness.tempfile.TemporaryDirectory(prefix="sluice-java-")
        cls.addClassCleanup(folder.cleanup)
        cls.jars = f"{folder.name}:{data.ROOT}/build/deps/kafka/*"
        sources = [*(data.ROOT / "clients/java/src/main/java").rglob("*.java"),
                   *(data.ROOT / "tests/clients/java").rglob("*.java")]
        done = subprocess.run(["javac", "-Xlint:all", "-Werror", "--release", "17", "-cp", "build/deps/kafka/*",
                               "-d", folder.name, *map(str, sources)], cwd=data.ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def java(self, *words):
        done = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                               f"-Dpatience_s={int(PATIENCE_S)}", "-cp", self.jars, *words],
                              cwd=data.ROOT, capture_output=True, text=True, timeout=120 * SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_book_of_requests(self):
        self.assertIn("9 tests passed", self.java("sluice.client.PendingTest"))

    def test_items_and_queries(self):
        self.assertIn("7 tests passed",
                      self.java("sluice.client.DaemonTest", broker.bootstrap, str(int(PATIENCE_S))))

    def test_queries_without_a_daemon(self):
        for topic in ("java.queries", "java.answers"):
            broker.create_topic(topic, 1)
        said = self.java("sluice.client.QueriesTest", broker.bootstrap, str(int(PATIENCE_S)), "java.queries",
                         "java.answers")
        self.assertIn("13 tests passed", said)

    def test_the_example(self):
        said = self.java("examples/java/Films.java", broker.bootstrap)
        lines = re.findall(r"^(?:answer|without|error).*$", said, re.MULTILINE)
        self.assertEqual(lines[:2], ["answer: alien=3.0 heat=1.0, exact", "without alien: heat=1.0 ran=0.0"])
        self.assertRegex(lines[2], "error: BAD_QUERY: .*2")

    def test_the_page(self):
        page = (data.ROOT / "clients" / "java" / "README.md").read_text()
        (program,) = re.findall(r"^```java\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        program = program.replace("127.0.0.1:9092", broker.bootstrap)
        program = program.replace("ofSeconds(5)", f"ofSeconds({int(PATIENCE_S)})")
        with harness.tempfile.TemporaryDirectory(prefix="sluice-page-") as folder:
            path = harness.Path(folder, "Use.java")
            path.write_text(program)
            said = self.java(str(path))
        self.assertRegex(said, r"alien 3\.0\nheat 1\.0\ntrue\nalien 1979\n")


if __name__ == "__main__":
    data.main()
