#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of encryption, passwords and access lists, with a real Kafka broker that listens in several ways."""

import calendar
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

import data
import models
import real_broker
from harness import QUIET, SLOWNESS, Case, Daemon, System, TopicReader, build_dir, eventually, merged
from certificates import Authority
from secure_broker import SecureBroker
from wire import pb

SCRAM_PASSWORD = "scram-password-7d1e"
PLAIN_PASSWORD = "plain-password-4c9b"
LEAST_PASSWORD = "least-password-09aa"
USER = "everything"


def setUpModule():
    global broker, folder, paths, spaces, strangers
    real_broker.require()
    broker = SecureBroker({USER: PLAIN_PASSWORD, "least": LEAST_PASSWORD}).start()
    unittest.addModuleCleanup(broker.close)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        broker.change("scram", USER, mechanism, SCRAM_PASSWORD)
    paths = {"movies": broker.folder / "movies.safetensors"}
    models.random_recjpq(data.generator("security models"), paths["movies"], m=4, b=16, d=16)
    spaces = {name: models.load(path) for name, path in paths.items()}
    strangers = Authority(broker.folder, "strangers")


def tls(listener="TLS", **more):
    return {"bootstrap.servers": broker.address(listener), "security.protocol": "ssl",
            "ssl.ca.location": str(broker.authority.ca), **more}


def sasl(mechanism, password, user=USER, **more):
    return tls("SASL", **{"security.protocol": "sasl_ssl", "sasl.mechanism": mechanism, "sasl.username": user,
                          "sasl.password": password, **more})


class SecurityCase(Case):
    """Tests that each have a daemon, with topics of their own."""

    def make(self, name, kafka, more=None, query_partitions=1):
        config = merged({"kafka": kafka, "catalogue": {"group": f"{name}.positions"}}, more or {})
        self.system = System(paths, spaces, config, broker.bootstrap, name, name)
        self.addCleanup(self.system.close)
        for kind in ("catalogue", "queries", "answers", "dead-letters"):
            broker.create_topic(self.system.topic(kind), query_partitions if kind == "queries" else 1,
                                {"cleanup.policy": "compact"} if kind == "catalogue" else None)
        return self.system

    def answer_one(self):
        """Load an item, and get an answer that has it."""
        self.system.put(b"an item")
        self.system.sync()
        query = self.system.queries.draw("movies", "pqtopk", k=5, at_least=self.system.positions())
        self.assert_answered([self.system.send(query)])

    def assert_answered(self, queries, timeout_s=30):
        """Wait for the answers, and check that each has the one item. Other tests check scores."""
        for answer in self.system.client.wait([q.id for q in queries], timeout_s).values():
            self.assertEqual([hit.key for hit in answer.hits], [b"an item"], answer)

    def serve(self, name, kafka, more=None):
        self.make(name, kafka, more).open()
        self.answer_one()
        return self.system

    def wait_not_ready(self, words, timeout_s=10):
        def says():
            answer = self.system.daemon.get("/readyz")
            return answer and answer[0] == 503 and words in answer[1]
        eventually(says, f"/readyz to say {words!r}", timeout_s)

    def refuse(self, name, kafka, words):
        """Start a daemon that no broker lets in. It says why, keeps trying, and does not flood its log."""
        system = self.make(name, kafka)
        system.daemon.start()
        self.wait_not_ready(words)
        self.assertNotIn("waiting for Kafka", system.daemon.get("/readyz")[1])
        self.assertEqual(system.daemon.log().count("event=kafka_refused"), 1)
        time.sleep(2)
        self.assertTrue(system.daemon.is_running())
        self.assertLess(len(system.daemon.log().splitlines()), 30)
        return system

    def recover(self):
        self.system.connect()
        self.system.daemon.wait_ready()
        self.answer_one()


class Ways(SecurityCase):
    """An item is loaded and a query answered, in each way to authenticate."""

    def test_tls(self):
        self.serve("tls", tls())

    def test_mutual_tls(self):
        certificate, key = broker.authority.issue("sluice")
        self.serve("mutual-tls", tls("MTLS", **{"ssl.certificate.location": str(certificate),
                                                "ssl.key.location": str(key)}))

    def test_plain(self):
        self.serve("plain", sasl("PLAIN", PLAIN_PASSWORD))

    def test_scram_sha_256(self):
        self.serve("scram-256", sasl("SCRAM-SHA-256", SCRAM_PASSWORD))

    def test_scram_sha_512(self):
        self.serve("scram-512", sasl("SCRAM-SHA-512", SCRAM_PASSWORD))

    def test_a_token(self):
        self.serve("token", tls("SASL", **{
            "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={USER}"}))


