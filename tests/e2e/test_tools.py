#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of sluicectl's commands for people on call: items, users and dead letters, with one daemon."""

import fcntl
import json
import os
import re
import resource
import select
import signal
import struct
import subprocess
import tempfile
import termios
import unittest
import urllib.parse
from pathlib import Path

from confluent_kafka import Producer

import data
import harness
import models
import safetensors_io
import wire
from harness import Daemon, eventually
from wire import pb

BINARY = b"\xff\x00/a?b%41"


def setUpModule():
    """Start one daemon with the embedded broker."""
    global daemon, folder
    temporary = tempfile.TemporaryDirectory(prefix="sluice-tools-")
    unittest.addModuleCleanup(temporary.cleanup)
    folder = Path(temporary.name)
    safetensors_io.write(folder / "films.safetensors", {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
    models.random_mol(data.generator("models of the tools"), folder / "taste.safetensors")
    daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                     "spaces": {name: {"model": f"{name}.safetensors"} for name in ("films", "taste")},
                     "seen": {"topic": "sluice.seen"},
                     "attributes": {"price": "number", "begins": "time", "ends": "time"},
                     "catalogue": {"not_before": "begins", "expires": "ends", "kafka": {"fetch.wait.max.ms": 1}}},
                    folder)
    unittest.addModuleCleanup(daemon.kill)
    daemon.start().wait_ready()


