#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the daemon with a real Kafka broker: transactions, restarts, kills, growing and recreated topics."""

import os
import re
import tempfile
import time
import unittest
from pathlib import Path

from confluent_kafka import Producer

import data
import models
import real_broker
import wire
from harness import QUIET, SLOWNESS, Case, Kcat, System, eventually
from oracle import check_epochs
from wire import pb

N_ITEMS = int(os.environ.get("E2E_ITEMS") or 10000)
PER_TRANSACTION = 500
KILLS = 6
# Several batches of a first fill.
FILL_RECORDS = 6 * N_ITEMS
FILL_KEYS = 3000


def setUpModule():
    global broker, folder, paths, spaces
    broker = real_broker.open_for()
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"movies": data.golden_dir() / "small_uid" / "weights.safetensors",
             "codes": Path(folder.name) / "codes.safetensors"}
    models.random_recjpq(data.generator("broker models"), paths["codes"], m=8, b=256, d=64)
    spaces = {name: models.load(path) for name, path in paths.items()}


class Transactions:
    """Write catalogue records in transactions of PER_TRANSACTION records."""

    def __init__(self, system):
        self.system = system
        self.producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap, "linger.ms": 5,
                                  "transactional.id": f"{system.prefix}.loader"})
        self.producer.init_transactions(30)
        self.count = 0

    def begin(self):
        self.producer.begin_transaction()

    def put(self, key, item=None, **where):
        if self.count == 0:
            self.begin()
        self.system.put(key, item, self.producer, **where)
        self._count()

    def delete(self, key):
        if self.count == 0:
            self.begin()
        self.system.put_raw(key, None, producer=self.producer)
        self._count()

    def _count(self):
        self.count += 1
        if self.count >= PER_TRANSACTION:
            self.commit()

    def commit(self):
        if self.count:
            self.producer.commit_transaction(60)
            self.count = 0


class BrokerCase(Case):
    """Tests that each use their own topics."""

    partitions = 4

    @classmethod
    def make(cls, name, config=None, partitions=None):
        system = System(paths, spaces, config, broker.bootstrap, name, name)
        broker.create_topic(system.topic("catalogue"), partitions or cls.partitions, {"cleanup.policy": "compact"})
        for kind in ("queries", "answers", "replies"):
            broker.create_topic(system.topic(kind), 3)
        broker.create_topic(system.topic("dead-letters"), 1)
        return system

    def open(self, name, config=None, partitions=None):
        self.system = self.make(name, config, partitions)
        self.addCleanup(self.system.close)
        self.system.open()
        return self.system

    def said_discontinuity(self, past=0):
        """Return the discontinuity event logged after the first `past` characters of the log."""
        found = re.search(r"^.*\bevent=\S*discontinuity.*$", self.system.daemon.log()[past:], re.M)
        self.assertTrue(found, "no log line has event= with the word discontinuity")
        return found[0]

    def caught_up(self):
        self.system.sync()
        end = self.system.oracle.end()

        def has_seen():
            seen = {p["partition"]: p["next"] for p in self.system.daemon.status()["watermark"]}
            return all(seen.get(p, 0) >= n for p, n in end.items())
        eventually(has_seen, "the daemon to see the whole log")


