#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the status page: as text, and in a browser that renews it."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import data
import harness
import safetensors_io
from harness import Daemon, eventually


KEY = "<b>a/b?c%41</b>"


class PageCase(unittest.TestCase):
    http = {}
    host = "127.0.0.1"  # of http.listen

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice-page-")
        cls.addClassCleanup(cls.folder.cleanup)
        model = Path(cls.folder.name) / "dot.safetensors"
        safetensors_io.write(model, {}, {"sluice.similarity": "dot", "sluice.dim": "2"})
        cls.daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                             "http": cls.http, "attributes": {"price": "number"}, "spaces": {"films": {"model": str(model)}}},
                            cls.folder.name)
        cls.addClassCleanup(cls.daemon.kill)
        written = cls.daemon.config_path.read_text()
        cls.daemon.config_path.write_text(written.replace("127.0.0.1", cls.host))
        cls.daemon.start()
        cls.daemon.wait_ready()
        for i, key in enumerate(("film-0", "film-1", KEY)):
            cls.daemon.ctl("put", key, json.dumps({"parts": {"films": {"vector": [i, 1]}}}))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def put_what_is_refused(self):
        self.daemon.ctl("put", "<script>alert(1)</script>", json.dumps({"parts": {"films": {"vector": [1]}}}), code=1)

    def page(self):
        status, body = self.daemon.get("/")
        self.assertEqual(status, 200)
        return ElementTree.fromstring(body)

    def table(self, title):
        """Return the rows of the table below a heading, as lists of texts; the first row has the headings."""
        main = list(self.page().find("body/main"))
        titles = [element.text if element.tag == "h2" else None for element in main]
        self.assertIn(title, titles)
        return [["".join(cell.itertext()) for cell in row] for row in main[titles.index(title) + 1].iter("tr")]


class Page(PageCase):
    def test_it_shows_what_status_says(self):
        self.assertEqual(self.page().findtext("head/title"), "Sluice: ready")
        facts = {fact.findtext("dt"): fact.findtext("dd") for fact in self.page().iter("div") if fact.find("dt") is not None}
        self.assertEqual(facts["items"], "3")
        self.assertEqual(facts["backend"], self.daemon.status()["backend"])
        self.assertEqual(self.table("Spaces")[1][:5], ["films", "1", "dot", "3", "3"])
        self.assertEqual(self.table("Attributes")[1], ["price", "number", "0"])
        self.assertEqual(len(self.table("Partitions of the catalogue")), 1 + len(self.daemon.status()["catalogue_log"]))

    def test_charts_follow(self):
        self.daemon.ctl("query", "--json", json.dumps({"space": "films", "k": 2, "vector": [1, 0]}))

        def has_drawn():
            paths = [path.get("d") for path in self.page().iter("{http://www.w3.org/2000/svg}path")
                     if path.get("class").startswith("line")]
            return len(paths) == 9 and all("M" in path for path in paths[:3])
        eventually(has_drawn, "the query in the charts", 30)

    def test_hostile_text_is_only_text(self):
        self.put_what_is_refused()
        rows = self.table("Newest warnings and errors")
        self.assertEqual(rows[1][1], "warn")
        self.assertIn('key="<script>alert(1)</script>"', rows[1][2])
        scripts = [script.attrib for script in self.page().iter("script")]
        self.assertEqual(scripts, [{"src": "page.js"}])

    def test_nothing_comes_from_outside(self):
        for path in ("/", "/page.css", "/page.js"):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.daemon.port}{path}") as response:
                body = response.read().decode().replace("http://www.w3.org/2000/svg", "")
                self.assertIn("default-src 'none'", response.headers["Content-Security-Policy"])
            self.assertIsNone(re.search(r"https?://|//[a-z]", body), path)

    def browse(self, path):
        """Return what a browser shows some seconds after it opened a page."""
        browser = shutil.which("chromium")
        if not browser:
            self.assertFalse(data.CI, "chromium is required in CI")
            self.skipTest("chromium is not installed")
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        with tempfile.TemporaryDirectory(prefix="sluice-browser-") as profile:
            return subprocess.run([browser, "--headless", "--disable-gpu", *sandbox, f"--user-data-dir={profile}",
                                   "--virtual-time-budget=9000", "--dump-dom",
                                   f"http://127.0.0.1:{self.daemon.port}{path}"],
                                  capture_output=True, text=True, timeout=120 * harness.SLOWNESS, check=True).stdout

    def test_a_browser_renews_it(self):
        shown = self.browse("/")
        self.assertIn("<title>Sluice: ready</title>", shown)
        self.assertRegex(shown, r'<main data-renewed="[1-9]')
        self.assertRegex(shown, r'<form id="look-up">.*<pre></pre>')  # no longer hidden

    def test_an_item_is_shown_by_its_key(self):
        shown = self.browse("/?item=" + urllib.parse.quote(KEY, safe=""))
        self.assertRegex(shown, r'<pre>{"key":\s*"&lt;b&gt;a/b\?c%41&lt;/b&gt;",.*"vector":\s*\[2(\.0)?,\s*1')
        self.assertRegex(shown, r'<main data-renewed="[1-9]')
        self.assertRegex(self.browse("/?item=nobody"), "<pre>[^<]*no item")


class WithoutData(PageCase):
    http = {"data": "off"}

    def test_lines_of_the_log_are_left_out(self):
        self.put_what_is_refused()
        self.assertIn("script", self.daemon.log())
        self.assertIsNone(self.daemon.status()["complaints"])
        self.assertEqual(len(self.table("Spaces")), 2)
        self.assertNotIn("alert", self.daemon.get("/")[1])
        self.assertIsNone(self.page().find("body/form"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
