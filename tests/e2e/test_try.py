#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the box that tries a query on the status page: over HTTP, and in a browser with and without scripts."""

import http.client
import json
import re
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

import browser
import data
from harness import eventually
from test_page import KEY, PageCase


def url_of(key, space="films", k="2"):
    return "/try?" + urllib.parse.urlencode({"key": key, "space": space, "k": k})


class Try(PageCase):
    def ask(self, path, method="GET", headers=None):
        """Return the status and the body of an answer. After a search trials rest, and while the machine is busy they
        may not get their turn: then ask again."""
        def answer():
            code, body = self.ask_once(path, method, headers)
            return code not in (503, 504) and (code, body)
        return eventually(answer, "the end of a rest", 60)

    def ask_once(self, path, method, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port)
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response.status, body

    def counter(self, name):
        return int(re.search(rf"^{name} (\d+)$", self.daemon.get("/metrics")[1], re.MULTILINE).group(1))

    def section(self, path, status=200):
        """Return what came of a query, as an element."""
        code, body = self.ask(path)
        self.assertEqual(code, status, body)
        return ElementTree.fromstring(body).find("body/main/section[@id='tried']")

    def problem(self, path, status):
        return self.section(path, status).findtext("p[@class='problem']")

    def hits(self, section):
        return [[cell.text for cell in row] for row in section.iterfind("div/table/tbody/tr")]

    def test_hits_receipt_and_time_are_shown(self):
        tried = self.counter("sluice_tried_queries_total")
        queries = self.counter("sluice_queries_total")
        section = self.section(url_of("film-1"))
        self.assertEqual(self.hits(section), [["1", KEY, "3"], ["2", "film-0", "1"]])
        self.assertEqual(section.findtext("p[@id='receipt']"),
                         "Receipt: exact, these are the best of all. There are no more items.")
        self.assertRegex(section.findtext("p[@id='effort']"), r"^Waited .* ms, searched .* ms. Scored .* of 3 items")
        self.assertEqual(self.counter("sluice_tried_queries_total"), tried + 1)
        self.assertEqual(self.counter("sluice_queries_total"), queries)  # those of the query topic

    def test_the_answer_is_that_of_a_query_from_kafka(self):
        for k in (1, 2):
            query = {"space": "films", "like": KEY, "k": k}
            answer = json.loads(self.daemon.ctl("query", "--json", json.dumps(query), "--format", "json"))
            section = self.section(url_of(KEY, k=str(k)))
            self.assertEqual(self.hits(section), [[str(i + 1), hit["key"], f"{hit['score']:g}"]
                                                  for i, hit in enumerate(answer["hits"])])
            bound = answer["receipt"].get("bound")
            said = "There are no more items." if bound is None else f"No other item scores above {bound:g}."
            self.assertEqual(section.findtext("p[@id='receipt']"), f"Receipt: exact, these are the best of all. {said}")

    def test_attributes_of_hits_are_shown(self):
        self.addCleanup(self.daemon.ctl, "put", "film-0", json.dumps({"attributes": {"price": None}}))
        self.daemon.ctl("put", "film-0", json.dumps({"attributes": {"price": 9.99}}))
        section = self.section(url_of("film-1"))
        self.assertEqual([cell.text for cell in section.iterfind("div/table/thead/tr/th")],
                         ["rank", "key", "score", "price"])
        self.assertEqual(self.hits(section), [["1", KEY, "3", None], ["2", "film-0", "1", "9.99"]])

    def test_mistakes_are_said(self):
        self.assertEqual(self.problem(url_of("nobody"), 200), "like: no item has this key")
        self.assertIn("films2", self.problem(url_of("film-0", space="films2"), 400))
        for k in ("0", "101", "-1", "1e9", "", "99999999999999999999"):
            self.assertEqual(self.problem(url_of("film-0", k=k), 400), "k: expects a number from 1 to 100")
        self.assertEqual(self.problem("/try?key=&space=films", 400), "key: expects 1 to 256 bytes, percent-coded")
        self.assertEqual(self.problem("/try?key=%zz&space=films", 400), "key: expects 1 to 256 bytes, percent-coded")
        self.assertEqual(self.problem("/try?key=" + 257 * "a" + "&space=films", 400),
                         "key: expects 1 to 256 bytes, percent-coded")
        self.assertEqual(self.problem("/try?key=a", 400), "space: expects the name of a space")

    def test_hostile_text_is_only_text(self):
        text = '"><script>alert(1)</script>'
        page = self.ask(url_of(text, space=text))[1]
        self.assertNotIn("<script", page)
        box = ElementTree.fromstring(page).find(".//input[@name='key']")
        self.assertEqual(box.get("value"), text)

    def test_keys_of_any_bytes(self):
        self.assertEqual(self.problem("/try?key=%00%ff&space=films", 200), "like: no item has this key")
        self.assertIn("there is no space", self.problem("/try?key=a&space=%ff%0a", 400))
        self.assertEqual(self.problem("/try?key=a&space=%00", 400), "space: expects the name of a space")

    def test_a_generation_can_be_named(self):
        self.assertEqual(len(self.hits(self.section(url_of("film-1", space="films@1")))), 2)

    def test_without_a_query_there_is_the_form(self):
        code, body = self.ask("/try")
        self.assertEqual(code, 200)
        form = ElementTree.fromstring(body).find("body/main/form")
        self.assertEqual(form.get("action"), "try")
        self.assertEqual([option.text for option in form.iter("option")], ["films"])

    def test_other_methods_search_nothing(self):
        tried = self.counter("sluice_tried_queries_total")
        self.assertEqual(self.ask(url_of("film-1"), "HEAD")[0], 200)
        self.assertEqual(self.ask(url_of("film-1"), "POST")[0], 405)
        self.assertEqual(self.counter("sluice_tried_queries_total"), tried)

    def test_a_page_of_another_site_makes_no_search(self):
        tried = self.counter("sluice_tried_queries_total")
        for site in ("cross-site", "same-site"):
            code, body = self.ask(url_of("film-1"), headers={"Sec-Fetch-Site": site})
            self.assertEqual(code, 403)
            self.assertIn("press the button here", body)
        self.assertEqual(self.ask(url_of("film-1"), headers={"Host": "rebound.example"})[0], 421)
        self.assertEqual(self.counter("sluice_tried_queries_total"), tried)
        for site in ("same-origin", "none"):
            self.assertEqual(self.ask(url_of("film-1"), headers={"Sec-Fetch-Site": site})[0], 200)

    def need_browser(self):
        if not browser.program():
            self.assertFalse(data.CI, "chromium is required in CI")
            self.skipTest("chromium is not installed")

    def search_in(self, tab):
        """Fill in the form, and press its button until the hits are there."""
        def is_found():
            tab.run("document.querySelector('#tried').replaceChildren();"
                    "document.querySelector('#try input[name=key]').value = 'film-1';"
                    "document.querySelector('#try input[name=k]').value = 2;"
                    "document.querySelector('#try button').click()")
            tab.wait_for("document.readyState === 'complete' && document.querySelector('#tried').hasChildNodes()")
            return tab.run("document.querySelectorAll('#tried tbody tr').length === 2")
        eventually(is_found, "the hits", 60)

    def test_a_browser_shows_the_hits_on_the_status_page(self):
        self.need_browser()
        with browser.Browser() as tab:
            tab.open(f"http://127.0.0.1:{self.daemon.port}/")
            tab.wait_for("!document.querySelector('#try').hidden")
            self.search_in(tab)
            self.assertEqual(tab.run("document.querySelector('#tried tbody td + td').textContent"), KEY)
            self.assertEqual(tab.run("location.pathname"), "/")
            renewed = tab.run("document.querySelector('main').dataset.renewed ?? 0")
            tab.wait_for(f"document.querySelector('main').dataset.renewed > {renewed}")
            self.assertEqual(tab.run("document.querySelectorAll('#tried tbody tr').length"), 2)  # it stays

    def test_a_browser_shows_why_the_daemon_refuses(self):
        self.need_browser()
        with browser.Browser() as tab:
            tab.open(f"http://127.0.0.1:{self.daemon.port}/")
            tab.wait_for("!document.querySelector('#try').hidden")
            tab.run("const real = fetch; fetch = () => real('no-such-page');"
                    "document.querySelector('#try input[name=key]').value = 'film-1';"
                    "document.querySelector('#try button').click()")
            tab.wait_for("document.querySelector('#tried').textContent.includes('status 404')")
            refusal = self.daemon.get("/no-such-page")[1].strip()
            self.assertIn(refusal, tab.run("document.querySelector('#tried').textContent"))

    def test_a_browser_without_scripts_follows_the_link(self):
        self.need_browser()
        with browser.Browser() as tab:
            tab.send("Emulation.setScriptExecutionDisabled", value=True)
            tab.open(f"http://127.0.0.1:{self.daemon.port}/")
            link = "document.querySelector('noscript a[href=try]')"
            tab.wait_for(link + " !== null")
            self.assertTrue(tab.run("document.querySelector('#try').hidden"))
            tab.run(link + ".click()")
            tab.wait_for("location.pathname === '/try' && document.readyState === 'complete'")
            self.search_in(tab)
            self.assertEqual(tab.run("location.search"), "?key=film-1&space=films&k=2")


class Off(PageCase):
    http = {"try_queries": "off"}

    def test_there_is_no_box(self):
        self.assertEqual(self.daemon.get(url_of("film-1"))[0], 404)
        self.assertIsNone(self.page().find("body/form[@id='try']"))
        self.assertIsNotNone(self.page().find("body/form[@id='look-up']"))


class OnAllAddresses(PageCase):
    host = "0.0.0.0"

    def test_there_is_no_box_unless_it_is_set(self):
        self.assertEqual(self.daemon.get(url_of("film-1"))[0], 404)


class OnAllAddressesOn(OnAllAddresses):
    http = {"try_queries": "on"}

    def test_there_is_no_box_unless_it_is_set(self):
        self.assertEqual(self.daemon.get(url_of("film-1"))[0], 200)


class WithoutData(PageCase):
    http = {"data": "off"}

    def test_who_may_see_no_data_may_not_search(self):
        self.assertEqual(self.daemon.get(url_of("film-1"))[0], 403)
        self.assertEqual(self.daemon.get("/try")[0], 403)
        self.assertIsNone(self.page().find("body/form"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