class Secrets(SecurityCase):
    def test_no_output_has_a_secret(self):
        """The password comes from a credential, from a file and from the environment, and is nowhere to be seen."""
        for way in ("credential", "file", "env"):
            with self.subTest(way):
                self.show_everything(way)

    def show_everything(self, way):
        system = self.make(f"secret-{way}", sasl("SCRAM-SHA-512", f"{way}:broker-password", debug="all"),
                           {"log": {"level": "debug"}})
        Path(system.folder, "broker-password").write_text(SCRAM_PASSWORD + "\n")
        Path(system.folder, "broker-password").chmod(0o604 if way == "file" else 0o600)
        system.daemon.environment = {"CREDENTIALS_DIRECTORY": str(system.folder), "broker-password": SCRAM_PASSWORD}
        system.open()
        self.answer_one()
        shown = [system.daemon.get(page)[1] for page in ("/readyz", "/status", "/metrics")]
        shown.append(Path(f"/proc/{system.daemon.process.pid}/cmdline").read_text())
        environment = {**os.environ, **system.daemon.environment}
        for words in (["sluicectl", "--config", system.daemon.config_path, "status", "--json"],
                      ["sluicectl", "--config", system.daemon.config_path, "settings"],
                      ["sluicectl", "--config", system.daemon.config_path, "topics", "create"],
                      ["sluiced", "--config", system.daemon.config_path, "--check-config"]):
            done = subprocess.run([build_dir() / words[0], *words[1:]], env=environment, capture_output=True, text=True,
                                  timeout=60 * SLOWNESS)
            self.assertEqual(done.returncode, 0, done.stderr)
            shown += [done.stdout, done.stderr]
        system.daemon.stop()
        shown.append(system.daemon.log())
        for text in shown:
            self.assertNotIn(SCRAM_PASSWORD, text)
        self.assertEqual("event=secret_readable" in system.daemon.log(), way == "file")


class Refused(SecurityCase):
    """Brokers that do not let the daemon in."""

    def test_a_broker_of_a_strange_authority(self):
        self.refuse("strange", tls(**{"ssl.ca.location": str(strangers.ca)}), "not from an authority of ssl.ca.location")

    def test_a_broker_whose_certificate_has_expired(self):
        self.refuse("expired", tls("EXPIRED"), "has expired")

    def test_no_certificate_where_one_is_wanted(self):
        self.refuse("no-certificate", tls("MTLS"), "ssl.certificate.location")

    def test_the_certificate_of_a_strange_authority(self):
        certificate, key = strangers.issue("sluice")
        self.refuse("strange-client", tls("MTLS", **{"ssl.certificate.location": str(certificate),
                                                     "ssl.key.location": str(key)}), "ssl.certificate.location")

    def test_no_encryption_where_it_is_wanted(self):
        self.refuse("no-tls", {"bootstrap.servers": broker.address("TLS")}, "security.protocol")

    def test_a_wrong_password_until_the_broker_knows_it(self):
        password = "later-password-55ce"
        words = f"cannot authenticate to {broker.address('SASL')}"
        broker.change("scram", "later", "SCRAM-SHA-512", "another-password")
        broker.change("allow", "User:later", "CLUSTER", "kafka-cluster", "DESCRIBE")
        system = self.refuse("password", sasl("SCRAM-SHA-512", password, "later"), words)
        ctl = subprocess.run([build_dir() / "sluicectl", "--config", system.daemon.config_path, "topics", "create"],
                             capture_output=True, text=True, timeout=60 * SLOWNESS)
        self.assertNotEqual(ctl.returncode, 0)
        self.assertIn(words, ctl.stderr)
        allow(system, "later")
        broker.change("scram", "later", "SCRAM-SHA-512", password)
        self.recover()
        self.assertNotIn(password, system.daemon.log())


