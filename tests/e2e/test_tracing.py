#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the spans of sampled queries, with a collector that the tests control."""

import json
import re
import secrets
import subprocess
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import data
import models
from harness import Case, System, build_dir, eventually, free_port
from wire import pb

N_ITEMS = 50
WAIT_MS = 300
INTERNAL, PRODUCER, CONSUMER = 1, 4, 5  # opentelemetry.proto.trace.v1.Span.SpanKind
ERROR = 2  # Status.StatusCode


def setUpModule():
    global paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    unittest.addModuleCleanup(folder.cleanup)
    paths = {"dot": Path(folder.name) / "dot.safetensors"}
    models.random_vectors(data.generator("tracing models"), paths["dot"], "dot")
    spaces = {"dot": models.load(paths["dot"])}


class Collector:
    """Takes traces by OTLP/HTTP, and keeps them. `code` is what it answers."""

    def __init__(self, port):
        self.requests, self.code = [], 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if collector.code == 200:
                    assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/json")
                    collector.requests.append(json.loads(body))
                self.send_response(collector.code)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def spans(self, trace_id):
        """Return the spans of a trace, each as its fields and its attributes."""
        found = [span for request in list(self.requests) for resource in request["resourceSpans"]
                 for scoped in resource["scopeSpans"] for span in scoped["spans"] if span["traceId"] == trace_id]
        return [(span, attributes_of(span)) for span in found]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def attributes_of(span):
    def value_of(value):
        ((kind, plain),) = value.items()
        return int(plain) if kind == "intValue" else plain
    return {attribute["key"]: value_of(attribute["value"]) for attribute in span.get("attributes", [])}


def times_of(span):
    return int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])


class TracingCase(Case):
    """Tests with a daemon whose collector is there or not."""

    @classmethod
    def open(cls):
        cls.port = free_port()
        cls.system = System(paths, spaces, {"tracing": {"endpoint": f"http://127.0.0.1:{cls.port}/v1/traces"},
                                             "query": {"at_least_timeout_ms": WAIT_MS}}, name="tracing")
        cls.addClassCleanup(cls.system.close)
        cls.queries, cls.answers = cls.system.topic("queries"), cls.system.topic("answers")

    @classmethod
    def fill(cls):
        cls.system.open()
        for i in range(N_ITEMS):
            cls.system.put(b"item-%02d" % i)
        cls.system.sync()

    @classmethod
    def open_collector(cls):
        cls.collector = Collector(cls.port)
        cls.addClassCleanup(cls.collector.close)

    def ask(self, flags="01", error=None, **fields):
        """Send a query that has a traceparent, wait for its answer, and return ids and answer."""
        trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
        query = self.system.queries.draw("dot", k=5, **fields)
        if error == "UNKNOWN_METHOD":
            query.method = "no_such_method"
        headers = [("traceparent", f"00-{trace_id}-{span_id}-{flags}".encode())] if flags else []
        value, own = self.system.queries.encode(query)
        self.system.client.send(query.id, value, [*own, *headers])
        answer = self.system.client.wait([query.id])[query.id]
        replied = self.system.client.replies[query.id][0].headers
        self.assertEqual([header for header in replied if header[0] != "content-type"], headers)
        self.assertEqual(answer.HasField("error") and pb.Error.Code.Name(answer.error.code), error or False)
        return trace_id, span_id, answer

    def spans(self, trace_id):
        """Wait for the spans of a trace, which come together. Return those of each name."""
        found = eventually(lambda: self.collector.spans(trace_id), "spans")
        named = {span["name"]: (span, attributes) for span, attributes in found}
        self.assertEqual(len(named), len(found), "two spans of one name")
        return named

    def metric(self, name):
        _, text = self.system.daemon.get("/metrics")
        return sum(int(n) for n in re.findall(rf"^{name}(?:{{.*}})? (\d+)$", text, re.M))


