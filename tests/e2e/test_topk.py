#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of sluicectl topk: answers to all queries of a file, each once, whatever ends a run."""

import fcntl
import json
import resource
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import data
import harness
import models
from harness import Daemon, eventually

N_ITEMS, N_USERS, N_MANY, K = 300, 400, 4000, 7


def setUpModule():
    """Start one daemon with the embedded broker, items with whole numbers, and what two users have seen."""
    global daemon, folder, rng, items, users
    temporary = tempfile.TemporaryDirectory(prefix="sluice-topk-")
    unittest.addModuleCleanup(temporary.cleanup)
    folder = Path(temporary.name)
    rng = data.generator("users to answer")
    models.random_vectors(rng, folder / "films.safetensors", "dot", 3)
    daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                     "attributes": {"price": "integer", "pair": "integer"}, "spaces": {"films": {"model": "films.safetensors"}},
                     "seen": {"topic": "sluice.seen"}, "catalogue": {"kafka": {"fetch.wait.max.ms": 1}}}, folder)
    unittest.addModuleCleanup(daemon.kill)
    daemon.start().wait_ready()
    items = rng.integers(-100, 100, (N_ITEMS, 3)).astype(np.float32)  # scores are exact
    users = rng.integers(-100, 100, (N_USERS, 3)).astype(np.float32)
    with open(folder / "items.jsonl", "w", encoding="utf-8") as out:
        for i, row in enumerate(items.tolist()):
            value = {"parts": {"films": {"vector": row}}, "attributes": {"price": i, "pair": i // 2}}
            print(json.dumps({"key": f"{i:03}", "value": value}), file=out)
    daemon.ctl("load", str(folder / "items.jsonl"))
    np.save(folder / "users.npy", users)
    np.save(folder / "many.npy", users[np.arange(N_MANY) % N_USERS])
    (folder / "names.txt").write_text("".join(f'user "{i}"\n' for i in range(N_USERS)), encoding="utf-8")


def name(user):
    return f'user "{user}"'


def best(user, admitted=range(N_ITEMS), k=K, of_pair=2):
    """Return the k best keys and scores of a user among the admitted items; ties go by key."""
    scores, hits, pairs = items @ users[user], [], []
    for i in sorted(admitted, key=lambda i: (-scores[i], i)):
        if len(hits) < k and pairs.count(i // 2) < of_pair:
            hits.append((f"{i:03}", float(scores[i])))
            pairs.append(i // 2)
    return hits


class TopK(unittest.TestCase):
    def setUp(self):
        self.output = folder / f"{self.id().rsplit('.', 1)[1]}.jsonl"

    def command(self, path, *words):
        return [harness.build_dir() / "sluicectl", "--config", daemon.config_path, "topk", str(path), "--output",
                self.output, *map(str, words)]

    def topk(self, path, *words, code=0):
        done = subprocess.run(self.command(path, *words), capture_output=True, text=True,
                              timeout=120 * harness.SLOWNESS)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def of_users(self, *words, code=0):
        return self.topk(folder / "users.npy", "--keys", folder / "names.txt", "--k", K, *words, code=code)

    def answers(self):
        """Return the hits by id. Every id has one line."""
        lines = [json.loads(line) for line in self.output.read_text(encoding="utf-8").splitlines()]
        found = {line["id"]: [(hit["key"], hit.get("score", 0.0)) for hit in line["hits"]] for line in lines}
        self.assertEqual(len(found), len(lines))
        for line in lines:
            self.assertTrue(line["receipt"]["exact"])
        return found

    def assert_all(self):
        self.assertEqual(self.answers(), {name(user): best(user) for user in range(N_USERS)})


class Answers(TopK):
    def test_every_row_is_answered_once(self):
        said = self.of_users()
        self.assert_all()
        self.assertIn("answered 400 queries in", said)
        self.assertIn("all are exact", said)
        before = self.output.read_bytes()
        self.assertIn("answered 0 queries in", self.of_users("--space", "films"))
        self.assertEqual(self.output.read_bytes(), before)

    def test_rows_without_names_and_other_limits(self):
        self.topk(folder / "users.npy", "--space", "films@1", "--k", 2, "--in-flight", 1000,
                  "--filter", "price < $1", "--parameters", "[50]")
        self.assertEqual(self.answers(), {str(user): best(user, range(50), 2) for user in range(N_USERS)})

    def test_the_queries_of_others_go_first(self):
        before = daemon.status()["counters"]["background"]
        self.of_users()
        self.assertEqual(daemon.status()["counters"]["background"], before + N_USERS)
        self.assertIn("answered 0 queries", self.of_users("--fields", '{"background": false}'))
        self.output.unlink()
        self.of_users("--fields", '{"background": false}')
        self.assert_all()
        self.assertEqual(daemon.status()["counters"]["background"], before + N_USERS)

    def test_rows_with_fields_are_of_the_only_space(self):
        said = self.of_users("--fields", '{"filter": "price < 1000000", "explain": null}')
        self.assertIn("answered 400 queries", said)
        self.assert_all()

    def test_lines_have_fields_of_their_own(self):
        lines = [{"id": "all", "vector": users[0].tolist(), "k": None}, {"vector": users[1].tolist(), "k": 3},
                 {"id": "cheap", "vector": users[2].tolist(), "filter": "price < 20"},
                 {"id": "both", "vector": users[3].tolist(), "maxPer": {"attribute": "pair", "n": 2}}]
        path = folder / "lines.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
        self.topk(path, "--space", "films", "--fields", json.dumps(
            {"k": 90, "filter": "price < $1", "parameters": [100]}), "--max-per", "pair:1")
        self.assertEqual(self.answers(), {"all": best(0, range(100), 90, 1), "2": best(1, range(100), 3, 1),
                                          "cheap": best(2, range(20), 90, 1), "both": best(3, range(100), 90, 2)})

    def test_a_line_without_boosts_takes_no_time_of_theirs(self):
        path = folder / "plain.jsonl"
        path.write_text('{"id": "plain", "vector": %s, "boosts": []}' % users[0].tolist(), encoding="utf-8")
        self.topk(path, "--space", "films", "--k", 3, "--boost", "1:price", "--now", 5)
        self.assertEqual(self.answers(), {"plain": best(0, k=3)})

    def test_what_a_user_has_seen_is_left_out(self):
        seen = {user: [key for key, _ in best(user, k=3)] for user in (3, 4)}
        harness.Kcat(daemon.status()["kafka"]["bootstrap"]).produce("sluice.seen", [
            (name(user).encode(), json.dumps({"items": keys}).encode()) for user, keys in seen.items()])
        eventually(lambda: all(len(json.loads(daemon.ctl("seen", "--json", name(user)))["items"]) == 3
                               for user in seen), "the seen items")
        self.of_users("--exclude-seen")
        found = self.answers()
        for user in range(N_USERS):
            left_out = {int(key) for key in seen.get(user, [])}
            self.assertEqual(found[name(user)], best(user, [i for i in range(N_ITEMS) if i not in left_out]))


class Ends(TopK):
    def test_a_run_that_is_ended_goes_on(self):
        for stop, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 1), (signal.SIGKILL, -signal.SIGKILL)):
            before = self.output.stat().st_size if self.output.exists() else 0
            process = subprocess.Popen(self.command(folder / "many.npy", "--k", K, "--in-flight", 1), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(lambda process=process: process.poll() is None and process.kill())
            eventually(lambda: self.output.exists() and self.output.stat().st_size > before, "answers", 60, 0.001)
            process.send_signal(stop)
            _, said = process.communicate(timeout=60 * harness.SLOWNESS)
            self.assertEqual(process.returncode, code, said)
            self.assertEqual("interrupted: run the same command again" in said, stop == signal.SIGINT)
        kept = self.output.read_bytes()
        kept = kept[:kept.rfind(b"\n") + 1]
        n_known = kept.count(b"\n")
        self.assertGreater(n_known, 0)
        self.output.write_bytes(kept + b'{"id":"39')  # half a line, as a full disk or a crash leaves
        said = self.topk(folder / "many.npy", "--k", K)
        self.assertIn(f"{n_known:,} had answers from an earlier run", said)
        self.assertEqual(self.output.read_bytes()[:len(kept)], kept)
        self.assertEqual(self.answers(), {str(i): best(i % N_USERS) for i in range(N_MANY)})

    def test_ids_must_differ(self):
        path = folder / "twins.jsonl"
        path.write_text("".join(json.dumps({"id": name, "vector": [1, 0, 0], "k": k}) + "\n"
                                for k, name in ((1, "a"), (1, "b"), (2, "a"), (1, "5"))) + '{"vector": [1, 0, 0]}\n',
                        encoding="utf-8")
        said = self.topk(path, "--space", "films", code=1)
        for words in ('line 3: its id "a" is that of line 1 too', 'line 5: its id "5" is that of line 4 too',
                      "2 queries failed: correct what is wrong with them"):
            self.assertIn(words, said)
        self.assertEqual({name: len(answer) for name, answer in self.answers().items()}, {"a": 1, "b": 1, "5": 1})
        keys = folder / "twins.txt"
        keys.write_text("x\nx\n", encoding="utf-8")
        self.output.unlink()
        np.save(folder / "twins.npy", np.eye(3, dtype="f4")[:2])
        self.assertIn('row 1: its id "x" is that of row 0 too', self.topk(folder / "twins.npy", "--keys", keys, code=1))

    def test_other_options_do_not_go_on_in_the_same_file(self):
        words = ("--filter", "price < 90", "--boost", "0.1:price")
        self.of_users(*words, "--now", "2h")
        before = self.output.read_bytes()
        for others, says in (((), 'filter "price < 90", not with no filter'),
                             ((*words, "--k", 3), f"with k {K}, not with k 3"),
                             ((*words, "--exclude-seen"), "with no exclude_seen, not with exclude_seen true"),
                             ((*words, "--space", "films@1"), 'with space "films", not with space "films@1"'),
                             ((*words, "--fields", '{"method": "average(9)"}'), "with no method, not with method")):
            said = self.of_users(*others, code=2)
            self.assertIn(f"--output: {self.output} has answers to queries with", said)
            self.assertIn(says, said)
            self.assertIn("name another file", said)
        self.assertIn("400 had answers", self.of_users(*words, "--now", "1h"))  # without --now, times differ too
        note = self.output.with_name(self.output.name + ".asked")
        note.unlink()
        self.assertIn(f"{note} is missing", self.of_users(*words))
        self.assertEqual(self.output.read_bytes(), before)

    def test_other_queries_do_not_go_on_in_the_same_file(self):
        first, second = folder / "first.npy", folder / "second.npy"
        np.save(first, users[:5])
        np.save(second, users[5:10])
        names = folder / "five.txt"
        names.write_text("5\n6\n7\n8\n9\n", encoding="utf-8")
        self.topk(first, "--k", K)
        before = self.output.read_bytes()
        for path, words, says in ((second, (), f'with file "{first}", not with file "{second}"'),
                                  (first, ("--keys", names), f'with no keys, not with keys "{names}"')):
            said = self.topk(path, "--k", K, *words, code=2)
            self.assertIn(f"--output: {self.output} has answers to queries {says}: name another file", said)
        np.save(first, users[5:10])  # another array of this name and size
        self.assertIn("not with contents", self.topk(first, "--k", K, code=2))
        self.assertEqual(self.output.read_bytes(), before)
        np.save(first, users[:5])
        (folder / "link.npy").symlink_to(first)
        self.assertIn("5 had answers from an earlier run", self.topk(folder / "link.npy", "--k", K))

    def test_a_file_that_is_no_note_is_left_alone(self):
        note = self.output.with_name(self.output.name + ".asked")
        for text in ("my notes\n", '{"k": 1}\n'):
            note.write_text(text, encoding="utf-8")
            self.assertIn(f"{note} is not the note of an earlier run", self.of_users(code=1))
            self.assertEqual(note.read_text(encoding="utf-8"), text)
        note.write_text("", encoding="utf-8")  # as a kill leaves it
        self.of_users()
        self.assertIn("sluicectl topk", note.read_text(encoding="utf-8"))

    def test_queries_that_fail_are_reported_and_asked_again(self):
        good = {"space": "films", "k": 1}
        lines = [json.dumps({"id": "a", "vector": [1, 0, 0], **good}), "{",
                 json.dumps({"id": "b", "vector": [1], **good}),
                 json.dumps({"id": 7, "vector": [1, 0, 0], **good}),
                 json.dumps({"id": "c", "vector": [0, 1, 0], "reply_topic": "elsewhere", **good}),
                 json.dumps({"id": "d", "vector": [0, 1, 0], **good})]
        path = folder / "some.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        said = self.topk(path, code=1)
        self.assertEqual(set(self.answers()), {"a", "d"})
        for words in ("line 2: not a JSON object", "line 3: BAD_QUERY: query: vector has 1 numbers", "line 4: id: expects a string",
                      "line 5: reply_topic", "answered 2 queries", "4 queries failed"):
            self.assertIn(words, said)
        path.write_text(lines[0] + "\n" + json.dumps({"id": "b", "vector": [1, 0, 0], **good}), encoding="utf-8")
        self.assertIn("answered 1 query in", self.topk(path))
        self.assertEqual(set(self.answers()), {"a", "b", "d"})

    def test_a_file_of_something_else_is_left_alone(self):
        query = b'{"id":"a","space":"films","k":1,"vector":[1,0,0]}'
        for text in (b"my notes\n", b'{"a": 1}', query, query + b"\n", query + b"\n" + query, b"\0" * 100):
            self.output.write_bytes(text)
            self.assertIn("has something else than answers in line 1", self.of_users(code=1))
            self.assertEqual(self.output.read_bytes(), text)
        self.assertIn("has the queries", self.topk(self.output, code=2))
        np.save(folder / "keyed.npy", np.eye(3, dtype="f4"))
        self.output.write_bytes(b"a\nb\nc\n")
        self.assertIn("has the keys", self.topk(folder / "keyed.npy", "--keys", self.output, code=2))
        self.output.unlink()
        self.of_users()
        self.output.write_bytes(self.output.read_bytes() + b"more notes")
        self.assertIn("in line 401", self.of_users(code=1))
        self.assertTrue(self.output.read_bytes().endswith(b"\nmore notes"))

    def test_what_cannot_be_asked(self):
        for words, says in {("--fields", "[]"): "--fields expects a JSON object",
                            ("--fields", '{"maxPer": {}}', "--max-per", "pair:1"): "--fields has a field max_per of its own",
                            ("--mmr", "2"): "--mmr expects a number",
                            ("--fields", '{"id": "x"}'): "the same id"}.items():
            self.assertIn(says, self.of_users(*words, code=2))
        self.assertIn("the answer would go to elsewhere", self.of_users("--fields", '{"reply_topic": "elsewhere"}', code=1))
        np.save(folder / "wide.npy", np.zeros((2, 5), np.float32))
        self.assertIn("have 5 numbers where a query of space films needs 3", self.topk(folder / "wide.npy", code=1))
        self.assertIn('no space "songs"', self.of_users("--space", "songs", code=2))
        self.assertFalse(self.output.exists())

    def test_a_run_without_answers_ends(self):
        path = folder / "waiting.jsonl"
        path.write_text('{"space": "films", "k": 1, "vector": [1, 0, 0],'
                        ' "at_least": [{"partition": 0, "next": 1000000000}]}', encoding="utf-8")
        said = self.topk(path, "--timeout-ms", 500, code=1)
        self.assertIn("no answer came within 500 ms", said)
        self.assertIn("run the same command again to go on", said)
        self.assertEqual(self.answers(), {})

    def test_errors_that_may_pass_are_asked_again(self):
        ends = {}
        bootstrap = daemon.status()["kafka"]["bootstrap"]
        for record in harness.TopicReader(bootstrap, "sluice.catalogue").read():
            ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
        at_least = [{"partition": partition, "next": end + 1} for partition, end in ends.items()]
        path = folder / "soon.jsonl"
        path.write_text(json.dumps({"id": "soon", "space": "films", "k": 1, "vector": [1, 0, 0], "no_wait": True,
                                    "at_least": at_least}), encoding="utf-8")
        errors = daemon.status()["counters"]["errors"]
        process = subprocess.Popen(self.command(path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        eventually(lambda: daemon.status()["counters"]["errors"] > errors, "an answer NOT_SEEN")
        self.assertIsNone(process.poll())
        harness.Kcat(bootstrap).produce("sluice.catalogue", [(b"more %d" % i, b"{}") for i in range(100)])
        self.assertIn("answered 1 query in", process.communicate(timeout=60 * harness.SLOWNESS)[0])
        self.assertEqual(set(self.answers()), {"soon"})

    def test_a_full_disk_leaves_whole_lines(self):
        for limit, n_least in ((200, 0), (10000, 1)):
            process = subprocess.run(
                self.command(folder / "many.npy", "--k", K), capture_output=True, text=True, timeout=120 * harness.SLOWNESS,
                preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual(process.returncode, 1, process.stderr)
            self.assertIn(f"--output: {self.output} cannot be written: File too large", process.stderr)
            kept = self.output.read_bytes()
            self.assertTrue(kept.endswith(b"\n") or not kept)
            self.assertGreaterEqual(len(self.answers()), n_least)
        self.assertIn("had answers from an earlier run", self.topk(folder / "many.npy", "--k", K))
        self.assertTrue(self.output.read_bytes().startswith(kept))
        self.assertEqual(self.answers(), {str(i): best(i % N_USERS) for i in range(N_MANY)})

    def test_one_run_at_a_time(self):
        with open(self.output, "a", encoding="utf-8") as taken:
            fcntl.flock(taken, fcntl.LOCK_EX)
            self.assertIn("is in use", self.of_users(code=1))
        self.of_users()
        self.assert_all()

    def test_lines_of_standard_input(self):
        done = subprocess.run(self.command("-", "--space", "films"), capture_output=True, text=True,
                              input='\n{"vector": [1, 0, 0], "id": "only"}\n', timeout=60 * harness.SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.answers()["only"]), 100)

    def test_a_run_that_waits_for_standard_input_ends_at_once(self):
        process = subprocess.Popen(self.command("-", "--space", "films", "--k", K), stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        process.stdin.write('{"vector": [1, 0, 0], "id": "first"}\n{"vector": [0, 1')  # half a query comes, and no more
        process.stdin.flush()
        eventually(lambda: self.output.exists() and self.output.read_bytes().endswith(b"\n"), "the answer", 60)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10 * harness.SLOWNESS), 1)
        self.assertIn("interrupted: run the same command again", process.communicate()[1])
        self.assertEqual(set(self.answers()), {"first"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