class Reload(SecurityCase):
    """A password that changes is taken up by SIGHUP, without a restart."""

    def hang_up(self, expected):
        before = len(self.system.daemon.log())
        self.system.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: re.search(expected, self.system.daemon.log()[before:]), expected)

    def make_user(self, name, password, more=None):
        broker.change("scram", name, "SCRAM-SHA-512", password)
        system = self.make(name, sasl("SCRAM-SHA-512", "file:broker-password", name), more)
        Path(system.folder, "broker-password").write_text(password)
        allow(system, name)
        return system

    def test_a_wrong_password_is_corrected(self):
        system = self.make_user("corrected", "right-password")
        Path(system.folder, "broker-password").write_text("wrong-password")
        system.daemon.start()
        self.wait_not_ready("cannot authenticate to")
        Path(system.folder, "broker-password").write_text("right-password")
        self.hang_up(r'event=reloaded .*changed="credentials" needs_restart=""')
        self.recover()

    def wait_catalogue_committed(self):
        """From then on, the catalogue's consumer has all its connections."""
        place = TopicPartition(self.system.topic("catalogue"), 0)
        group = self.system.topic("positions")
        consumer = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": group})
        try:
            eventually(lambda: consumer.committed([place], 60)[0].offset > 0, "the catalogue's committed position", 60)
        finally:
            consumer.close()

    def test_a_new_password_loses_and_repeats_no_query(self):
        system = self.make_user("renewed", "first-password", {"catalogue": {"commit_interval_ms": 100}}).open()
        self.answer_one()
        self.wait_catalogue_committed()  # a connection made while the broker has another password is refused
        queries = []
        for password in ("second-password", "third-password"):
            broker.change("scram", "renewed", "SCRAM-SHA-512", password)
            Path(system.folder, "broker-password").write_text(password)
            queries += [system.send(system.queries.draw("movies", "pqtopk", k=5)) for _ in range(50)]
            self.hang_up(r'event=reloaded .*changed="credentials" needs_restart=""')
            queries += [system.send(system.queries.draw("movies", "pqtopk", k=5)) for _ in range(50)]
        self.assert_answered(queries)
        self.assertEqual({len(system.client.replies[q.id]) for q in queries}, {1})
        broker.process.kill()  # one that stops in order may refuse who connects meanwhile, which is told later
        broker.stop()
        before = len(system.daemon.log())
        broker.start()
        self.assert_answered([system.send(system.queries.draw("movies", "pqtopk", k=5))], 60)
        self.assertNotIn("error=_AUTHENTICATION", system.daemon.log()[before:])
        self.assertNotIn("-password", system.daemon.log().replace("broker-password", ""))

    def test_what_cannot_change_is_named(self):
        system = self.make_user("named", "only-password").open()
        text = system.daemon.config_path.read_text()
        system.daemon.config_path.write_text(text.replace("SCRAM-SHA-512", "SCRAM-SHA-256"))
        self.hang_up(r'event=reloaded .*changed="" needs_restart="kafka"')
        limits = text.replace('"at_least_timeout_ms"', "at_least_timeout_ms")
        limits = re.sub(r"at_least_timeout_ms: \d+", "at_least_timeout_ms: 50", limits)
        system.daemon.config_path.write_text(limits)
        self.hang_up(r'event=reloaded .*changed="query.at_least_timeout_ms" needs_restart=""')
        unseen = system.queries.draw("movies", "pqtopk", k=5, at_least=[pb.Position(partition=0, next=1000)])
        system.send(unseen)
        answer = system.client.wait([unseen.id], 10)[unseen.id]
        self.assertEqual(pb.Error.Code.Name(answer.error.code), "NOT_SEEN")


class Reissue:
    """Certificates in files that keep their names. CLIENTS: the clients that are replaced when these change."""

    def put_certificate(self, authority, name, **times):
        for source, file in zip(authority.issue(name, **times), self.files):
            shutil.copy(source, file)

    def hang_up(self, expected, pause_s=0.02, daemon=None):
        daemon = daemon or self.system.daemon
        before = len(daemon.log())
        daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: re.search(expected, daemon.log()[before:]), expected, pause_s=pause_s)
        return before

    def renew(self, meanwhile=lambda: None, daemon=None):
        """Reload, and wait until another client has taken over from each."""
        before = self.hang_up(r'event=reloaded .*changed="certificates" needs_restart=""', daemon=daemon)
        self.wait_renewed(before, meanwhile, daemon)

    def wait_renewed(self, before, meanwhile=lambda: None, daemon=None):
        def is_renewed():
            meanwhile()
            log = (daemon or self.system.daemon).log()[before:]
            return all(f"event=kafka_client_renewed client={client}" in log for client in self.CLIENTS)
        eventually(is_renewed, "other clients")

    def ask(self, n):
        return [self.system.send(self.system.queries.draw("movies", "pqtopk", k=5)) for _ in range(n)]