class Loaded(BrokerCase):
    """Tests that share one daemon with the whole catalogue. Every test leaves it running."""

    @classmethod
    def setUpClass(cls):
        cls.system = cls.make("loaded", {"query": {"reply_topics": ["loaded.replies", "no.such.topic"]}})
        cls.addClassCleanup(cls.system.close)
        cls.system.open([cls.system.topic("replies")])
        cls.load = Transactions(cls.system)
        cls.kcat = Kcat(broker.bootstrap)
        cls.addClassCleanup(cls.kcat.close)
        started = time.monotonic()
        cls.keys = [b"item-%06d" % i for i in range(N_ITEMS - len(data.awkward_keys()))] + data.awkward_keys()
        for key in cls.keys:
            cls.load.put(key)
        cls.load.commit()
        written = time.monotonic()
        cls.system.sync()
        first = cls.system.queries.draw("codes", "exact", at_least=cls.system.positions())
        cls.system.ask([first], timeout_s=60)
        print(f"\n{N_ITEMS} items written in {written - started:.1f} s, "
              f"all served {time.monotonic() - written:.1f} s later", flush=True)

    @classmethod
    def tearDownClass(cls):
        check_epochs(cls.system.answers)
        if cls.system.daemon.is_running():
            cls.system.daemon.stop()
        print(f"\n{cls.system.oracle.checked} answers checked; the worst score is off by "
              f"{cls.system.oracle.worst_error:.1e} of the range", flush=True)

    def draw(self, count, **fields):
        names = list(spaces)
        return [self.system.queries.draw(names[i % len(names)], **fields) for i in range(count)]

    def at_end(self, count):
        self.system.sync()
        return self.draw(count, at_least=self.system.positions())

    def test_the_whole_catalogue(self):
        self.system.check_catalogue()

    def test_every_method_in_protobuf_and_json(self):
        for form in ("protobuf", "bare", "array", "values", "data"):
            self.system.ask([self.system.queries.draw(name, method) for name in spaces
                             for method in self.system.queries.methods(name)], form)

    def test_json_through_kcat(self):
        answers = self.kcat.follow(self.system.topic("answers"))
        queries = {q.id: q for q in self.draw(20)}
        self.kcat.produce(self.system.topic("queries"),
                          [(q.id.encode(), wire.dumps(wire.query_json(q))) for q in queries.values()])
        waiting, deadline = dict(queries), time.monotonic() + 30 * SLOWNESS
        while waiting:
            key, value = answers.get(timeout=max(0.1, deadline - time.monotonic()))
            query = waiting.pop(key.decode(errors="replace"), None)
            if query:
                self.system.oracle.check(query, wire.answer_from_json(value))

    def test_updates_and_deletes(self):
        rng, some = self.system.rng, list(self.keys)
        rng.shuffle(some)
        for key in some[:500]:
            self.load.put(key)
        for key in some[500:800]:
            self.load.put(key, self.system.items.item([data.pick(rng, list(spaces))]))
        for key in some[700:1100]:
            self.load.delete(key)
        self.load.commit()
        self.system.ask(self.at_end(10))
        self.system.check_catalogue()

    def test_an_aborted_transaction_is_invisible(self):
        self.load.commit()
        self.load.begin()
        for i in range(50):
            self.system.put(b"ghost-%d" % i, producer=self.load.producer)
            self.system.put_raw(self.keys[i], None, producer=self.load.producer)
            self.system.put(self.keys[100 + i], producer=self.load.producer)
        self.load.producer.flush(30)
        # While the transaction is open, the daemon answers from the committed records.
        self.system.ask(self.draw(6))
        self.load.producer.abort_transaction(30)
        self.load.put(b"after-the-abort")
        self.load.commit()
        self.system.ask(self.at_end(6))
        self.system.check_catalogue()
        keys = self.system.oracle.state(self.system.oracle.end()).items
        self.assertIn(b"after-the-abort", keys)
        self.assertNotIn(b"ghost-0", keys)

    def test_exclude(self):
        for name in spaces:
            first = self.system.queries.draw(name, "exact", k=40)
            self.system.ask([first])
            best = [hit.key for hit in self.system.client.replies[first.id][0].answer.hits]
            for method in self.system.queries.methods(name):
                query = pb.Query()
                query.CopyFrom(first)
                query.id, query.method = f"{first.id}-without-{method}", method
                query.exclude.extend(best[1::2])
                self.system.ask([query])

    def test_reply_topic(self):
        queries = self.draw(6, reply_topic=self.system.topic("replies"))
        self.system.ask(queries)
        for query in queries:
            self.assertEqual([r.topic for r in self.system.client.replies[query.id]], [self.system.topic("replies")])
        plain = self.draw(2)
        self.system.ask(plain)
        self.assertEqual(self.system.client.replies[plain[0].id][0].topic, self.system.topic("answers"))

    def test_a_reply_topic_that_is_not_there_holds_up_nobody(self):
        lost = self.system.queries.draw("codes", reply_topic="no.such.topic")
        self.system.send(lost, key=b"same partition")
        good = self.draw(6)
        for query in good:
            self.system.send(query, key=b"same partition")
        self.system.check(good)
        # The client gets the error in the configured answer topic.
        answer = self.system.client.wait([lost.id], 60)[lost.id]
        self.system.oracle.check_error(lost, answer, "INTERNAL")
        self.assertEqual(self.system.client.replies[lost.id][0].topic, self.system.topic("answers"))

    def test_at_least(self):
        took = []
        for i in range(20):
            self.load.put(b"fresh-%d" % i)
            self.load.commit()
            queries = self.at_end(2)
            started = time.monotonic()
            self.system.ask(queries)
            took.append(self.system.client.replies[queries[0].id][0].arrived - started)
        took.sort()
        print(f" [answers that reflect the preceding write: median {took[10] * 1e3:.0f} ms] ", end="", flush=True)


