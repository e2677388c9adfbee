#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of ops/alerts.yaml and ops/dashboard.json: promtool runs each rule over series that make it fire and series
that do not, every metric exists, and every alert has its section in the run book."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import data
import promtool

RULES = data.ROOT / "ops" / "alerts.yaml"
EXPIRY = "sluice_certificate_expiry_timestamp_seconds"
DASHBOARD = data.ROOT / "ops" / "dashboard.json"

# {alert: (labels that it fires with, series that fire, series that do not)}. A series has a value each minute for an
# hour; at the end the alert must fire, or not. `0x60` is 0 all the time, `0+3x60` rises by 3 a minute.
CASES = {
    "SluiceDown": ({"instance": "a", "job": "sluice"},
                   {"up{instance='a', job='sluice'}": "1x50 0x10"},
                   {"up{instance='a', job='sluice'}": "0x50 1x10", "up{instance='b', job='kafka'}": "0x60"}),
    "SluiceNotReady": ({"instance": "a"}, {"sluice_ready{instance='a'}": "1x50 0x10"},
                       {"sluice_ready{instance='a'}": "1x57 0x3"}),
    "SluiceCatalogueBehind": ({"instance": "a"},
                              {"sluice_catalogue_behind_seconds{instance='a', partition='0'}": "0x60",
                               "sluice_catalogue_behind_seconds{instance='a', partition='1'}": "0x50 0+60x10"},
                              {"sluice_catalogue_behind_seconds{instance='a', partition='0'}": "59x60"}),
    "SluiceNotFresh": ({"instance": "a"},
                       {"sluice_canary_visible_seconds_bucket{instance='a', le='1.048576'}": "0+57x60",
                        "sluice_canary_visible_seconds_bucket{instance='a', le='2.097152'}": "0+60x60",
                        "sluice_canary_visible_seconds_bucket{instance='a', le='+Inf'}": "0+60x60",
                        "sluice_canary_age_seconds{instance='a'}": "1x60"},
                       {"sluice_canary_visible_seconds_bucket{instance='a', le='0.016384'}": "0+60x60",
                        "sluice_canary_visible_seconds_bucket{instance='a', le='+Inf'}": "0+60x60",
                        "sluice_canary_age_seconds{instance='a'}": "119x60"}),
    "SluiceCatalogueWaits": ({"instance": "a", "phase": "disk_full"},
                             {"sluice_catalogue_phase{instance='a', phase='disk_full'}": "1x60"},
                             {"sluice_catalogue_phase{instance='a', phase='live'}": "1x60"}),
    "SluiceDiskFilling": ({"instance": "a"},
                          {"sluice_disk_free_bytes{instance='a'}": "9000000000-100000000x60",
                           "sluice_disk_free_bytes{instance='b'}": "9000000000x60"},
                          {"sluice_disk_free_bytes{instance='a'}": "9000000000-1000000x60",
                           "sluice_disk_free_bytes{instance='b'}": "2000000000x60"}),
    "SluiceCertificateExpires": ({"instance": "a", "section": "kafka", "use": "certificate"},
                                 {f"{EXPIRY}{{instance='a', section='kafka', use='certificate'}}": "604800x60",
                                  f"{EXPIRY}{{instance='a', section='kafka', use='authority'}}": "90000000x60"},
                                 {f"{EXPIRY}{{instance='a', section='kafka', use='certificate'}}": "700000x60"}),
    "SluiceRebuildWaits": ({"instance": "a"}, {"sluice_rebuild_waits{instance='a'}": "1x60"},
                           {"sluice_rebuild_waits{instance='a'}": "1x50 0x10"}),
    "SluiceDiscontinuity": ({"instance": "a"}, {"sluice_discontinuities_total{instance='a'}": "0x30 1x30"},
                            {"sluice_discontinuities_total{instance='a'}": "2x60"}),
    "SluiceSeenWaits": ({"instance": "a"}, {"sluice_seen_waits{instance='a'}": "0x50 1x10"},
                        {"sluice_seen_waits{instance='a'}": "0x57 1x3", "sluice_seen_waits{instance='b'}": "1x40 0x20"}),
    "SluiceModelFailed": ({"instance": "a", "space": "books", "generation": "2"},
                          {"sluice_model_failed{instance='a', space='books', generation='2'}": "0x50 1x10",
                           "sluice_model_failed{instance='a', space='books', generation='1'}": "0x60"},
                          {"sluice_model_failed{instance='a', space='books', generation='2'}": "1x50 0x10"}),
    "SluiceModelsWait": ({"instance": "a"}, {"sluice_models_waits{instance='a'}": "0x50 1x10"},
                         {"sluice_models_waits{instance='a'}": "0x57 1x3"}),
    "SluiceDeadLetters": ({"instance": "a", "reason": "unusable"},
                          {"sluice_dead_letters_total{instance='a', reason='unusable'}": "0+1x60",
                           "sluice_dead_letters_total{instance='a', reason='unreadable'}": "7x60"},
                          {"sluice_dead_letters_total{instance='a', reason='unusable'}": "0x30 9x30"}),
    "SluiceDeadLettersStuck": ({"instance": "a"},
                               {"sluice_dead_letters_waiting{instance='a'}": "0x50 4x10",
                                "sluice_dead_letters_lost_total{instance='a'}": "0x60"},
                               {"sluice_dead_letters_waiting{instance='a'}": "0x57 4x1 0x2",
                                "sluice_dead_letters_lost_total{instance='a'}": "3x60"}),
    "SluiceUndeliverable": ({"instance": "a"}, {"sluice_undeliverable_total{instance='a'}": "0+1x60"},
                            {"sluice_undeliverable_total{instance='a'}": "5x60"}),
    "SluiceQueriesRefused": ({"instance": "a"},
                             {"sluice_refused_total{instance='a'}": "0+2x60",
                              "sluice_queries_total{instance='a'}": "0+100x60"},
                             {"sluice_refused_total{instance='a'}": "0+2x60",
                              "sluice_queries_total{instance='a'}": "0+1000x60"}),
    "SluiceAnswersSlow": ({},
                          {"sluice_answer_seconds_bucket{instance='a', le='0.262144'}": "0+97x60",
                           "sluice_answer_seconds_bucket{instance='a', le='1.048576'}": "0+100x60",
                           "sluice_answer_seconds_bucket{instance='a', le='+Inf'}": "0+100x60"},
                          {"sluice_answer_seconds_bucket{instance='a', le='0.262144'}": "0+100x60",
                           "sluice_answer_seconds_bucket{instance='a', le='1.048576'}": "0+100x60",
                           "sluice_answer_seconds_bucket{instance='a', le='+Inf'}": "0+100x60"}),
    "SluiceGpuLost": ({"instance": "a"}, {"sluice_backend_failures{instance='a'}": "0x50 1x10"},
                      {"sluice_backend_failures{instance='a'}": "0x60"}),
}