class Renewal(SecurityCase, Reissue):
    """Certificates that change are taken up by SIGHUP: other clients take over, and no query is lost or repeated."""

    CLIENTS = ("catalogue", "seen", "queries", "answers", "dead_letters")

    def make_client(self, name, others=None, **topics):
        """Make a daemon whose certificate is in files that keep their names.

        others: files of another certificate, which all clients have but the consumer of queries
        """
        def named(files):
            return dict(zip(("ssl.certificate.location", "ssl.key.location"), map(str, files)))
        self.files = [broker.folder / f"{name}.{kind}" for kind in ("pem", "key")]
        query = {"query": {"kafka": named(self.files)}} if others else {}
        system = self.make(name, tls("MTLS", **named(others or self.files)), {"seen": {"topic": f"{name}.seen"}, **query},
                           **topics)
        broker.create_topic(f"{name}.seen", 2)
        return system

    def expiry(self, use="certificate"):
        page = self.system.daemon.get("/metrics")[1]
        found = re.search(rf'sluice_certificate_expiry_timestamp_seconds{{section="kafka",use="{use}"}} (.*)', page)
        return float(found[1])

    def test_no_query_is_lost_or_answered_twice(self):
        system = self.make_client("certificate")
        self.put_certificate(broker.authority, "sluice", end="20400101000000Z")
        system.open()
        self.answer_one()
        self.assertEqual(self.expiry(), calendar.timegm((2040, 1, 1, 0, 0, 0)))
        self.assertAlmostEqual(self.expiry("authority"), time.time() + 30 * 86400, delta=86400)
        queries = []
        for year in (2041, 2042):
            self.put_certificate(broker.authority, "sluice", end=f"{year}0101000000Z")
            queries += self.ask(50)
            self.renew(lambda: queries.extend(self.ask(3)))
            queries += self.ask(50)
            self.assertEqual(self.expiry(), calendar.timegm((year, 1, 1, 0, 0, 0)))
        self.assert_answered(queries)
        self.answer_one()
        self.assert_repeated_only_what_was_late(queries)

    def assert_repeated_only_what_was_late(self, queries):
        """On a slow machine, a handover may end before all queries are answered: then those are answered again."""
        log = self.system.daemon.log()
        late = re.findall(r"event=kafka_client_renewed client=queries unanswered=(\d+)", log)
        self.assertEqual(len(late), 2)
        for query in queries:
            first, *others = [list(reply.answer.hits) for reply in self.system.client.replies[query.id]]
            self.assertTrue(all(hits == first for hits in others))
            if late == ["0", "0"]:
                self.assertEqual(others, [], query.id)
        if late == ["0", "0"]:
            self.assertNotIn("event=query_commit", log)

    def test_no_query_to_several_daemons_is_lost(self):
        """Two daemons share the queries, and are renewed in turn. Each renewal is a rebalance for the other one."""
        system = self.make_client("group", query_partitions=4)
        self.put_certificate(broker.authority, "sluice")
        system.open()
        folder = system.folder / "other"
        folder.mkdir()
        other = Daemon(merged(system.daemon.config, {"store": {"path": str(folder / "store")}}), folder).start()
        self.addCleanup(lambda: other.is_running() and other.kill())
        other.wait_ready()
        daemons = (system.daemon, other)
        for daemon in daemons:
            eventually(lambda: "assigned=2" in daemon.log(), "half of the partitions")
        self.answer_one()
        eventually(lambda: [d.status()["items"] for d in daemons] == [1, 1], "the item")
        queries = []
        for daemon in daemons * 2:
            self.put_certificate(broker.authority, "sluice")
            queries += self.ask(50)
            self.renew(lambda: queries.extend(self.ask(3)), daemon)
            queries += self.ask(50)
        self.assert_answered(queries)
        self.answer_one()
        # The daemon that is not renewed gives up its partitions too: what it is answering then may be answered twice.
        replies = [[list(reply.answer.hits) for reply in system.client.replies[query.id]] for query in queries]
        self.assertTrue(all(hits == first for first, *others in replies for hits in others))
        self.assertLess(sum(len(others) for _, *others in replies), len(queries) / 10)
        for daemon in daemons:
            daemon.stop()

    def test_all_clients_have_the_new_one(self):
        system = self.make_client("renamed")
        needed = (*NEEDED, ("TOPIC", "seen", "READ"))
        for name in ("former", "newer"):
            allow(system, f"CN={name}", needed=needed)
        self.put_certificate(broker.authority, "former")
        system.open()
        self.answer_one()
        self.put_certificate(broker.authority, "newer")
        self.renew()
        allow(system, "CN=former", needed=needed, change="forbid")
        self.answer_one()
        system.put_raw(b"broken", b"\xff")
        system.producer.produce(system.topic("seen"), b'{"items": ["a"]}', b"7")
        system.sync()
        system.wait_dead_letters({(system.topic("catalogue"), 0, 2)})
        eventually(lambda: system.daemon.status()["seen"]["users"] == 1, "the record")
        self.assertIsNone(system.daemon.status()["seen"]["problem"])
        self.assertNotIn("GROUP_AUTHORIZATION_FAILED", system.daemon.log())

    def test_a_key_of_another_certificate_changes_nothing(self):
        system = self.make_client("unfit")
        self.put_certificate(broker.authority, "sluice")
        system.open()
        self.answer_one()
        right = self.files[1].read_text()
        self.put_certificate(broker.authority, "another")
        self.files[1].write_text(right)
        self.hang_up("event=reload_refused problem=.*key")
        self.answer_one()
        self.assertNotIn("event=kafka_client_renewed", system.daemon.log())

    def test_a_key_that_does_not_fit_yet_is_waited_for(self):
        """The files change after the check of the reload, and before all clients are opened again."""
        system = self.make_client("half-written")
        self.put_certificate(broker.authority, "sluice")
        system.open()
        self.answer_one()
        waited, queries = set(), []
        for _ in range(20):  # who is too fast for this test may not be the next time
            former = self.files[1].read_text()
            self.put_certificate(broker.authority, "sluice")
            right = self.files[1].read_text()
            before = self.hang_up(r'event=reloaded .*changed="certificates" needs_restart=""', 0.001)
            self.files[1].write_text(former)
            queries += self.ask(20)
            self.assert_answered(queries)
            self.files[1].write_text(right)
            self.wait_renewed(before)
            waited |= set(re.findall(r"event=kafka_client_not_renewed client=(\w+)", system.daemon.log()))
            if {"catalogue", "seen", "queries"} <= waited:
                break
        self.assertLessEqual({"catalogue", "seen", "queries"}, waited)
        queries += self.ask(20)
        self.assert_answered(queries)
        self.answer_one()

    def wait_problems(self, words):
        def are_said():
            status = self.system.daemon.status()
            return all(words in (problem or "") for problem in (status["problem"], status["seen"]["problem"]))
        eventually(are_said, f"problems with {words}")

    def test_a_key_that_does_not_fit_yet_is_waited_for_when_brokers_come_back(self):
        system = self.make_client("half-written-away")
        self.put_certificate(broker.authority, "sluice")
        system.open()
        self.answer_one()
        former = self.files[1].read_text()
        self.put_certificate(broker.authority, "sluice")
        right = self.files[1].read_text()
        self.files[1].write_text(former)
        broker.stop()
        try:
            self.wait_problems("ssl.key.location")
        finally:
            broker.start()
        self.assert_answered(self.ask(5), 60)  # the consumer of queries and the producers have the former certificate
        self.wait_problems("ssl.key.location")
        self.files[1].write_text(right)
        system.daemon.wait_ready()
        self.answer_one()
        eventually(lambda: not system.daemon.status()["seen"]["problem"], "the end of the problem")

    def test_a_key_that_does_not_fit_yet_is_waited_for_at_the_start_too(self):
        """The files change after the daemon has started, and before it opens the consumer of queries."""
        system = self.make_client("half-written-start")
        self.put_certificate(broker.authority, "sluice")
        broker.delete_topic(system.topic("catalogue"))
        system.daemon.start()
        self.wait_not_ready("catalogue", 30)
        former = self.files[1].read_text()
        self.put_certificate(broker.authority, "sluice")
        right = self.files[1].read_text()
        self.files[1].write_text(former)
        broker.create_topic(system.topic("catalogue"), 1, {"cleanup.policy": "compact"})
        eventually(lambda: "event=kafka_client_not_opened client=queries" in system.daemon.log(), "the event")
        self.wait_not_ready("certificate")
        self.assertEqual(system.daemon.log().count("event=kafka_client_not_opened"), 1)
        self.files[1].write_text(right)
        self.recover()

    def test_a_refused_certificate_leaves_the_queries_to_the_former_consumer(self):
        others = [shutil.copy(source, broker.folder / f"others{source.suffix}")
                  for source in broker.authority.issue("sluice")]
        system = self.make_client("refused-renewal", others)
        self.put_certificate(broker.authority, "sluice")
        system.open()
        self.answer_one()
        self.put_certificate(strangers, "sluice")
        before = self.hang_up(r'event=reloaded .*changed="certificates"')
        other = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": system.topic("group")})
        other.subscribe([system.topic("queries")])

        def is_rebalanced():
            other.poll(0.1)
            return "event=query_partitions" in system.daemon.log()[before:]
        eventually(is_rebalanced, "the rebalance")
        other.close()
        self.answer_one()
        self.assertNotIn("client=queries", system.daemon.log()[before:])
        self.put_certificate(broker.authority, "sluice")
        self.renew()
        self.answer_one()

    def test_a_daemon_that_no_broker_lets_in_comes_back(self):
        system = self.make_client("expired-client")
        self.put_certificate(strangers, "sluice")
        system.daemon.start()
        self.wait_not_ready("ssl.certificate.location")
        self.put_certificate(broker.authority, "sluice")
        self.hang_up('event=reloaded .*changed="certificates"')
        self.recover()