class Restart(BrokerCase):
    """Tests that stop or kill the daemon in the middle of a load, with queries in flight."""

    def load_and_ask(self, system, load, numbers, queries):
        """Change the catalogue and send queries without waiting for answers. Yield after each small step."""
        rng = system.rng
        for i in numbers:
            load.put(b"item-%06d" % i)
            if i > 1000 and rng.random() < 0.1:
                load.put(b"item-%06d" % rng.integers(i), system.items.item([data.pick(rng, list(spaces))]))
            if i > 1000 and rng.random() < 0.05:
                load.delete(b"item-%06d" % rng.integers(i))
            if i % 200 == 0:
                for name in ("codes", "codes", "movies"):
                    queries.append(system.send(system.queries.draw(name)))
                yield i
        load.commit()

    def check_everything(self, system, queries, allowed_errors=()):
        system.daemon.wait_ready()
        refused = system.check(queries, 90, allowed_errors)
        repeated = sum(len(system.client.replies[q.id]) - 1 for q in queries)
        print(f" [{len(queries)} queries: all answered, {repeated} answered again, {refused} refused] ",
              end="", flush=True)
        system.check_catalogue()

    def test_terminated_in_the_middle_of_a_load(self):
        system = self.open("terminated")
        load, queries = Transactions(system), []
        for i in self.load_and_ask(system, load, range(N_ITEMS), queries):
            if i == N_ITEMS // 2:
                system.daemon.stop()
                system.daemon.start()
        self.check_everything(system, queries, ("UNAVAILABLE",))
        system.daemon.stop()

    def test_a_restart_goes_on_where_it_stopped(self):
        system = self.open("resumed")
        load = Transactions(system)
        for i in range(N_ITEMS // 2):
            load.put(b"item-%06d" % i)
        load.commit()
        self.caught_up()
        system.daemon.stop()
        known = len(system.records)
        for i in range(100):
            load.put(b"late-%06d" % i)
        load.commit()
        # No daemon is running. The queries reach every partition, including any that has no committed offset yet.
        queries = [system.send(system.queries.draw("codes")) for _ in range(30)]
        system.client.flush()
        system.daemon.start()
        self.check_everything(system, queries)
        counters = system.daemon.status()["counters"]
        again = counters["applied"] + counters["deleted"]
        self.assertLess(again, known // 2, "the log was read again from its beginning")
        self.assertGreaterEqual(counters["applied"], 100)
        system.daemon.stop()

    def test_killed_in_the_middle_of_a_load_again_and_again(self):
        system = self.open("killed")
        load, queries, share = Transactions(system), [], N_ITEMS // KILLS
        kill_at = [i * share + int(system.rng.integers(share // 2)) for i in range(KILLS)]
        for i in self.load_and_ask(system, load, range(N_ITEMS), queries):
            if kill_at and i >= kill_at[0]:
                kill_at.pop(0)
                self.assertTrue(system.daemon.is_running(), "the daemon ended by itself")
                system.daemon.kill()
                system.daemon.start()
        self.assertEqual(kill_at, [])
        self.check_everything(system, queries)
        system.daemon.stop()

    def test_killed_in_the_middle_of_a_first_fill_again_and_again(self):
        system = self.make("filled")
        self.system = system
        self.addCleanup(system.close)
        system.connect()
        some = [system.items.encode(system.items.item(names)) for _ in range(300)
                for names in (list(spaces), ["codes"], ["movies"])]
        bad = 0
        for i in range(FILL_RECORDS):
            key = b"item-%06d" % system.rng.integers(FILL_KEYS)
            value, headers = some[int(system.rng.integers(len(some)))]
            if i % 40 == 0:
                value, headers = None, []
            elif i % 5000 == 1:
                value, headers, bad = b"{", [], bad + 1
            system.put_raw(key, value, headers)
        system.sync()
        for _ in range(KILLS):
            system.daemon.start()
            time.sleep(float(system.rng.uniform(0.1, 0.5)))
            system.daemon.kill()
        system.daemon.start().wait_ready()
        resumed = [int(start) for start in re.findall(r"event=partition .* from=(\d+) ", system.daemon.log())]
        ends = [end for _, end in sorted(system.oracle.end().items())]
        inside = sum(0 < start < ends[i % len(ends)] for i, start in enumerate(resumed))
        print(f" [{inside} of {len(resumed)} starts of a partition were inside of it] ", end="", flush=True)
        letters = {(system.topic("catalogue"), r.partition, r.offset) for r in system.records if r.value == b"{"}
        self.assertEqual(len(letters), bad)
        system.wait_dead_letters(letters)
        system.check_catalogue()
        system.daemon.stop()

    def test_killed_with_queries_on_their_way(self):
        system = self.open("interrupted")
        load, queries = Transactions(system), []
        for i in range(2000):
            load.put(b"item-%06d" % i)
        load.commit()
        for _ in range(3):
            queries += [system.send(system.queries.draw("codes")) for _ in range(150)]
            system.client.flush()
            time.sleep(float(system.rng.uniform(0, 0.1)))
            system.daemon.kill()
            queries += [system.send(system.queries.draw("codes")) for _ in range(20)]
            system.client.flush()
            system.daemon.start().wait_ready()
        self.check_everything(system, queries)
        system.daemon.stop()

    def test_terminated_with_queries_on_their_way(self):
        system = self.open("leaving")
        load, queries = Transactions(system), []
        for i in range(2000):
            load.put(b"item-%06d" % i)
        load.commit()
        for _ in range(3):
            queries += [system.send(system.queries.draw("codes")) for _ in range(150)]
            system.client.flush()
            system.daemon.stop()
            system.daemon.start().wait_ready()
        self.check_everything(system, queries, ("UNAVAILABLE",))
        system.daemon.stop()


class Topics(BrokerCase):
    def write(self, load, prefix, count, **where):
        for i in range(count):
            load.put(b"%s-%05d" % (prefix, i), **where)
        load.commit()

    def test_new_partitions_are_noticed(self):
        system = self.open("grown", {"catalogue": {"partitions_refresh_ms": 300}}, partitions=2)
        load = Transactions(system)
        self.write(load, b"old", 500)
        system.check_catalogue()
        broker.grow_topic(system.topic("catalogue"), 5)
        # Write new keys to explicit partitions: an old key must not move to another partition.
        load = Transactions(system)
        for partition in (2, 3, 4):
            self.write(load, b"new-%d" % partition, 100, partition=partition)

        def all_are_read():
            system.sync()  # the last transaction may end a little after its commit
            return set(system.oracle.end()) == {0, 1, 2, 3, 4}

        eventually(all_are_read, "the records of the new partitions")
        system.check_catalogue()
        system.daemon.stop()
        system.daemon.start().wait_ready()
        self.write(load, b"newer", 50, partition=4)
        system.check_catalogue()
        system.daemon.stop()

    def test_a_group_that_starts_at_the_end_skips_nothing_in_a_new_partition(self):
        system = self.open("late", {"query": {"start": "latest", "kafka": {"topic.metadata.refresh.interval.ms": 1000}}})
        self.write(Transactions(system), b"item", 50)
        system.check_catalogue()  # the group has positions
        broker.grow_topic(system.topic("queries"), 4)
        producer = Producer({**QUIET, "bootstrap.servers": broker.bootstrap})
        queries = [system.queries.draw("movies", "exact", k=5) for _ in range(20)]
        for query in queries:
            value, headers = system.queries.encode(query, None)
            producer.produce(system.topic("queries"), value, b"k", partition=3, headers=list(headers))
            self.assertEqual(producer.flush(30), 0)

        def are_answered():
            system.client.poll(0.05)
            return all(system.client.replies.get(query.id) for query in queries)
        eventually(are_answered, "answers to the queries of the new partition")
        system.daemon.stop()

    def recreate(self, name, before, after, config=None):
        """Stop a daemon that knows `before` items, and recreate its topic with `after` other items.

        The old and the new topic also share 50 keys.
        """
        system = self.open(name, config)
        load = Transactions(system)
        self.write(load, b"before", before)
        self.write(load, b"both", 50)
        system.check_catalogue()
        system.daemon.stop()
        broker.delete_topic(system.topic("catalogue"))
        broker.create_topic(system.topic("catalogue"), self.partitions, {"cleanup.policy": "compact"})
        system.follow_catalogue()
        load = Transactions(system)
        self.write(load, b"both", 50)
        self.write(load, b"after", after)
        eventually(lambda: system.sync() or len(system.records) == 50 + after, "the new topic's committed records")
        return system, len(system.daemon.log())

    def check_rebuilt(self, system, logged):
        system.daemon.start().wait_ready()
        system.check_catalogue()
        keys = system.oracle.state(system.oracle.end()).items
        self.assertIn(b"both-00000", keys)
        self.assertNotIn(b"before-00000", keys)
        self.assertEqual(system.daemon.status()["items"], len(keys))
        print(f" [{self.said_discontinuity(logged)}] ", end="", flush=True)
        # After the rebuild, the next start must report no discontinuity.
        system.daemon.stop()
        logged = len(system.daemon.log())
        system.daemon.start().wait_ready()
        system.check_catalogue()
        self.assertNotRegex(system.daemon.log()[logged:], r"\bevent=\S*discontinuity")
        system.daemon.stop()

    def test_a_recreated_topic_that_is_shorter_is_read_anew(self):
        self.check_rebuilt(*self.recreate("shorter", 2000, 200, {"catalogue": {"rebuild_min_percent": 10}}))

    def test_a_recreated_topic_that_is_longer_is_read_anew(self):
        self.check_rebuilt(*self.recreate("longer", 300, 2000))

    def test_a_topic_recreated_under_the_running_daemon_is_read_anew(self):
        system = self.open("running")
        load = Transactions(system)
        self.write(load, b"before", 300)
        system.check_catalogue()
        logged = len(system.daemon.log())
        broker.delete_topic(system.topic("catalogue"))
        broker.create_topic(system.topic("catalogue"), self.partitions, {"cleanup.policy": "compact"})
        system.follow_catalogue()
        self.write(Transactions(system), b"after", 900)
        system.sync()
        eventually(lambda: re.search(r"\bevent=\S*discontinuity", system.daemon.log()[logged:]),
                   "the discontinuity", 60)
        eventually(lambda: system.daemon.status()["ready"] and system.daemon.status()["items"] == 900,
                   "only the new topic's items", 60)
        system.check_catalogue()
        system.daemon.stop()

    def test_a_recreated_topic_stops_a_daemon_that_was_told_to(self):
        system, logged = self.recreate("stopping", 1000, 100, {"catalogue": {"on_discontinuity": "stop"}})
        system.daemon.start()
        self.assertGreater(system.daemon.wait_exit(30), 0, "it exited with status 0 or by a signal")
        line = self.said_discontinuity(logged)
        self.assertIn(system.topic("catalogue"), system.daemon.log()[logged:])
        print(f" [{line}] ", end="", flush=True)

    def test_dead_letters_of_a_real_topic(self):
        system = self.open("dead", {"catalogue": {"unknown_spaces": "refuse"}})
        load = Transactions(system)
        bad = [(b"bad-0", b""), (b"bad-1", b"\xff\xff"), (b"k" * 257, system.items.item().SerializeToString()),
               (b"bad-2", b'{"parts":{"nowhere":{}}}')]
        written = set()

        def remember(error, message):
            self.assertIsNone(error)
            written.add((message.topic(), message.partition(), message.offset()))
        for i, (key, value) in enumerate(bad):
            system.put(b"left-%d" % i)
            system.put_raw(key, value, on_delivery=remember)
            system.put(b"right-%d" % i)
        load.commit()
        system.check_catalogue()
        self.assertEqual({where[1:] for where in written}, set(system.oracle.rejected))
        self.assertEqual(set(system.wait_dead_letters(written)), written)
        system.daemon.stop()


if __name__ == "__main__":
    data.main()
