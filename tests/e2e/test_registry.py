#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of a catalogue topic in Avro whose schemas a schema registry has."""

import base64
import json
import re
import signal
import struct
import unittest
from pathlib import Path

import real_broker
import test_formats
from certificates import Authority
from harness import eventually
from registry import Registry
from test_formats import SCHEMAS, frame_of

LOGIN, PASSWORD = "sluice", "registry-secret-1"
TEXTS = {id: schema.text for id, schema in SCHEMAS.items()}
HELD, OTHER = 0, 1  # partitions


def setUpModule():
    global broker
    test_formats.setUpModule()
    broker = real_broker.open_for()
    broker.create_topic("sluice.catalogue", 2, {"cleanup.policy": "compact"})
    for kind in ("queries", "answers", "dead-letters"):
        broker.create_topic(f"sluice.{kind}")


class WithRegistry(test_formats.FormatCase):
    def open_registry(self, registry, bootstrap=None, **settings):
        self.addCleanup(registry.close)
        self.registry = registry
        self.open({"format": "avro", "framing": "confluent", "registry": {"url": registry.url, **settings},
                   "mapping": {"key": "sku.id", "vectors": {"books": "embedding"}}}, bootstrap)

    def put_all(self, numbers, id, partition):
        """Write rows as the schema of an id has them, and return their keys."""
        keys = {f"k{number}" for number in numbers}
        for key in sorted(keys):
            vector, _ = self.rows.vector()
            row = dict.fromkeys(test_formats.TYPES) | {"sku": {"id": key}, "embedding": vector, "gone": False, "more": {}}
            self.write(key.encode(), frame_of(id) + SCHEMAS[id].encode(row), partition=partition)
            self.items[key] = vector, {}
        self.assertEqual(self.system.producer.flush(60), 0)
        return keys

    def found(self):
        """Return what is found now, whatever the topic has."""
        ends, self.ends = self.ends, {}
        try:
            return set(self.ask())
        finally:
            self.ends = ends

    def wait_until_found(self, keys, what):
        eventually(lambda: self.found() == keys, what, 60)

    def wait_until_waiting(self, answer):
        """Wait until the daemon says what is missing, and why."""
        daemon = self.system.daemon
        eventually(lambda: "waiting for the schema registry" in (daemon.get("/readyz") or (0, ""))[1], "the wait")
        self.assertEqual(daemon.get("/readyz")[0], 503)
        problem = daemon.status()["problem"]
        self.assertRegex(problem, r"partition 0 of topic sluice.catalogue waits at offset \d+ for schema 8: https?://")
        self.assertIn(answer, problem)
        self.assertIn('sluice_catalogue_phase{phase="schema_away"} 1', daemon.get("/metrics")[1].splitlines())

    def test_a_partition_waits_for_a_schema(self):
        """Schema 8 is not to be had for a while. What needs it waits, the rest goes on; also after a kill."""
        authority = Authority(broker.folder, "registry")
        secret = Path(broker.folder) / "registry-password"
        secret.write_text(PASSWORD + "\n", encoding="utf-8")
        secret.chmod(0o600)
        self.open_registry(Registry(TEXTS, f"{LOGIN}:{PASSWORD}", authority.issue("registry")), broker.bootstrap,
                           user=LOGIN, password=f"file:{secret}", ca_file=str(authority.ca))
        found = self.put_all(range(20), 7, HELD) | self.put_all(range(20, 40), 7, OTHER)
        self.wait_until_found(found, "the first items")
        self.assertEqual(self.registry.asked, ["/schemas/ids/7"])

        self.registry.code = 503
        waiting = self.put_all(range(40, 44), 8, HELD) | self.put_all(range(44, 48), 7, HELD)
        self.wait_until_waiting('answers with HTTP status 503: "The store is not ready"')
        found |= self.put_all(range(50, 60), 7, OTHER)
        self.wait_until_found(found, "the items of the other partition")

        self.system.daemon.kill()
        self.system.daemon.start()
        self.wait_until_waiting("HTTP status 503")
        self.wait_until_found(found, "the items of the store")

        self.registry.code = 200
        self.wait_until_found(found | waiting, "the items that waited")
        self.check()
        eventually(lambda: self.system.daemon.get("/readyz")[0] == 200, "/readyz")
        log = self.system.daemon.log()
        self.assertIn("event=catalogue_schema_waiting", log)
        self.assertIn("event=catalogue_schema_over partition=0 schema=8", log)
        self.assertNotIn(PASSWORD, log)
        self.system.daemon.stop()

    def test_a_reload_brings_another_password(self):
        authority, former = (Authority(broker.folder, name) for name in ("current", "former"))
        secret, trusted = (Path(broker.folder) / name for name in ("renewed-password", "trusted.pem"))
        secret.write_text("wrong\n", encoding="utf-8")
        secret.chmod(0o600)
        trusted.write_bytes(former.ca.read_bytes())
        self.open_registry(Registry(TEXTS, f"{LOGIN}:{PASSWORD}", authority.issue("renewed")), user=LOGIN,
                           password=f"file:{secret}", ca_file=str(trusted))
        due = self.put_all(range(5), 8, HELD)
        self.wait_until_waiting("certificate")
        trusted.write_bytes(authority.ca.read_bytes())
        self.reload('changed="catalogue.registry" needs_restart=""')
        eventually(lambda: "answers with HTTP status 401" in self.system.daemon.status()["problem"], "the password", 60)
        self.reload('changed="" needs_restart=""')
        secret.write_text(PASSWORD + "\n", encoding="utf-8")
        self.reload('changed="catalogue.registry" needs_restart=""')
        self.wait_until_found(due, "the items that waited")
        self.reload('changed="" needs_restart=""')
        trusted.unlink()
        self.reload(re.escape(f'problem="catalogue.registry.ca_file: {trusted} cannot be read'), "reload_refused")
        self.put_all(range(5, 8), 7, OTHER)
        self.check()
        self.system.daemon.stop()

    def reload(self, what, event="reloaded"):
        """Have the daemon read its configuration again, and wait for what it says of that."""
        n_before = len(self.system.daemon.log())
        self.system.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: re.search(rf"event={event} .*{what}", self.system.daemon.log()[n_before:]), what)

    def test_a_schema_that_the_registry_does_not_have(self):
        self.open_registry(Registry(TEXTS | {9: "{", 10: '"int"'}))
        found = self.put_all(range(5), 7, 0)
        missing = "/schemas/ids/11 answers \"Schema 11 not found\""
        self.write(b"k1", frame_of(11) + b"x", "schema 11: the registry does not have it: http://")
        self.write(b"k1", frame_of(11) + b"y", missing)
        self.write(b"k1", frame_of(9) + b"x", 'ids/9: the text of its member "schema" is not JSON')
        self.write(b"k1", frame_of(10) + b"\x02", "Avro, but an integer where an object is expected")
        self.check()
        self.assertEqual(self.registry.asked.count("/schemas/ids/11"), 1)
        self.assertEqual(self.found(), found)
        self.system.daemon.stop()

    def test_partitions_that_wait_do_not_wait_for_each_other(self):
        self.open_registry(Registry(TEXTS))
        self.registry.broken = {7, 8}
        first = self.put_all(range(5), 7, HELD)
        other = self.put_all(range(5, 9), 8, OTHER)
        eventually(lambda: self.system.daemon.log().count("event=catalogue_schema_waiting") == 2, "both waits")
        self.registry.broken = {7}
        self.wait_until_found(other, "the items of the other partition")
        more = self.put_all(range(9, 12), 8, OTHER)
        self.wait_until_found(other | more, "more of them")
        self.registry.broken = set()
        self.wait_until_found(first | other | more, "all items")
        self.check()
        phases = re.findall(r'event=catalogue phase="([^"]*)"', self.system.daemon.log().split("schema_waiting", 1)[1])
        self.assertNotIn("waiting for Kafka", phases)
        self.system.daemon.stop()

    def test_a_schema_that_refers_to_others(self):
        """Film refers to Sku and to Tag, and both to Text, which is asked for once."""
        def answer(form, *references):
            return {"schema": json.dumps(form), "references": [
                {"name": f"shop.{name}", "subject": f"shop/{name} v", "version": 3} for name in references]}
        text = {"type": "fixed", "name": "Text", "namespace": "shop", "size": 2}
        sku, tag = ({"type": "record", "name": name, "namespace": "shop", "fields": [{"name": "id", "type": "Text"}]}
                    for name in ("Sku", "Tag"))
        film = {"type": "record", "name": "Film", "namespace": "shop", "fields": [
            {"name": "sku", "type": "Sku"}, {"name": "tag", "type": ["null", "shop.Tag"]},
            {"name": "embedding", "type": {"type": "array", "items": "float"}}]}
        self.open_registry(Registry({5: answer(film, "Sku", "Tag"), 6: answer(film, "Gone")}, subjects={
            "shop/Sku v/3": answer(sku, "Text"), "shop/Tag v/3": answer(tag, "Text"), "shop/Text v/3": answer(text)}))
        value = b"k1" + b"\x02" + b"xy" + b"\x04" + struct.pack("<2f", 3, 4) + b"\0"
        self.write(b"k1", frame_of(5) + value)
        self.write(b"k1", frame_of(6) + value, 'versions/3 answers "Subject not found"')
        self.items[base64.b64encode(b"k1").decode()] = [3, 4], {}  # a fixed is read as Base64 text
        self.check()
        self.assertEqual(len(self.registry.asked), 4 + 2)
        self.system.daemon.stop()

    def test_a_registry_that_lets_nobody_in_or_is_elsewhere(self):
        for path, login, due in (("", f"{LOGIN}:{PASSWORD}", '401: "Unauthorized"'),
                                 ("/wrong", None, '404: "HTTP 404 Not Found"')):
            registry = Registry(TEXTS, login)
            registry.url += path
            self.open_registry(registry)
            self.put_all(range(5), 8, 0)
            self.wait_until_waiting(f"answers with HTTP status {due}")
            self.assertEqual(self.found(), set())
            self.assertEqual(self.system.wait_dead_letters(set()), {})
            self.system.daemon.stop()


if __name__ == "__main__":
    unittest.main()