class Spans(TracingCase):
    """The collector is there."""

    @classmethod
    def setUpClass(cls):
        cls.open()
        cls.open_collector()
        cls.fill()

    @classmethod
    def tearDownClass(cls):
        cls.system.daemon.stop()

    def check_tree(self, named, parent):
        """Check that the spans are below the caller's span, one after the other within the first. Return that."""
        root = named.pop(f"process {self.queries}")[0]
        self.assertEqual(root["parentSpanId"], parent)
        before, end = times_of(root)
        self.assertLess(abs(end / 1e9 - time.time()), 300)
        for span, _ in named.values():
            self.assertEqual(span["parentSpanId"], root["spanId"])
            self.assertLessEqual(before, times_of(span)[0])
            self.assertLessEqual(*times_of(span))
            before = times_of(span)[1]
        self.assertLessEqual(before, end)
        return root

    def test_a_sampled_query_has_spans_below_that_of_its_caller(self):
        trace_id, parent, answer = self.ask()
        named = self.spans(trace_id)
        self.assertEqual(list(named), [f"process {self.queries}", "queue", "search", f"send {self.answers}"])
        attributes = named[f"process {self.queries}"][1]
        self.assertGreaterEqual(int(attributes.pop("messaging.destination.partition.id")), 0)
        self.assertGreaterEqual(attributes.pop("messaging.kafka.offset"), 0)
        self.assertEqual(attributes, {
            "messaging.system": "kafka", "messaging.operation.type": "process", "messaging.operation.name": "process",
            "messaging.destination.name": self.queries, "messaging.consumer.group.name": self.system.topic("group"),
            "sluice.space": "dot", "sluice.k": 5, "sluice.method": answer.method, "sluice.generation": 1,
            "sluice.epoch": answer.epoch, "sluice.hits": len(answer.hits), "sluice.exact": answer.receipt.exact})
        search = times_of(named["search"][0])
        self.assertEqual(search[1] - search[0], answer.times.searched_us * 1000)
        root = self.check_tree(named, parent)
        self.assertEqual(root["kind"], CONSUMER)
        self.assertNotIn("status", root)
        self.assertEqual([span["kind"] for span, _ in named.values()], [INTERNAL, INTERNAL, PRODUCER])
        resource = attributes_of(self.collector.requests[0]["resourceSpans"][0]["resource"])
        self.assertEqual(resource["service.name"], "sluice")
        self.assertTrue(resource["service.instance.id"].endswith(f"/127.0.0.1:{self.system.daemon.port}"))

    def test_a_query_that_waits_has_a_span_of_its_wait(self):
        trace_id, parent, answer = self.ask(error="NOT_SEEN", at_least=[pb.Position(partition=0, next=10**9)])
        named = self.spans(trace_id)
        root = self.check_tree(named, parent)
        self.assertEqual(list(named), ["wait", f"send {self.answers}"])
        begin, end = times_of(named["wait"][0])
        self.assertGreaterEqual(end - begin, WAIT_MS * 1000000)
        self.assertEqual(root["status"], {"code": ERROR, "message": answer.error.message})

    def test_errors_and_dead_letters_are_spans_with_errors(self):
        trace_id, parent, answer = self.ask(error="UNKNOWN_METHOD")
        named = self.spans(trace_id)
        root = self.check_tree(named, parent)
        self.assertEqual(root["status"], {"code": ERROR, "message": answer.error.message})
        self.assertEqual(attributes_of(root)["error.type"], "UNKNOWN_METHOD")
        self.assertEqual(list(named), [f"send {self.answers}"])
        headers = [("traceparent", b"00-%s-%s-01" % (b"a" * 32, b"b" * 16))]
        self.system.client.send("unreadable", b"{no query", headers)
        ((_, attributes),) = self.spans("a" * 32).values()
        self.assertEqual(attributes["error.type"], "DEAD_LETTER")

    def test_other_queries_have_none(self):
        before = self.metric("sluice_spans_total")
        others = [self.ask(flags="00")[0], self.ask(flags=None)[0]]
        sampled, _, _ = self.ask()
        self.assertEqual(len(self.spans(sampled)), 4)
        self.assertEqual([self.collector.spans(trace_id) for trace_id in others], [[], []])
        eventually(lambda: self.metric("sluice_spans_total") == before + 4, "the spans to be counted")


class Trouble(TracingCase):
    """The collector is away, refuses spans, or the daemon stops."""

    @classmethod
    def setUpClass(cls):
        cls.open()

    def test_answers_do_not_need_the_collector_and_a_stop_sends_what_is_left(self):
        self.fill()
        daemon = self.system.daemon
        self.ask()
        eventually(lambda: self.metric("sluice_spans_dropped_total") == 4, "dropped spans")
        self.open_collector()
        self.collector.code = 400
        self.ask()
        eventually(lambda: self.metric("sluice_spans_dropped_total") == 8, "refused spans")
        (event,) = re.findall("event=spans_dropped .*", daemon.log())
        self.assertIn("check tracing.endpoint", event)
        self.collector.code = 200
        self.assertEqual(len(self.spans(self.ask()[0])), 4)
        eventually(lambda: "event=spans_taken" in daemon.log(), "the event")
        self.assertIn(f"127.0.0.1:{self.port}/v1/traces", daemon.ctl("status"))
        trace_id, _, _ = self.ask()
        daemon.stop()
        self.assertEqual(len(self.collector.spans(trace_id)), 4)

    def test_a_wrong_endpoint_is_refused_with_its_line(self):
        daemon = self.system.daemon
        text = daemon.config_path.read_text()
        daemon.config_path.write_text(text.replace("http://127", "ftp://127"))
        done = subprocess.run([build_dir() / "sluiced", "--check-config", "--config", daemon.config_path],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 78)
        self.assertRegex(done.stderr, r"sluice.yaml:\d+: tracing.endpoint expects a URL such as https://")
        daemon.config_path.write_text(text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
