# SPDX-License-Identifier: Apache-2.0
"""Tests of waiting for positions, at an address where other things than the daemon's page come."""

import socketserver
import threading
import unittest
from unittest import mock

import installed  # noqa: F401

from sluice_client import NoAnswer, SluiceError, wait_visible

PAGE = b'{"watermark": [{"partition": 0, "next": 7}]}'


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            pass
        self.wfile.write(self.server.says.pop(0) if self.server.says else b"")


def reply(body, n=None):
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body) if n is None else n, body)


class WaitVisible(unittest.TestCase):
    def serve(self, *says):
        """Give each connection one of these replies, and those after them none."""
        server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        server.says = list(says)
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def test_it_goes_on_after_replies_that_are_no_page(self):
        no_pages = [b"", b"SSH-2.0-OpenSSH\r\n\r\n", reply(PAGE, len(PAGE) + 1), reply(b"<html>"), reply(b"\xff\xfe{"),
                    reply(PAGE).replace(b"200 OK", b"503 Stopping")]
        wait_visible(self.serve(*no_pages, reply(PAGE)), {0: 7}, 60)

    def test_no_page_in_time_is_no_answer(self):
        for reply_of_all in (b"", b"SSH-2.0-OpenSSH\r\n\r\n", reply(b"<html>")):
            with self.assertRaises(NoAnswer):
                wait_visible(self.serve(*[reply_of_all] * 1000), {0: 7}, 0.05)

    def test_a_proxy_of_the_environment_is_for_others(self):
        with mock.patch.dict("os.environ", {"http_proxy": "http://127.0.0.1:1", "no_proxy": ""}):
            wait_visible(self.serve(reply(PAGE)), {0: 7}, 60)

    def test_an_address_without_http_is_refused_at_once(self):
        with self.assertRaisesRegex(ValueError, "http://127.0.0.1:8321"):
            wait_visible("127.0.0.1:8321", {0: 7}, 60)

    def test_a_merge_has_read_nothing_and_never_will(self):
        with self.assertRaisesRegex(SluiceError, "no catalogue, its role is merge"):
            wait_visible(self.serve(reply(b'{"role": "merge", "ready": true}')), {0: 7}, 60)


if __name__ == "__main__":
    unittest.main()