class MergeCase(SecurityCase):
    """Tests that each have a merge, which joins the parts of a single shard. The shard may do everything."""

    def open_merge(self, name, kafka, delivery, reply_topics=()):
        certificate, key = broker.authority.issue("sluice")
        shard = tls("MTLS", **{"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)})
        query = {"partials_topic": f"{name}.partials", "reply_topics": list(reply_topics)}
        system = self.make(name, shard, {"catalogue": {"shard": {"index": 0, "of": 1}}, "query": query})
        broker.create_topic(system.topic("partials"), 2)
        folder = system.folder / "merge"
        folder.mkdir()
        self.merge = Daemon({"role": "merge", "kafka": kafka,
                             "query": {**query, "group": system.topic("group"), "answer_topic": system.topic("answers")},
                             "merge": {"instance": "first", "wait_ms": int(20000 * SLOWNESS), "delivery": delivery}},
                            folder).start()
        self.addCleanup(lambda: self.merge.is_running() and self.merge.kill())
        system.open()
        self.merge.wait_ready()
        self.answer_one()
        return system


NEEDED_BY_MERGE = (("TOPIC", "partials", "READ"), ("TOPIC", "partials", "WRITE"), ("TOPIC", "answers", "WRITE"),
                   ("GROUP", "group.merge", "READ"), ("TRANSACTIONAL_ID", "group.merge.first", "WRITE"))


class MergeRenewal(MergeCase, Reissue):
    """The same for the role merge. The shard keeps its certificate."""

    CLIENTS = ("partials", "answers")

    def open_merge(self, name, user, delivery):
        self.files = [broker.folder / f"{name}.{kind}" for kind in ("pem", "key")]
        self.put_certificate(broker.authority, user)
        own = dict(zip(("ssl.certificate.location", "ssl.key.location"), map(str, self.files)))
        return super().open_merge(name, tls("MTLS", **own), delivery)

    def answer_each_once(self, queries):
        self.assert_answered(queries, 60)
        eventually(lambda: self.merge.status()["counters"]["open_queries"] == 0, "the merge to have no parts")
        self.system.client.poll(0.5)
        for query in queries:
            self.assertEqual(len(self.system.client.replies[query.id]), 1, query.id)

    def test_a_merge_loses_and_repeats_no_query(self):
        for delivery in ("exactly_once", "at_least_once"):
            with self.subTest(delivery):
                self.open_merge(f"merge-{delivery.replace('_', '-')}", "sluice", delivery)
                queries = []
                for _ in range(2):
                    self.put_certificate(broker.authority, "sluice")
                    queries += self.ask(50)
                    self.renew(lambda: queries.extend(self.ask(3)), self.merge)
                    queries += self.ask(50)
                self.merge.wait_ready()
                self.answer_each_once(queries)
                self.merge.stop()

    def test_both_clients_of_a_merge_have_the_new_one(self):
        def change_all(change):
            for resource, kind, operation in NEEDED_BY_MERGE:
                broker.change(change, "User:CN=former", resource, f"merge-acl.{kind}", operation)
        change_all("allow")
        self.open_merge("merge-acl", "former", "exactly_once")
        self.put_certificate(broker.authority, "sluice")
        self.renew(daemon=self.merge)
        change_all("forbid")
        self.answer_each_once(self.ask(5))
        self.merge.stop()

    def test_a_refused_certificate_leaves_the_merge_to_the_former_clients(self):
        self.open_merge("merge-refused", "sluice", "exactly_once")
        self.put_certificate(strangers, "sluice")
        before = self.hang_up(r'event=reloaded .*changed="certificates"', daemon=self.merge)
        eventually(lambda: "event=kafka_refused" in self.merge.log()[before:], "brokers to refuse the certificate")
        self.answer_each_once(self.ask(5))
        self.put_certificate(broker.authority, "sluice")
        self.renew(daemon=self.merge)
        self.answer_each_once(self.ask(5))
        self.merge.stop()


class MergeReplies(MergeCase):
    """The broker says that a reply topic is there, and lets the merge write nothing into it."""

    def ask(self, n, reply_topic):
        """Ask so many queries that name the topic, and as many others. Return both lists."""
        queries = [[], []]
        for i in range(2 * n):
            query = self.system.queries.draw("movies", "pqtopk", k=5, reply_topic=reply_topic if i % 2 == 0 else "")
            queries[i % 2].append(self.system.send(query))
        self.system.client.flush()
        return queries

    def check_named(self, queries):
        """Each has an answer in the configured topic: an error that says why, or hits. Return the number of errors."""
        answers = self.system.client.wait([query.id for query in queries], 60)
        refused = [query for query in queries if answers[query.id].HasField("error")]
        for query in refused:
            error = answers[query.id].error
            self.assertEqual(pb.Error.Code.Name(error.code), "INTERNAL")
            self.assertRegex(error.message, "no broker took the answer of .* for the query's reply_topic")
        self.assert_answered([query for query in queries if query not in refused])
        return len(refused)

    def check(self, name, delivery):
        replies = f"{name}.replies"
        for resource, kind, operation in (*NEEDED_BY_MERGE, ("TOPIC", "replies", "DESCRIBE")):
            broker.change("allow", "User:least", resource, f"{name}.{kind}", operation)
        broker.create_topic(replies)
        system = self.open_merge(name, sasl("PLAIN", LEAST_PASSWORD, "least"), delivery, [replies])
        self.merge.process.send_signal(signal.SIGSTOP)  # then it finds the parts of all queries at a time
        named, others = self.ask(5, replies)
        eventually(lambda: system.daemon.status()["counters"]["answers"] >= 11, "the parts")
        self.merge.process.send_signal(signal.SIGCONT)
        self.assert_answered(others, 60)
        self.assertGreater(self.check_named(named), 0)
        named, others = self.ask(5, replies)  # the merge takes the configured topic for a while
        self.assert_answered(others, 60)
        self.check_named(named)
        self.assertEqual(TopicReader(broker.bootstrap, replies).read(), [])
        self.assertIn("event=reply_not_sent", self.merge.log())
        self.assertEqual(self.merge.status()["counters"]["undeliverable"], 0)
        self.merge.stop()

    def test_in_transactions_it_holds_up_no_other_answer(self):
        self.check("unwritable", "exactly_once")

    def test_without_transactions_it_holds_up_no_other_answer(self):
        self.check("unwritable-plain", "at_least_once")


NEEDED = (("TOPIC", "catalogue", "READ"), ("TOPIC", "catalogue", "DESCRIBE_CONFIGS"), ("TOPIC", "queries", "READ"),
          ("GROUP", "group", "READ"), ("GROUP", "positions", "READ"), ("TOPIC", "answers", "WRITE"), ("TOPIC", "dead-letters", "WRITE"))


def allow(system, user, kinds=None, needed=NEEDED, change="allow"):
    """Allow a user what docs/operations.md says that the daemon needs; of that, only what is about these topics."""
    for resource, kind, operation in needed:
        if kinds is None or kind in kinds:
            broker.change(change, f"User:{user}", resource, system.topic(kind), operation)


class LeastPrivilege(SecurityCase):
    def test_what_is_missing_is_named_until_it_is_allowed(self):
        refresh = {"kafka": {"topic.metadata.refresh.interval.ms": "1000"}}
        system = self.make("least", sasl("PLAIN", LEAST_PASSWORD, "least"), {"query": refresh})
        system.daemon.start()
        self.wait_not_ready("not allowed to read the catalogue topic")
        allow(system, "least", ["catalogue", "positions"])
        self.wait_not_ready("not allowed to use query.group", 20)
        allow(system, "least", ["group"])
        self.wait_not_ready("not allowed to read the query topic", 20)
        allow(system, "least", ["queries"])
        system.connect()
        system.daemon.wait_ready()
        system.put(b"an item")
        system.sync()
        query = system.queries.draw("movies", "pqtopk", k=5, at_least=system.positions())
        system.send(query)
        self.wait_not_ready("waiting for the answer topic")
        self.assertRegex(system.daemon.log(), r"event=delivery_waiting .*authorization failed")
        allow(system, "least", ["answers"])
        self.assert_answered([query])
        system.daemon.wait_ready()
        allow(system, "least", ["dead-letters"])
        system.put_raw(b"broken", b"\xff")
        system.sync()
        system.wait_dead_letters({(system.topic("catalogue"), 0, 1)})
        self.check_put_without_letters()
        self.check_that_a_quiet_time_is_not_read()
        system.daemon.stop()
        self.assertNotIn("event=positions_not_committed", system.daemon.log())

    def check_put_without_letters(self):
        """Who may write items may not be allowed to read letters: put then says only that it was refused."""
        allow(self.system, "least", needed=[("TOPIC", "catalogue", "WRITE")])
        said = self.ctl("put", "bad", '{"parts": {"movies": {"vector": [1]}}}', code=1)
        self.assertIn("the daemon has refused records meanwhile, perhaps this one: topic least.dead-letters", said)

    def check_that_a_quiet_time_is_not_read(self):
        """Who may not read letters sees that there are none since a time, because nothing has to be read for that."""
        self.assertIn("no dead letters", self.ctl("dead-letters", "list", "--since", "2100-01-01T00:00:00Z"))
        self.assertIn("cannot be read", self.ctl("dead-letters", "list", "--since", "1h", code=1))

    def ctl(self, *words, code=0):
        done = subprocess.run([build_dir() / "sluicectl", "--config", self.system.daemon.config_path, *words],
                              capture_output=True, text=True, timeout=60 * SLOWNESS)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_canaries_need_to_write_to_the_catalogue(self):
        system = self.make("canaries", sasl("PLAIN", LEAST_PASSWORD, "least"), {"canary": {"interval_ms": 100}})
        allow(system, "least")
        system.open()
        eventually(lambda: re.search(r"event=canary_not_written .*authorization failed", system.daemon.log()),
                   "event=canary_not_written")
        allow(system, "least", needed=[("TOPIC", "catalogue", "WRITE")])
        eventually(lambda: system.daemon.status()["latency_since_start_us"]["canary"]["count"], "a canary")
        system.daemon.stop()

    def test_a_member_without_partitions_is_ready_once_it_may_use_the_group(self):
        system = self.make("spare", sasl("PLAIN", LEAST_PASSWORD, "least", **{"client.id": "second"}))
        holder = Consumer({**QUIET, "bootstrap.servers": broker.bootstrap, "group.id": system.topic("group"),
                           "client.id": "first"})
        self.addCleanup(holder.close)
        holder.subscribe([system.topic("queries")])
        eventually(lambda: (holder.poll(0.1), holder.assignment())[1], "the other member to have the partition")
        allow(system, "least", ["catalogue", "positions", "queries"])
        system.daemon.start()
        self.wait_not_ready("not allowed to use query.group", 20)
        allow(system, "least", ["group"])
        eventually(lambda: (holder.poll(0.1), system.daemon.get("/readyz"))[1] == (200, "ready\n"), "readiness")
        self.assertRegex(system.daemon.log(), r"event=query_partitions .*assigned=0")

    def test_a_seen_topic_that_may_be_described_but_not_read(self):
        system = self.make("unread", sasl("PLAIN", LEAST_PASSWORD, "least"), {"seen": {"topic": "unread.seen"}})
        broker.create_topic("unread.seen", 2)
        allow(system, "least")
        broker.change("allow", "User:least", "TOPIC", "unread.seen", "DESCRIBE")
        system.open()

        def is_said():
            return "not read it" in (system.daemon.status()["seen"]["problem"] or "")
        eventually(is_said, "the problem")
        for _ in range(30):  # the daemon tries again and again meanwhile
            time.sleep(0.1)
            self.assertTrue(is_said())
        self.assertEqual(system.daemon.log().count("event=seen_waiting"), 1, system.daemon.log_tail(30))
        self.assertLessEqual(system.daemon.log().count("event=seen_partition"), 4)
        broker.change("allow", "User:least", "TOPIC", "unread.seen", "READ")
        eventually(lambda: not system.daemon.status()["seen"]["problem"], "the end of the problem")
        system.daemon.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