def rules():
    """Return {alert: {"expr": ..., "severity": ..., "summary": ..., "runbook": ...}}."""
    found = {}
    for block in RULES.read_text(encoding="utf-8").split("      - alert: ")[1:]:
        name, text = block.split("\n", 1)
        found[name] = {field: re.search(rf"\b{field}: (.*)$", text, re.MULTILINE)[1]
                       for field in ("expr", "summary", "runbook")}
        found[name]["severity"] = re.search(r"severity: (\w+)", text)[1]
    return found


def metrics_of(expression):
    return set(re.findall(r"\b(?:sluice|process)_\w+", expression))


def listed_metrics():
    """Return the metrics of docs/metrics.md, which another test compares with the daemon's."""
    rows = re.findall(r"^\| `((?:sluice|process)_\w+)` \| (\w+) \|", (data.ROOT / "docs" / "metrics.md").read_text(
        encoding="utf-8"), re.MULTILINE)
    names = {name for name, _ in rows}
    return names | {f"{name}_{part}" for name, kind in rows if kind == "histogram" for part in ("bucket", "sum", "count")}


class Alerts(unittest.TestCase):
    def test_promtool_accepts_the_rules(self):
        status, said = promtool.run("check", "rules", RULES)
        self.assertEqual(status, 0, said)
        self.assertIn(f"{len(CASES)} rules found", said)

    def run_case(self, folder, alert, series, expected):
        """Let promtool compute the rules over the series, and compare what fires at the end of the hour."""
        test = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [{
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"eval_time": "60m", "alertname": alert, "exp_alerts": expected}]}]}
        path = Path(folder) / "test.yaml"
        path.write_text(json.dumps(test), encoding="utf-8")  # JSON is YAML
        return promtool.run("test", "rules", path)

    def test_each_alert_fires_when_it_should_and_only_then(self):
        known = rules()
        self.assertEqual(set(CASES), set(known))
        with tempfile.TemporaryDirectory(prefix="sluice-alerts-") as folder:
            for alert, (labels, fires, does_not) in CASES.items():
                rule = known[alert]
                fired = [{"exp_labels": {**labels, "severity": rule["severity"]},
                          "exp_annotations": {"summary": rule["summary"], "runbook": rule["runbook"]}}]
                with self.subTest(alert):
                    self.assertEqual(self.run_case(folder, alert, fires, fired)[0], 0,
                                     self.run_case(folder, alert, fires, fired)[1])
                    status, said = self.run_case(folder, alert, does_not, [])
                    self.assertEqual(status, 0, said)
                    self.assertNotEqual(self.run_case(folder, alert, fires, [])[0], 0)

    def test_canaries_that_do_not_come_through_are_an_alert(self):
        rule = rules()["SluiceNotFresh"]
        fired = [{"exp_labels": {"instance": "a", "severity": rule["severity"]},
                  "exp_annotations": {"summary": rule["summary"], "runbook": rule["runbook"]}}]
        with tempfile.TemporaryDirectory(prefix="sluice-alerts-") as folder:
            series = {"sluice_canary_age_seconds{instance='a'}": "1x50 0+60x10"}
            status, said = self.run_case(folder, "SluiceNotFresh", series, fired)
        self.assertEqual(status, 0, said)

    def test_metrics_exist(self):
        for alert, rule in rules().items():
            self.assertLessEqual(metrics_of(rule["expr"]), listed_metrics(), alert)

    def test_each_alert_has_its_section_in_the_run_book(self):
        book = (data.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
        sections = re.findall(r"^### (Sluice\w+)$", book, re.MULTILINE)
        self.assertEqual(sections, list(rules()))
        for alert, rule in rules().items():
            self.assertEqual(rule["runbook"], f"docs/operations.md#{alert.lower()}")


def labels_of(metric):
    """Return the labels of a metric by docs/metrics.md, and those that Prometheus adds."""
    name = re.sub(r"_(bucket|sum|count)$", "", metric)
    table = (data.ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{name}` \| \w+ \| (.*?) \|", table, re.MULTILINE)
    return {"instance", "job", *re.findall(r"`(\w+)`", row.group(1))}


def unit_of(expression):
    """Return the units of Grafana that fit the values of a query."""
    names = metrics_of(expression)
    if re.search(r"\) / (sum|rate)", expression):  # a share, or a correlation, from -1 to 1
        return {"none"} if expression.endswith(" - 1") else {"percentunit"}
    if "process_cpu_seconds_total" in names:
        return {"none"}  # seconds a second: processors
    if "rate(" in expression and "histogram_quantile(" not in expression:
        return {"reqps", "cps"}
    if all("_seconds" in name for name in names):
        return {"s"}
    return {"bytes"} if all(name.endswith("_bytes") for name in names) else {"short", "none"}


class Dashboard(unittest.TestCase):
    def setUp(self):
        self.dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        self.panels = [p for p in self.dashboard["panels"] if p["type"] != "row"]
        self.targets = [(p, t) for p in self.panels for t in p["targets"]]

    def test_panels_are_of_known_types_with_ids_of_their_own(self):
        ids = [panel["id"] for panel in self.dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual({panel["type"] for panel in self.panels}, {"stat", "timeseries"})
        for panel in self.panels:
            names = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(names), len(set(names)), panel["title"])

    def test_everything_asks_the_chosen_data_source(self):
        source, *others = self.dashboard["templating"]["list"]
        self.assertEqual((source["name"], source["type"], source["query"]), ("datasource", "datasource", "prometheus"))
        for part in (*others, *self.panels):
            self.assertEqual(part["datasource"], {"type": "prometheus", "uid": "${datasource}"})

    def test_variables_are_defined(self):
        defined = {variable["name"] for variable in self.dashboard["templating"]["list"]}
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(self.dashboard)))
        self.assertEqual(used, defined | {"__rate_interval"})  # that is Grafana's own

    def test_every_query_is_of_the_chosen_daemons(self):
        for panel, target in self.targets:
            selectors = re.findall(r"\b(?:sluice|process)_\w+(\{.*?\})?", target["expr"])
            self.assertEqual(set(selectors), {'{instance=~"$instance"}'}, panel["title"])

    def test_counters_are_rated_and_gauges_are_not(self):
        for panel, target in self.targets:
            for metric in metrics_of(target["expr"]):
                is_counter = re.search(r"_(total|bucket)$", metric) is not None
                is_rated = re.search(rf"(rate|increase)\({metric}\b", target["expr"]) is not None
                self.assertEqual(is_counter, is_rated, panel["title"])

    def test_legends_have_labels_that_the_query_keeps(self):
        for panel, target in self.targets:
            kept = re.search(r"by \(([\w, ]+)\)", target["expr"])
            labels = set.union(*map(labels_of, metrics_of(target["expr"])))
            if kept:
                self.assertLessEqual(set(kept.group(1).split(", ")), labels | {"le"}, panel["title"])
            elif "sum(" in target["expr"] or "max(" in target["expr"]:
                labels = set()
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            self.assertLessEqual(shown, set(kept.group(1).split(", ")) if kept else labels, panel["title"])

    def test_units_fit_the_queries(self):
        for panel, target in self.targets:
            self.assertIn(panel["fieldConfig"]["defaults"]["unit"], unit_of(target["expr"]),
                          f'{panel["title"]}: {target["expr"]}')

    def test_metrics_exist(self):
        used = set()
        for panel in self.panels:
            for target in panel["targets"]:
                self.assertTrue(metrics_of(target["expr"]), panel["title"])
                self.assertLessEqual(metrics_of(target["expr"]), listed_metrics(), panel["title"])
                used |= metrics_of(target["expr"])
        self.assertGreater(len(used), 20)

    def test_prometheus_understands_the_queries(self):
        rows = [{"record": f"panel:{i}", "expr": target["expr"].replace("$__rate_interval", "5m").replace(
            "$instance", ".*")} for i, panel in enumerate(self.panels) for target in panel["targets"]]
        with tempfile.TemporaryDirectory(prefix="sluice-dashboard-") as folder:
            path = Path(folder) / "rules.yaml"
            path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": [
                {**row, "labels": {"target": str(i)}} for i, row in enumerate(rows)]}]}), encoding="utf-8")
            status, said = promtool.run("check", "rules", path)
        self.assertEqual(status, 0, said)

    def test_panels_have_names_of_their_own_and_do_not_overlap(self):
        titles, cells = [p["title"] for p in self.panels], set()
        self.assertEqual(len(titles), len(set(titles)))
        for panel in self.panels:
            at = panel["gridPos"]
            own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertLessEqual(at["x"] + at["w"], 24)
            self.assertFalse(own & cells, panel["title"])
            cells |= own


if __name__ == "__main__":
    data.main()
