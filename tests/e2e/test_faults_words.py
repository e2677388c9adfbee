#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the daemon and its tools report.

They cover configuration checks, readiness, permanent failures, SIGHUP, the result of a load, and the HTTP endpoint with
slow clients.
"""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import data
import harness
import models
import real_broker
import safetensors_io
from harness import SLOWNESS, Case, System, eventually


EXIT_DISCONTINUITY, EXIT_CONFIG = 3, 78
N_SLOW, PROBE_PERIOD_S, ATTACK_S = 500, 0.05, 5


def setUpModule():
    global folder, paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-words-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"books": Path(folder.name) / "books.safetensors"}
    safetensors_io.write(paths["books"], {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
    spaces = {name: models.load(path) for name, path in paths.items()}


def run(program, *arguments, stdin=None):
    done = subprocess.run([harness.build_dir() / program, *map(str, arguments)], capture_output=True, text=True,
                          input=stdin, timeout=120 * SLOWNESS)
    return done.returncode, done.stdout, done.stderr


class CheckConfig(unittest.TestCase):
    """Tests of sluiced --check-config: it refuses what start refuses, reports all problems, and leaves no files."""

    def check(self, config):
        with tempfile.TemporaryDirectory(prefix="sluice-check-") as where:
            path = Path(where) / "sluice.yaml"
            path.write_text(config.replace("STORE", f"{where}/store").replace("BOOKS", str(paths["books"])))
            code, out, errors = run("sluiced", "--check-config", "--config", path)
            self.assertEqual(["sluice.yaml"], [p.name for p in Path(where).iterdir()], "the check left files behind")
            if code == 0:
                return []
            code_of_start, log, errors_of_start = run("sluiced", "--config", path)
            self.assertEqual(EXIT_CONFIG, code)
            self.assertEqual(EXIT_CONFIG, code_of_start, "start and --check-config disagree")
            places = re.findall(re.escape(str(path)) + r":\d+: \S+", errors)
            self.assertTrue(any(place in log + errors_of_start for place in places), f"{places} not in {log}")
            return errors.replace(f"sluiced: {path}", "").splitlines()

    def test_what_is_right_is_fine(self):
        self.assertEqual([], self.check("embedded_broker: {enabled: true}\nstore: {path: STORE}\n"
                                        "spaces: {books: {model: BOOKS}}\n"))

    def test_a_catalogue_that_cannot_fit_is_refused(self):
        found = self.check("embedded_broker: {enabled: true}\nstore: {path: STORE}\nspaces: {books: {model: BOOKS}}\n"
                           "catalogue:\n  max_items: 4000000000\n")
        self.assertEqual(1, len(found), found)
        self.assertRegex(found[0], r"^:5: catalogue\.max_items = 4000000000 needs .* this machine has .* items fit$")

    def test_a_backend_that_is_not_there_is_refused(self):
        found = self.check("embedded_broker: {enabled: true}\nstore: {path: STORE}\nspaces: {books: {model: BOOKS}}\n"
                           "engine: {backend: cuda}\n")
        if found:  # nothing is found if the machine has a GPU
            self.assertEqual(1, len(found), found)
            self.assertRegex(found[0], r"^:4: engine\.backend is cuda, but ")

    def test_what_a_merge_does_not_use_is_pointed_out(self):
        with tempfile.TemporaryDirectory(prefix="sluice-check-") as where:
            path = Path(where) / "merge.yaml"
            path.write_text(f"role: merge\nkafka: {{bootstrap.servers: '127.0.0.1:1'}}\nstore: {{path: {where}/store}}\n"
                            f"spaces:\n  books: {{model: {paths['books']}}}\nmodels:\n  topic: m\n  files_topic: f\n")
            # Names of topics have an effect: no reply is sent there.
            code, out, errors = run("sluiced", "--check-config", "--config", path)
            self.assertEqual((0, f"{path}: fine\n"), (code, out))
            self.assertEqual([f"sluiced: {path}:{line}: note: {what} has no effect with role: merge"
                              for line, what in ((3, "store"), (5, "spaces"))], errors.splitlines())

    def test_a_file_that_is_not_there_is_asked_for(self):
        for program, words in (("sluiced", ["--check-config"]), ("sluicectl", ["status"])):
            code, _, errors = run(program, "--config", "/nowhere/sluice.yaml", *words)
            self.assertNotEqual(0, code)
            self.assertIn("/nowhere/sluice.yaml cannot be opened: No such file or directory: give the configuration's "
                          "path as --config FILE", errors)

    def test_a_model_that_is_missing_is_refused(self):
        found = self.check("embedded_broker: {enabled: true}\nstore: {path: STORE}\n"
                           "spaces:\n  books: {model: BOOKS}\n  absent: {model: absent.safetensors}\n")
        self.assertEqual(1, len(found), found)
        self.assertRegex(found[0], r"^:5: spaces\.absent: .*absent\.safetensors")

    def test_a_message_that_cannot_be_read_is_refused(self):
        folder = data.ROOT / "tests/ingest/protobuf"
        for schemas, message, path, due in (
                ("shop.desc", "shop.v1.Flim", "embedding", 'there is no message "shop.v1.Flim" in it, which catalogue.message names; it has: '),
                ("shop.proto", "shop.v1.Film", "embedding", "it is no descriptor set .* make it of the .proto files"),
                (".", "shop.v1.Film", "embedding", "is a folder: expected the file of a descriptor set"),
                ("shop.desc", "shop.v1.Film", "Embedding", 'shop.v1.Film has no field "Embedding"')):
            found = self.check("embedded_broker: {enabled: true}\nstore: {path: STORE}\n"
                               f"spaces: {{books: {{model: BOOKS}}}}\ncatalogue:\n  format: protobuf\n"
                               f"  schemas: {folder / schemas}\n  message: {message}\n"
                               f"  mapping: {{vectors: {{books: {path}}}}}\n")
            self.assertEqual(1, len(found), found)
            self.assertRegex(found[0], f"^:[68]: .*{due}")

    def test_a_lifetime_that_is_no_attribute_is_told_once(self):
        found = self.check("embedded_broker: {enabled: true}\nstore: {path: STORE}\nspaces: {books: {model: BOOKS}}\n"
                           "attributes: {price: number}\ncatalogue:\n  not_before: nope\n  expires: price\n")
        self.assertEqual(2, len(found), found)
        self.assertRegex(found[0], r'^:6: catalogue\.not_before: there is no attribute "nope"')
        self.assertRegex(found[1], r"^:7: catalogue\.expires: the attribute price has the type number")

    def test_all_problems_are_told_in_one_run(self):
        found = self.check("embedded_broker: {enabled: true}\n"
                           "store: {path: STORE/below/it}\n"
                           "catalogue: {max_itms: 3, batch_items: 0}\n"
                           "query: {kafka: {max.poll.interval.ms: 2000}}\n"
                           "spaces:\n"
                           "  books: {model: BOOKS}\n"
                           "  absent: {model: absent.safetensors}\n"
                           "  nonsense: {model: sluice.yaml}\n")
        expected = [r"^:3: .*max_itms.*nearest is catalogue\.max_items", r"^:3: catalogue\.batch_items expects",
                    r"^:2: store\.path ", r"^:4: .*max\.poll\.interval\.ms",
                    r"^:7: spaces\.absent: .*absent\.safetensors",
                    r"^:8: spaces\.nonsense: .*not a safetensors file"]
        for pattern in expected:
            self.assertTrue(any(re.search(pattern, line) for line in found), f"{pattern} is not among {found}")
        self.assertEqual(len(expected), len(found), found)


class Words(Case):
    """Tests that share one daemon with its embedded broker. Each leaves it running with its original configuration."""

    @classmethod
    def setUpClass(cls):
        cls.system = System(paths, spaces, name="words")
        cls.addClassCleanup(cls.system.close)
        cls.system.daemon.start()
        cls.early = eventually(lambda: cls.system.daemon.get("/readyz"), "the HTTP address")
        cls.system.daemon.wait_ready()
        cls.text = cls.system.daemon.config_path.read_text()

    @classmethod
    def tearDownClass(cls):
        cls.system.daemon.stop()

    def ctl(self, *arguments, stdin=None):
        return run("sluicectl", "--config", self.system.daemon.config_path, *arguments, stdin=stdin)

    # ------------------------------------------------------------------------------------------ readiness

    def test_why_it_is_not_ready_is_said(self):
        code, body = self.early
        self.assertEqual(503, code)
        self.assertRegex(body, r"^not ready: (starting|loading the store|waiting for \S.*|catching up.*)\n$")
        self.assertRegex(self.system.daemon.log(),
                         r'event=readiness ready=no reason="waiting for the query partitions"')
        self.assertEqual((200, "ready\n"), self.system.daemon.get("/readyz"))
        status = self.system.daemon.status()
        self.assertEqual((True, None), (status["ready"], status["not_ready"]))
        code, out, _ = self.ctl("status")
        self.assertEqual(0, code)
        self.assertRegex(out, r"^sluiced \S+, ready, up ")

    # ------------------------------------------------------------------------------------------ SIGHUP

    def hang_up(self, config, expected):
        before = len(self.system.daemon.log())
        self.system.daemon.config_path.write_text(config)
        self.system.daemon.process.send_signal(signal.SIGHUP)

        def said():
            self.assertTrue(self.system.daemon.is_running(), self.system.daemon.log_tail())
            return re.search(expected, self.system.daemon.log()[before:])
        return eventually(said, expected)

    def test_sighup_reloads_what_it_can_and_names_the_rest(self):
        changed = self.text.replace("max_items: 60000", "max_items: 50000") + "log:\n  level: debug\n"
        self.assertNotEqual(self.text, changed)
        self.hang_up(changed, r'event=reloaded .*changed="log\.level" needs_restart="catalogue\.max_items"')
        self.hang_up(self.text, r'event=reloaded .*changed="log\.level" needs_restart=""')
        self.hang_up(self.text, r'event=reloaded .*changed="" needs_restart=""')

    def test_sighup_with_a_wrong_file_changes_nothing(self):
        self.hang_up(self.text + "nonsense: 1\nlog: {level: loud}\n",
                     r'event=reload_refused problem=".*nonsense.*\n.*event=reload_refused problem=".*log\.level.*\n'
                     r'.*event=reload_refused .*problems=2')
        self.assertEqual(200, self.system.daemon.get("/readyz")[0])
        self.hang_up(self.text, r'event=reloaded .*changed="" needs_restart=""')

    def test_sighup_with_a_pipe_for_a_file_changes_nothing(self):
        path = self.system.daemon.config_path
        before = len(self.system.daemon.log())
        path.unlink()
        os.mkfifo(path)
        try:
            self.system.daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: re.search(r"event=reload_refused problem=.*is not a regular file",
                                         self.system.daemon.log()[before:]), "the refusal")
        finally:
            path.unlink()
            self.hang_up(self.text, r'event=reloaded .*changed="" needs_restart=""')

    def test_the_file_may_be_a_pipe_at_the_start(self):
        path = self.system.folder / "pipe"
        os.mkfifo(path)
        done = subprocess.Popen([harness.build_dir() / "sluiced", "--check-config", "--config", path],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.system.folder)
        path.write_text(self.text)
        out, _ = done.communicate(timeout=120 * SLOWNESS)
        self.assertEqual((0, f"{path}: fine\n"), (done.returncode, out))

    # ------------------------------------------------------------------------------------------ sluicectl

    def test_load_says_what_was_sent_and_what_was_refused(self):
        lines = [{"key": f"load {i}", "value": {"parts": {"books": {"vector": [i, 1][:1 if i % 2 else 2]}}}}
                 for i in range(5)]
        code, out, errors = self.ctl("load", "-", stdin="\n".join(map(json.dumps, lines)) + "\n")
        self.assertEqual(1, code)
        self.assertRegex(out, r"^sent 5 records in .*; those that the daemon took were visible to queries ")
        self.assertNotIn("loaded", out)
        self.assertRegex(errors, r"the daemon has refused 2 records")
        code, out, errors = self.ctl("load", "-", stdin=json.dumps(lines[0]) + "\n")
        self.assertEqual((0, ""), (code, errors))
        self.assertRegex(out, r"^sent 1 record in .*; all were visible to queries ")
        code, out, errors = self.ctl("load", "-", stdin=json.dumps(lines[1]) + "\n")
        self.assertEqual(1, code)
        self.assertNotIn("visible", out)
        self.assertIn("the daemon has refused 1 record meanwhile", errors)

    def test_delete_says_whether_there_was_an_item(self):
        code, out, _ = self.ctl("put", "short-lived", '{"parts": {"books": {"vector": [1, 2]}}}')
        self.assertEqual(0, code)
        self.assertRegex(out, r"^visible after ")
        code, out, _ = self.ctl("delete", "short-lived")
        self.assertEqual(0, code)
        self.assertRegex(out, r"^deleted after ")
        code, out, _ = self.ctl("delete", "short-lived")
        self.assertEqual(0, code)
        self.assertRegex(out, r"^there was no such item")
        code, _, errors = self.ctl("put", "refused", '{"parts": {"books": {"vector": [1]}}}')
        self.assertEqual(1, code)
        self.assertIn("the daemon has refused it", errors)

    def test_a_part_that_nobody_serves_is_not_called_visible(self):
        code, out, errors = self.ctl("put", "aside", '{"parts": {"boks": {"vector": [1, 2]}}}')
        self.assertEqual(0, code)
        self.assertRegex(out, r"^stored, but not served, after ")
        self.assertIn('the configuration has no space "boks"', errors)
        code, out, errors = self.ctl("put", "aside",
                                     '{"parts": {"boks": {"vector": [1, 2]}, "books": {"vector": [1, 2]}}}')
        self.assertRegex(out, r"^visible after ")
        self.assertIn('"boks"', errors)
        self.ctl("delete", "aside")

    def test_an_unknown_space_is_told_which_there_are(self):
        code, out, errors = self.ctl("query", "--json", '{"space": "boks", "k": 1, "vector": [1, 2]}')
        self.assertNotEqual(0, code)
        self.assertIn('there is no space "boks"; there is books', out + errors)

    def test_a_query_without_k_is_told_its_limits(self):
        code, _, errors = self.ctl("query", "--json", '{"space": "books", "vector": [1, 2]}')
        self.assertEqual(1, code)
        self.assertIn("k is missing, or 0; it must be from 1 to 50000 (query.max_k)", errors)

    def test_a_merges_configuration_is_not_taken_for_the_catalogues(self):
        path = self.system.folder / "merge.yaml"
        path.write_text("role: merge\nkafka: {bootstrap.servers: '127.0.0.1:1'}\n")  # nothing is there: it is not asked
        load = self.system.folder / "none.jsonl"
        load.write_text("")
        for words in (["put", "a", '{"parts": {"books": {"vector": [1, 2]}}}'], ["delete", "a"], ["load", load],
                      ["get", "a"], ["seen", "a"], ["model", "list"], ["model", "switch", "books", "2"], ["rebuild"],
                      ["topics", "create"], ["tail", "items"], ["dead-letters", "list"], ["verify"],
                      ["backup", self.system.folder / "backup"]):
            code, out, errors = run("sluicectl", "--config", path, *words)
            self.assertEqual((1, ""), (code, out), words)
            self.assertIn(f"{path} is the configuration of a merge, which has no catalogue: give that of a shard as "
                          "--config FILE", errors)

    def test_who_does_not_answer_is_told(self):
        query = '{"id": "q", "space": "books", "k": 1, "vector": [1, 2]}'
        answers, nobodys = self.system.topic("answers"), self.system.topic("dead-letters")
        path = self.system.folder / "silent.yaml"
        for listen, reason in (("127.0.0.1:1", "nothing answers at http://127.0.0.1:1: is sluiced running"),
                               (f"127.0.0.1:{self.system.daemon.port}", "is ready: does it have the same topics?")):
            path.write_text(f"role: merge\nkafka: {{bootstrap.servers: '{self.system.daemon.status()['kafka']['bootstrap']}'}}\n"
                            f"query: {{topic: {nobodys}, answer_topic: {answers}}}\n"
                            f"catalogue: {{dead_letter_topic: other}}\nhttp: {{listen: '{listen}'}}\n")
            code, out, errors = run("sluicectl", "--config", path, "query", "--timeout-ms", "500", "--json", query)
            self.assertEqual((1, ""), (code, out))
            self.assertIn("query q: no answer came in time", errors)
            self.assertIn(f"queries were written to topic {nobodys}, and answers are read from topic {answers}", errors)
            self.assertIn(reason, errors)

    def test_config_without_a_file_is_told(self):
        for words in (["--config"], ["status", "--config"]):
            code, _, errors = run("sluicectl", *words)
            self.assertEqual(2, code)
            self.assertIn("--config expects a file", errors)

    def test_there_is_no_rebuild_to_accept(self):
        self.assertEqual((0, "no rebuild is under way\n", ""), self.ctl("rebuild"))
        code, _, errors = self.ctl("rebuild", "accept")
        self.assertEqual(1, code)
        self.assertIn("there is no rebuild to accept", errors)

    # ------------------------------------------------------------------------------------------ HTTP

    def test_metrics_hold_histograms(self):
        self.ctl("put", "seen", '{"parts": {"books": {"vector": [1, 2]}}}')
        _, text = self.system.daemon.get("/metrics")
        for name in ("visible", "queued", "answer"):  # test_metrics.py has those with labels
            self.assertIn(f"# TYPE sluice_{name}_seconds histogram\n", text)
            buckets = re.findall(rf'^sluice_{name}_seconds_bucket{{le="(\S+)"}} (\d+)$', text, re.M)
            self.assertEqual("+Inf", buckets[-1][0])
            bounds, counts = [float(b) for b, _ in buckets], [int(n) for _, n in buckets]
            self.assertEqual((sorted(bounds), sorted(counts)), (bounds, counts))
            self.assertEqual(counts[-1], int(re.search(rf"^sluice_{name}_seconds_count (\d+)$", text, re.M)[1]))
        latency = self.system.daemon.status()["latency_us"]["visible"]
        self.assertGreater(latency["count"], 0)

    def test_head_methods_and_hosts(self):
        url = f"http://127.0.0.1:{self.system.daemon.port}/status"

        def ask(method="GET", host=None):
            request = urllib.request.Request(url, method=method, headers={"Host": host} if host else {})
            try:
                with urllib.request.urlopen(request, timeout=10 * SLOWNESS) as response:
                    return response.status, response.headers, response.read()
            except urllib.error.HTTPError as error:
                return error.code, error.headers, error.read()
        code, headers, body = ask("HEAD")
        self.assertEqual((200, b"", "no-store"), (code, body, headers["Cache-Control"]))
        code, headers, _ = ask("POST")
        self.assertEqual((405, "GET, HEAD"), (code, headers["Allow"]))
        self.assertEqual(200, ask(host="localhost:1")[0])
        code, _, body = ask(host="rebound.example")
        self.assertEqual(421, code)
        self.assertNotIn(b"version", body)

    def test_slow_connections_do_not_lock_out_probes(self):
        """500 clients send their headers one byte at a time, and reconnect when they are disconnected.

        A probe whose request comes late may lose its connection to newer ones, so it may ask again, as orchestrators
        do: they act after three failures.
        """
        address = ("127.0.0.1", self.system.daemon.port)
        stop = threading.Event()

        def connect():
            client = socket.create_connection(address, timeout=10 * SLOWNESS)
            client.setblocking(False)
            client.send(b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            return client

        def trickle(clients):
            while not stop.wait(0.1):
                for i, client in enumerate(clients):
                    try:
                        client.send(b"x")
                    except BlockingIOError:
                        pass
                    except OSError:
                        client.close()
                        try:
                            clients[i] = connect()
                        except OSError:
                            pass  # try again in the next round

        def probe(path):
            for _ in range(3):
                answer = self.system.daemon.get(path)
                if answer is not None:
                    return answer[0]
            return None

        clients = [connect() for _ in range(N_SLOW)]
        thread = threading.Thread(target=trickle, args=[clients])
        thread.start()
        asked = answered = 0
        try:
            until = time.monotonic() + ATTACK_S
            while time.monotonic() < until:
                for path in ("/healthz", "/readyz"):
                    asked += 1
                    answered += probe(path) == 200
                time.sleep(PROBE_PERIOD_S)
        finally:
            stop.set()
            thread.join()
            for client in clients:
                client.close()
        self.assertEqual(asked, answered, f"{asked - answered} of {asked} probes were not answered")
        self.assertGreater(asked, 10)


class Ends(Case):
    """A test of a failure that a restart cannot fix: the exit status is specific, and the log says what failed."""

    def setUp(self):
        self.broker = real_broker.open_for(self.addCleanup)

    def test_a_policy_stop_says_so(self):
        self.system = System(paths, spaces, {"catalogue": {"on_discontinuity": "stop"}}, self.broker.bootstrap, "ends",
                             "ends")
        self.addCleanup(self.system.close)
        for kind in ("catalogue", "queries", "answers", "dead-letters"):
            self.broker.create_topic(self.system.topic(kind), 1)
        self.system.open()
        for i in range(10):
            self.system.put(b"item %d" % i)
        self.system.sync()
        eventually(lambda: self.system.daemon.status()["items"] == 10, "the items")
        self.system.daemon.stop()
        self.broker.delete_topic(self.system.topic("catalogue"))
        self.broker.create_topic(self.system.topic("catalogue"), 1)
        before = len(self.system.daemon.log())
        self.system.daemon.start()
        self.assertEqual(EXIT_DISCONTINUITY, self.system.daemon.wait_exit())
        last = [line for line in self.system.daemon.log()[before:].splitlines() if "event=fatal " in line][-1]
        self.assertIn('error="the catalogue topic does not continue the store"', last)
        self.assertIn("catalogue.on_discontinuity", last)
        self.assertNotIn("operating system", last)


class Repeats(Case):
    def test_the_same_reason_is_logged_so_often_and_then_counted(self):
        system = System(paths, spaces, name="repeats")
        self.addCleanup(system.close)
        system.open()
        for i in range(50):
            system.put_raw(b"broken %d" % i, b"\xff")
        system.sync()
        eventually(lambda: system.daemon.status()["counters"]["dead_letters"] == 50, "the dead letters")
        system.daemon.stop()
        log = system.daemon.log()
        repeats = [int(n) for n in re.findall(r"event=dead_letter repeated=(\d+) topic=.* reason=", log)]
        written = log.count("event=dead_letter ") - len(repeats)
        self.assertEqual(written + sum(repeats), 50)
        self.assertGreaterEqual(written, 20)
        self.assertTrue(repeats)
        self.assertRegex(log.splitlines()[-1], "event=stopped status=0")


if __name__ == "__main__":
    data.main()