class Tools(unittest.TestCase):
    def ctl(self, *words, code=0, **more):
        done = subprocess.run([harness.build_dir() / "sluicectl", "--config", daemon.config_path, *words],
                              capture_output=True, text=True, timeout=60 * harness.SLOWNESS, **more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def produce(self, topic, key, value, headers=(), partition=-1):
        """Write a record, and return its (partition, offset)."""
        placed = []
        producer = Producer({**harness.QUIET, "bootstrap.servers": daemon.status()["kafka"]["bootstrap"]})
        producer.produce(topic, value, key, headers=list(headers), partition=partition,
                         on_delivery=lambda error, m: placed.append((error, m.partition(), m.offset())))
        self.assertEqual(producer.flush(60 * harness.SLOWNESS), 0)
        error, *place = placed[0]
        self.assertIsNone(error)
        return tuple(place)


class Get(Tools):
    def test_get_shows_what_put_and_load_take(self):
        value = {"parts": {"films": {"vector": [0.5, -2.5]}, "later": {"codes": [1, 200]}},
                 "attributes": {"price": 9.5}}
        self.ctl("put", "get me", json.dumps(value))
        line = self.ctl("get", "get me")
        shown = json.loads(line)
        self.assertEqual((shown["key"], shown["value"]), ("get me", value))
        self.assertEqual(set(shown["record"]), {"partition", "offset", "timestamp_unix_ms"})
        self.ctl("delete", "get me")
        self.assertIn('there is no item "get me"', self.ctl("get", "get me", code=1))
        self.ctl("load", "-", input=line)
        self.assertEqual(json.loads(self.ctl("get", "get me"))["value"], value)
        only = self.ctl("get", "--value", "get me")
        self.assertEqual(json.loads(only), value)
        self.ctl("put", "another", only)
        self.assertEqual(len(self.ctl("get", "get me", "another").splitlines()), 2)

    def test_no_text_controls_the_terminal(self):
        key = "\x1b[31m \x7f \x9b31m \u202e \u2066 caf\xe9"
        self.ctl("put", key, '{"parts": {"films": {"vector": [1000, 1000]}}}')
        self.produce("sluice.seen", "odd", json.dumps({"items": [key]}))
        eventually(lambda: self.ctl("seen", "odd"), "the user")
        query = '{"space": "films", "k": 1, "vector": [1, 1]}'
        n = str(len(harness.TopicReader(daemon.status()["kafka"]["bootstrap"], "sluice.catalogue").read()))
        shown = {name: self.ctl(*words) for name, words in {
            "get": ["get", key], "seen": ["seen", "--json", "odd"], "table": ["query", "--json", query],
            "query": ["query", "--format", "json", "--json", query],
            "tail": ["tail", "items", "--newest", n, "--count", n]}.items()}
        for name, text in shown.items():
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", name)
            self.assertIn("caf\xe9", text, name)
        self.assertEqual(json.loads(shown["get"])["key"], key)
        self.assertEqual(json.loads(shown["seen"])["items"], [key])
        self.assertEqual(json.loads(shown["query"])["hits"][0]["key"], key)
        self.assertIn(key, [json.loads(line)["key"] for line in shown["tail"].splitlines()])
        self.ctl("delete", key)

    def test_put_says_why_it_was_refused_and_null_deletes(self):
        said = self.ctl("put", "bad", '{"parts": {"films": {"vector": [1, 2, 3]}}}', code=1)
        self.assertIn('the daemon has refused it: part "films": vector has 3 numbers where the model needs 2', said)
        self.ctl("put", "short-lived", '{"parts": {"films": {"vector": [1, 2]}}}')
        self.assertIn("deleted", self.ctl("put", "short-lived", "null"))
        self.assertIn("no item", self.ctl("get", "short-lived", code=1))

    def test_a_mistyped_command(self):
        self.assertIn('unknown command "staus"; the nearest is status', self.ctl("staus", code=2))

    def test_output_that_cannot_be_written_is_a_failure(self):
        for words in (["status"], ["--help"], ["--version"], ["status", "--json"], ["settings"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([harness.build_dir() / "sluicectl", "--config", daemon.config_path, *words],
                                      stdout=full, stderr=subprocess.PIPE, text=True, timeout=60 * harness.SLOWNESS)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("the output could not be written to its end", done.stderr)

    def test_empty_words_select_nothing(self):
        for words in (["dead-letters", "list", "--reason", ""], ["dead-letters", "retry", "--all", "--topic", ""],
                      ["query", "--space", "films", "--vector", "1,0", "--filter", ""]):
            self.ctl(*words, code=2)
        for words in (["verify", ""], ["load", ""], ["topk", "", "--output", "x"], ["get", ""], ["put", "", "{}"],
                      ["delete", "a", ""], ["seen", ""], ["dead-letters", "retry", ""], ["model", "list", ""]):
            self.assertIn(f"an argument of {words[0]} is empty", self.ctl(*words, code=2))

    def test_status_names_the_seen_topic(self):
        self.assertRegex(self.ctl("status"), r"\n  seen +sluice\.seen\n")

    def test_status_says_what_is_unknown_and_what_was_complained_of(self):
        self.ctl("put", "with-colour", '{"attributes": {"colour": "red"}}')
        self.ctl("put", "bad", '{"parts": {"films": {"vector": [1, 2, 3]}}}', code=1)
        shown = self.ctl("status")
        self.assertRegex(shown, r"\nwhat items have, and the configuration does not\n(  space .*\n)*"
                                r"  attribute colour \(values: [1-9][0-9]*\)\n")
        self.assertRegex(shown, r"\n  partitions       partition 0, next [0-9]+, end [0-9]+, lag 0\n                   p")
        self.assertNotIn("[", shown.replace(shown[shown.index("newest warnings"):], ""))
        self.assertRegex(shown, r"\n  partition 0      [0-9,]+\n")
        complaints = shown[shown.index("\nnewest warnings and errors\n"):]
        self.assertRegex(complaints, r'\n  20[0-9-]+T[0-9:.]+Z warn  event=dead_letter .* key="bad" ')
        self.assertRegex(shown, r"\n  dead_letters +[1-9]")
        self.assertNotRegex(shown, r"\n  swept ")

    def test_status_says_what_each_space_needs(self):
        spaces = {row["name"]: row for row in daemon.status()["spaces"]}
        names = ("item_vector", "item_codes", "subitems", "query_vector")
        self.assertEqual([spaces["films"][name] for name in names], [2, 0, 0, 2])
        taste = models.load(folder / "taste.safetensors")
        self.assertEqual([spaces["taste"][name] for name in names], [taste.dx, 0, 0, taste.dq])

    def test_pages_take_any_key(self):
        self.ctl("load", "-", input=json.dumps({"key": wire.key_json(BINARY), "value":
                                                {"parts": {"films": {"vector": [1, 2]}}}}))
        code, text = daemon.get(f"/items/{urllib.parse.quote(BINARY, safe='')}")
        self.assertEqual((code, json.loads(text)["key"]), (200, wire.key_json(BINARY)))
        for path, code in {"/items/nobody": 404, "/items/": 400, "/items/%4": 400, "/items/%zz": 400,
                           "/items/" + "x" * 256: 404, "/items/" + "x" * 257: 400, "/items/" + "%41" * 257: 400,
                           "/seen/nobody": 200, "/itemsnobody": 404}.items():
            self.assertEqual(daemon.get(path)[0], code, path)

    def test_seen(self):
        for items in (["alien", "heat"], [wire.key_json(BINARY)]):
            self.produce("sluice.seen", "user 7", json.dumps({"items": items}))
        eventually(lambda: "AEE" in self.ctl("seen", "user 7") or "base64:" in self.ctl("seen", "user 7"), "the user")
        self.assertEqual(json.loads(self.ctl("seen", "--json", "user 7")),
                         {"user": "user 7", "items": ["alien", "heat", wire.key_json(BINARY)]})
        self.assertEqual(self.ctl("seen", "user 7").splitlines()[:2], ["alien", "heat"])
        self.assertEqual(self.ctl("seen", "nobody"), "")
        self.assertIn("a user has 1 to 256 bytes, not 257", self.ctl("seen", "u" * 257, code=2))


class Queries(Tools):
    @classmethod
    def setUpClass(cls):
        vectors = {"like-a": [3, 1], "like-b": [2, 1], "like-c": [1, 3], "like-cheap": [9, 9], "like-seen": [8, 8],
                   "like-old": [7, 7], "like-new": [6, 6]}
        attributes = {"like-cheap": {"price": 1}, "like-old": {"ends": 1}, "like-new": {"begins": 32503680000000}}
        lines = [{"key": key, "value": {"parts": {"films": {"vector": vector}},
                                        "attributes": {"price": 10, **attributes.get(key, {})}}}
                 for key, vector in vectors.items()] + [{"key": "no part", "value": {"attributes": {"price": 10}}}]
        cls().ctl("load", "-", input="\n".join(map(json.dumps, lines)))

    def ask(self, *words, code=0, **fields):
        query = json.dumps({"space": "films", "k": 2, "filter": "price >= 10", **fields})
        return self.ctl("query", "--format", "json", "--json", query, *words, code=code)

    def test_like(self):
        keys = [hit["key"] for hit in json.loads(self.ask("--like", "like-a"))["hits"]]
        self.assertEqual(keys, ["like-seen", "like-b"])  # 32 and 7; the item itself would have 10
        answer = json.loads(self.ask("--like", "like-a", "--like", "like-c", "--like", "nobody"))
        self.assertEqual([(hit["key"], hit["score"]) for hit in answer["hits"]], [("like-seen", 32), ("like-b", 6)])
        self.assertEqual(answer["likes_missing"], ["nobody"])
        self.assertIn("\n  nobody has no part in the space: hits are like the others\n", self.ctl(
            "query", "--space", "films", "--like", "like-a", "--like", "nobody"))
        answer = json.loads(self.ask(likes=[{"key": "like-a"}, {"key": "like-c", "weight": -3}]))  # [0, -2]
        self.assertEqual([(hit["key"], hit["score"]) for hit in answer["hits"]], [("like-b", -2), ("like-seen", -16)])
        self.assertIn("none of these items has a part", self.ask("--like", "nobody", "--like", "no part", code=1))
        self.assertIn("no item has this key", self.ask("--like", "nobody", code=1))
        self.assertIn("no part in this space", self.ask("--like", "no part", code=1))
        self.assertIn("other data than an item", self.ask("--like", "like-a", space="taste", code=1))
        self.assertIn("data of its own", self.ask("--like", "like-a", vector=[1, 0], code=1))
        self.assertIn("of its own: leave out --like", self.ask("--like", "like-a", like="like-b", code=2))
        self.ctl("query", "--json", "{}", "--like", "", code=2)

    def test_a_query_of_options(self):
        def keys(*words, code=0):
            said = self.ctl("query", "--format", "json", *words, code=code)
            return [hit["key"] for hit in json.loads(said)["hits"]] if code == 0 else said

        of_options = keys("--space", "films", "--k", "3", "--vector", "-1,2")
        self.assertEqual(of_options, keys("--json", '{"space": "films", "k": 3, "vector": [-1, 2]}'))
        self.assertEqual(len(of_options), 3)
        self.assertEqual(keys("--space", "films", "--k", "2", "--like", "like-a", "--filter", "price >= 10"),
                         ["like-seen", "like-b"])
        self.assertIn("or as a --file of queries", keys("--space", "films", code=2))
        self.assertIn("--vector expects numbers", keys("--space", "films", "--vector", "[1, 0]", code=2))

    def test_explain(self):
        self.produce("sluice.seen", "explained", json.dumps({"items": ["like-seen"]}))
        eventually(lambda: self.ctl("seen", "explained"), "the user")
        query = json.dumps({"space": "films", "k": 1, "vector": [1, 0], "filter": "price >= 10", "exclude": ["like-b"],
                            "exclude_seen_by": "explained"})
        keys = ["like-a", "like-b", "like-c", "like-cheap", "like-seen", "like-old", "like-new", "no part", "nobody"]
        answer = json.loads(self.ctl("explain", "--format", "json", query, *keys))
        self.assertEqual([hit["key"] for hit in answer["hits"]], ["like-a"])
        self.assertEqual(answer["explanations"], [
            {"key": "like-a", "verdict": "HIT", "score": 3.0, "rank": 1},
            {"key": "like-b", "verdict": "EXCLUDED", "score": 2.0},
            {"key": "like-c", "verdict": "OUTRANKED", "score": 1.0, "below_last_hit": 2.0},
            {"key": "like-cheap", "verdict": "FILTERED", "score": 9.0},
            {"key": "like-seen", "verdict": "SEEN", "score": 8.0},
            {"key": "like-old", "verdict": "EXPIRED", "score": 7.0},
            {"key": "like-new", "verdict": "EMBARGOED", "score": 6.0},
            {"key": "no part", "verdict": "NO_PART"}, {"key": "nobody", "verdict": "NO_ITEM"}])
        said = self.ctl("explain", query, *keys)
        for line in ("like-a: hit 1; its score is 3", "like-c: outranked by 2; its score is 1",
                     "like-cheap: the filter does not admit it; its score is 9", "nobody: there is no such item"):
            self.assertIn(f"  {line}\n", said)
        self.ctl("explain", query, code=2)
        self.ctl("explain", query, *["x"] * 17, code=2)
        self.assertIn("explain", self.ask(explain=["x"] * 17, vector=[1, 0], code=1))


class Watching(Tools):
    def test_tail_shows_what_comes(self):
        command = [harness.build_dir() / "sluicectl", "--config", daemon.config_path, "tail", "--count", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
            # It begins at the end of the topic, whose place it finds a moment after its start: ask until it has one.
            def asked():
                self.ctl("query", "--json", '{"id": "for tail", "space": "films", "k": 1, "vector": [1, 0]}')
                return tail.poll() is not None
            try:
                eventually(asked, "tail", 60)
            finally:
                tail.kill()
            line = json.loads(tail.stdout.read())
        self.assertEqual(line["value"]["id"], "for tail")
        self.assertEqual(set(line), {"time", "partition", "offset", "key", "value"})
        item = pb.Item(parts={"films": pb.Part(vector=pb.Vector(values=[1, 2]))})
        place = self.produce("sluice.catalogue", b"tailed", item.SerializeToString())
        n = str(self.written("sluice.catalogue"))
        lines = map(json.loads, self.ctl("tail", "items", "--newest", n, "--count", n).splitlines())
        found = [line for line in lines if (line["partition"], line["offset"]) == place]
        self.assertEqual((found[0]["key"], found[0]["value"]), ("tailed", {"parts": {"films": {"vector": [1, 2]}}}))
        self.ctl("tail", "prices", code=2)

    @staticmethod
    def written(topic):
        return len(harness.TopicReader(daemon.status()["kafka"]["bootstrap"], topic).read())

    def test_watch_shows_a_page(self):
        page = self.ctl("watch", "--once")
        self.assertNotIn("\x1b", page)
        self.assertIn("\nready\n", page)
        for row in ("queries/s", "updates/s", "lag, records", "answer p99", "visible p99"):
            self.assertRegex(page, rf"\n{row} +[0-9]")
        self.assertLessEqual(max(map(len, page.splitlines())), 80)
        self.ctl("watch", "--once", "--interval-s", "0", code=2)

    def test_watch_has_rates_and_charts(self):
        """On a terminal of 60 columns."""
        master, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        command = [harness.build_dir() / "sluicectl", "--config", daemon.config_path, "watch"]
        with subprocess.Popen(command, stdout=terminal, env={**os.environ, "LC_ALL": "C.UTF-8"}) as watch:
            os.close(terminal)
            shown = ""
            def has_a_chart():
                nonlocal shown
                self.ctl("query", "--json", '{"space": "films", "k": 1, "vector": [1, 0]}')
                if select.select([master], [], [], 1)[0]:
                    shown += os.read(master, 65536).decode(errors="replace")
                return re.search("queries/s +[0-9.,]+ +[^\x1b]*█", shown)
            try:
                eventually(has_a_chart, "a chart", 60)
            finally:
                watch.kill()
        os.close(master)
        rows = re.sub("\x1b\\[[0-9]*[A-Z]", "\n", shown).splitlines()
        self.assertLessEqual(max(map(len, rows)), 60)


class Backups(Tools):
    def test_a_backup_of_a_serving_daemon_is_restored(self):
        lines = [{"key": f"kept-{i}", "value": {"parts": {"films": {"vector": [i, 1]}}}} for i in range(300)]
        self.ctl("load", "-", input="\n".join(map(json.dumps, lines)))
        self.produce("sluice.seen", "kept", json.dumps({"items": ["kept-1"]}))
        eventually(lambda: self.ctl("seen", "kept"), "the user")
        self.assertIn("another process", self.ctl("verify", code=1))
        self.assertIn("every record is good", self.ctl("backup", str(folder / "backup")))
        self.assertIn("something is in it", self.ctl("backup", str(folder / "backup"), code=1))
        self.assertIn("every record is good", self.ctl("verify", str(folder / "backup")))
        self.ctl("put", "after", '{"parts": {"films": {"vector": [1, 1]}}}')
        second = self.second_daemon()
        command = [harness.build_dir() / "sluicectl", "--config", second.config_path]
        done = subprocess.run([*command, "restore", folder / "backup"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        second.start().wait_ready()
        status = second.status()
        self.assertEqual(status["items"], daemon.status()["items"])
        self.assertEqual(status["counters"]["discontinuities"], 0)
        self.assertLess(status["counters"]["applied"], 100)  # it has read on from the backup
        shown = subprocess.run([*command, "get", "kept-7", "after"], capture_output=True, text=True).stdout
        self.assertEqual([json.loads(line)["key"] for line in shown.splitlines()], ["kept-7", "after"])
        done = subprocess.run([*command, "seen", "kept"], capture_output=True, text=True)
        self.assertEqual(done.stdout, "kept-1\n")

    def test_a_limit_on_the_size_of_files_is_an_error(self):
        for n_bytes in (4096, 10000):
            def limit():
                resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it

            said = self.ctl("backup", str(folder / "limited"), code=1, preexec_fn=limit)
            self.assertIn("File too large: a limit on the size of files ends it", said)
            self.assertFalse((folder / "limited").exists())

    def second_daemon(self):
        """A daemon that is not started yet, on the broker of the first, with a store of its own."""
        own = folder / "second"
        own.mkdir()
        bootstrap = daemon.status()["kafka"]["bootstrap"]
        config = harness.merged(daemon.config, {
            "embedded_broker": {"enabled": False}, "kafka": {"bootstrap.servers": bootstrap},
            "query": {"topic": "second.queries", "answer_topic": "second.answers", "group": "second"},
            "spaces": {name: {"model": str(folder / f"{name}.safetensors")} for name in ("films", "taste")}})
        second = Daemon(config, own)
        self.addCleanup(lambda: second.process and second.kill())
        for topic in ("second.queries", "second.answers"):
            self.produce(topic, b"made", b"")
        return second


class DeadLetters(Tools):
    def letters(self, *words):
        return [json.loads(line) for line in self.ctl("dead-letters", "list", "--json", *words).splitlines()]

    def letter_of(self, key, value, topic="sluice.catalogue", headers=()):
        """Write a bad record, wait for its letter, and return it."""
        place = self.produce(topic, key, value, headers)
        def found():
            return [letter for letter in self.letters("--topic", topic)
                    if (letter["partition"], letter["offset"]) == place]
        return eventually(found, f"the letter of {key!r}")[0]

    def test_letters_are_listed_and_shown(self):
        item = pb.Item(parts={"films": pb.Part(vector=pb.Vector(values=[1, 2, 3]))})
        binary = self.letter_of(b"three", item.SerializeToString())
        text = self.letter_of(b"\x1b[31mred", b'{"no": "item"}', headers=[("content-type", b"application/json")])
        junk = self.letter_of(b"junk", b"\xff\xfe")
        query = self.letter_of(b"q", b"not a query", topic="sluice.queries")
        self.assertIn("3 numbers where the model needs 2", binary["reason"])
        table = self.ctl("dead-letters", "list")
        self.assertNotIn("\x1b", table)
        names, *rows = table.splitlines()
        for letter in (binary, text, junk, query):
            row = next(row for row in rows if row.startswith(letter["letter"] + " "))
            for column in ("time", "topic", "reason"):
                self.assertEqual(row[names.index(column):][:len(letter[column])], letter[column])
        self.assertEqual(self.ctl("dead-letters", "list"), table)
        found = self.letters("--reason", "MODEL NEEDS 2", "--topic", "sluice.catalogue")
        self.assertIn(binary["letter"], [letter["letter"] for letter in found])
        self.assertNotIn(text["letter"], [letter["letter"] for letter in found])
        self.assertEqual(len(self.letters("--newest", "2")), 2)
        self.assertEqual(self.letters("--since", "2100-01-01T00:00:00Z"), [])
        self.assertLessEqual(4, len(self.letters("--since", "1h")))
        def value(letter):
            return json.loads(self.ctl("dead-letters", "show", "--json", letter["letter"])).get("value")
        self.assertEqual(value(binary), {"parts": {"films": {"vector": [1, 2, 3]}}})
        self.assertEqual(value(text), '{"no": "item"}')
        self.assertEqual(value(junk), {"base64": "//4="})
        self.assertEqual(value(query), "not a query")
        shown = self.ctl("dead-letters", "show", binary["letter"])
        self.assertIn(f"place    partition {binary['partition']}, offset {binary['offset']}", shown)
        self.assertIn('{"parts": {"films": {"vector": [1.0, 2.0, 3.0]}}}', shown)
        self.assertIn("no letter 0:999999", self.ctl("dead-letters", "show", "0:999999", code=1))

    def test_a_selection_is_needed(self):
        for words in (["retry"], ["show"], ["retry", "--all", "0:1"], ["retry", "0:1", "--reason", "x"],
                      ["list", "0:1"], ["retry", "x"], ["list", "--since", "soon"], []):
            self.ctl("dead-letters", *words, code=2)

    def test_a_good_record_is_applied_again(self):
        value = b'{"parts": {"films": {"vector": [5, 6]}}}'
        # A letter as if a space had been missing when the record was read.
        partition, offset = self.produce("sluice.catalogue", b"again", b"{}", partition=2)
        headers = {"sluice.topic": "sluice.catalogue", "sluice.partition": str(partition), "sluice.offset": str(offset),
                   "sluice.reason": "once wrong", "content-type": "application/json"}.items()
        letter = "%d:%d" % self.produce("sluice.dead-letters", b"again", value, headers)
        said = self.ctl("dead-letters", "retry", "--dry-run", letter)
        self.assertIn(f"{letter} would go to sluice.catalogue, partition 2", said)
        self.assertIn("no item", self.ctl("get", "again", code=1))
        said = self.ctl("dead-letters", "retry", letter)
        self.assertIn(f"{letter} went to sluice.catalogue, partition 2", said)
        self.assertIn("applied all records", said)
        item = json.loads(self.ctl("get", "again"))
        self.assertEqual((item["value"], item["record"]["partition"]), (json.loads(value), 2))
        # The item now has a newer record than the letter's.
        self.assertIn("newer record", self.ctl("dead-letters", "retry", letter, code=1))
        self.assertIn("went to", self.ctl("dead-letters", "retry", "--overwrite", letter))

    def test_of_two_letters_of_an_item_the_newer_wins(self):
        def make(key, value):
            """Write a letter of a record in partition 1."""
            place = self.produce("sluice.catalogue", key, b"{}", partition=1)
            headers = {"sluice.topic": "sluice.catalogue", "sluice.partition": "1", "sluice.offset": str(place[1]),
                       "sluice.reason": "once wrong", "content-type": "application/json"}.items()
            return "%d:%d" % self.produce("sluice.dead-letters", key, value, headers)
        def values(key):
            return json.loads(self.ctl("get", "--value", key))["parts"]["films"]["vector"]
        for is_backwards in (False, True):
            key = f"backwards: {is_backwards}"
            older, newer = (make(key, b'{"parts": {"films": {"vector": [%d, 1]}}}' % n) for n in (1, 2))
            # Other letters between them give the daemon time to apply the first.
            between = [make(f"{key}, {n}", b'{"parts": {"films": {"vector": [0, 1]}}}') for n in range(3)]
            letters = [newer, *between, older] if is_backwards else [older, *between, newer]
            for dry_run in (["--dry-run"], []):
                said = self.ctl("dead-letters", "retry", *dry_run, *letters, code=int(is_backwards))
                goes = "would go to" if dry_run else "went to"
                self.assertIn(f"{newer} {goes} sluice.catalogue, partition 1", said)
                self.assertIn(f"{older} {'left out: the item has a newer record' if is_backwards else goes}", said)
            self.assertEqual(values(key), [2, 1])

    def test_what_is_refused_again_is_not_retried_for_ever(self):
        letter = self.letter_of(b"loop", b'{"parts": {"films": {"vector": [1]}}}')
        self.assertIn("refused 1 record", self.ctl("dead-letters", "retry", letter["letter"], code=1))
        again = eventually(lambda: [l for l in self.letters("--reason", "model needs 2")
                                    if l.get("key") == "loop" and l.get("retried") == 1], "the second letter")[0]
        said = self.ctl("dead-letters", "retry", "--all", "--dry-run", "--reason", "vector has 1")
        self.assertIn(f"{again['letter']} left out: it was retried before", said)
        self.assertIn(f"{letter['letter']} would go", said)
        self.assertIn("refused 1 record", self.ctl("dead-letters", "retry", again["letter"], code=1))
        eventually(lambda: [l for l in self.letters() if l.get("retried") == 2], "the third letter")

    def test_queries_are_retried_and_strange_letters_are_not(self):
        def make(topic, key, value, more=()):
            headers = [("sluice.topic", topic), ("sluice.partition", b"0"), ("sluice.offset", b"3"),
                       ("sluice.reason", b"made up"), *more]
            return "%d:%d" % self.produce("sluice.dead-letters", key, value, headers)
        query = {"id": "of a letter", "space": "films", "k": 1, "vector": [1, 0]}
        asked = make(b"sluice.queries", b"k", json.dumps(query).encode())
        every = ("dead-letters", "retry", "--all", "--dry-run", "--reason", "made up")
        self.assertIn(f'{asked} left out: it is of topic "sluice.queries"', self.ctl(*every))
        self.assertIn(f"{asked} would go to", self.ctl(*every, "--topic", "sluice.queries"))
        self.assertIn("went to sluice.queries, partition 0", self.ctl("dead-letters", "retry", asked))
        reader = harness.TopicReader(daemon.status()["kafka"]["bootstrap"], "sluice.answers")
        eventually(lambda: [r for r in reader.read() if b"of a letter" in r.value], "the answer")
        self.assertIn("has no value", self.ctl("dead-letters", "retry", make(b"sluice.catalogue", b"k", None), code=1))
        self.assertIn("has no topic", self.ctl("dead-letters", "retry", make(b"payments", b"k", b"x"), code=1))
        long = make(b"sluice.catalogue", b"k" * 300, b'{"parts": {}}')
        self.assertIn("its key has 300 bytes", self.ctl("dead-letters", "retry", long, code=1))
        good = make(b"sluice.catalogue", b"after it", b'{"parts": {}}')
        said = self.ctl(*every)
        self.assertIn(f"{long} left out: its key has 300 bytes", said)
        self.assertIn(f"{good} would go to", said)


if __name__ == "__main__":
    data.main()
