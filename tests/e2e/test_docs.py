#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the documents are correct: the first ten minutes, the example messages, the commands, the metrics."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

import data
import harness
import models
import safetensors_io
from harness import Daemon
from pages import Commands, blocks, read

DOCUMENTS = sorted(path.relative_to(data.ROOT)
                   for pattern in ("*.md", "docs/**/*.md", "clients/**/*.md", "examples/**/*.md",
                                   "tests/**/*.md")
                   for path in data.ROOT.glob(pattern))
MAX_COLUMNS = 120


def outside_blocks(path):
    return re.sub(r"^```.*?^```$", "", read(path), flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """Return the anchors that GitHub generates for a document's headings."""
    headings = re.findall(r"^#+ (.*)$", outside_blocks(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Texts(unittest.TestCase):
    """Tests of the documents that run no program."""

    def test_every_link_leads_somewhere(self):
        for path in DOCUMENTS:
            for target in re.findall(r"\]\(([^):]+)\)", outside_blocks(path)):
                file, _, fragment = target.partition("#")
                document = (data.ROOT / path).parent / file if file else data.ROOT / path
                self.assertTrue(document.exists(), f"{path}: {target}")
                if fragment:
                    self.assertIn(fragment, anchors(document), f"{path}: {target}")

    def test_every_file_that_a_document_names_is_there(self):
        folders = "base|clients|cmake|daemon|docs|engine|examples|ingest|kernels|ops|proto|store|systemd|tests"
        for path in DOCUMENTS:
            if path.name == "CHANGELOG.md":  # it names files of older versions
                continue
            for named in re.findall(rf"`((?:{folders})/[\w./-]*)", read(path)):
                self.assertTrue((data.ROOT / named).exists(), f"{path}: {named}")

    def test_pictures_are_drawn_well(self):
        folder = data.ROOT / "docs/images"
        subprocess.run([folder / "draw", "--check"], check=True)
        for path in folder.glob("*.svg"):
            drawn = path.read_text(encoding="utf-8")
            box = ElementTree.fromstring(drawn).get("viewBox").split()
            self.assertIn("prefers-color-scheme: dark", drawn, path)
            self.assertIsNone(re.search(r"<script|href|url\(|@import", drawn), path)
            for part in ElementTree.fromstring(drawn).iter():
                for name, end in (("x", box[2]), ("cx", box[2]), ("y", box[3]), ("cy", box[3])):
                    self.assertLessEqual(float(part.get(name, 0)), float(end), path)

    def test_every_picture_is_in_a_document(self):
        for path in (data.ROOT / "docs/images").glob("*.???"):
            self.assertTrue(any(f"images/{path.name})" in read(document) for document in DOCUMENTS), path)

    def test_the_architecture_leads_to_files(self):
        files = re.findall(r"`(?:daemon|engine|store|ingest)/[\w./]+`", read("docs/architecture.md"))
        self.assertGreater(len(files), 20)

    def test_the_page_of_models_has_the_tensors_of_mol(self):
        shown = set()
        for names in re.findall(r"^\| (`_\w.*?) \|", read("docs/models.md"), re.MULTILINE):
            first, *others = re.findall(r"`([^`]+)`", names)
            module, layer = re.match(r"(.*?)((?:\.\d+)?)\.\w+$", first).groups()
            shown.add(first)
            shown.update(module + (name if name.count(".") == 2 else layer + name) for name in others)
        for fixture in ("small_uid", "books", "edge"):
            tensors, _ = safetensors_io.read(data.golden_dir() / fixture / "weights.safetensors")
            names = {re.sub(r"_uid_embeddings_\d", "_uid_embeddings_{i}", name) for name in tensors}
            self.assertLessEqual(names, shown)

    def test_lines_are_short(self):
        for path in DOCUMENTS:
            for number, line in enumerate(read(path).splitlines(), 1):
                if not line.startswith("|"):  # a table row cannot be wrapped
                    self.assertLessEqual(len(line), MAX_COLUMNS, f"{path}:{number}")


class Methods(unittest.TestCase):
    """Tests that documents list the same methods as `sluicectl eval --help`, in the same words."""

    def setUp(self):
        done = subprocess.run([harness.build_dir() / "sluicectl", "eval", "--help"], capture_output=True, text=True)
        self.served, names = {}, ""
        for line in done.stdout.split("\nMethods", 1)[1].splitlines()[1:]:
            row = re.match(r"    (~| ) ([a-z_]+(?:\([^)]*\))?) +(.*)$", line)
            if row:
                self.served[names, row[2]] = row[3], "approximate, with a bound" if row[1] == "~" else "exact"
            else:
                names = line.strip()

    def test_the_readme_has_the_same_table(self):
        section = read("README.md").split("\n## Methods\n")[1].split("\n## ")[0]
        shown, names = {}, ""
        rows = re.findall(r"^\|(.*?)\| `([^`]+)` \| (.*) \| (.*) \|$", section, re.MULTILINE)
        for similarities, method, what, answer in rows:
            names = similarities.replace("`", "").strip() or names
            shown[names, method] = what.replace("`", ""), answer
        self.assertEqual(shown, self.served)

    def test_the_schema_names_all_methods(self):
        schema = read("proto/sluice.proto")
        for _, method in self.served:
            self.assertIn(f'"{method}"', schema)


class FirstTenMinutes(Commands):
    """A test that runs the README's first section step by step."""

    def test_what_the_readme_shows_is_what_happens(self):
        section = "## First ten minutes"
        self.assertIn("--preset release", blocks("README.md", "sh", section)[0])
        _, start, commands = blocks("README.md", "sh", section)
        (model,), (config,) = blocks("README.md", "python", section), blocks("README.md", "yaml", section)
        self.run_shell(f"/usr/bin/python3 - <<'END'\n{model}END\n")
        # Another daemon on this machine may have the default port.
        http = f"http:\n  listen: 127.0.0.1:{harness.free_port()}\n"
        (self.folder / "sluice.yaml").write_text(config + http, encoding="utf-8")
        self.start(start.strip())
        (shown,) = blocks("README.md", "", section)
        self.assertEqual(self.without_times(self.run_shell(commands)), self.without_times(shown))
        (shown,) = blocks("README.md", "json")
        self.check_answer(commands, json.loads(shown))

    def check_answer(self, commands, shown):
        query = commands.splitlines()[-1].replace("query ", "query --format json ")
        printed = json.loads(self.run_shell(query))
        self.assertEqual(set(printed), set(shown))
        for field in ("id", "space", "method", "hits", "receipt", "counts", "generation", "model"):
            self.assertEqual(printed[field], shown[field], field)


class FilmsCase(Commands):
    """A page that goes on with the films of the README."""

    README = "README.md", "## First ten minutes"

    def setUp(self):
        super().setUp()
        (model,) = blocks(self.README[0], "python", self.README[1])
        (self.folder / "model.py").write_text(model, encoding="utf-8")
        self.run_shell("/usr/bin/python3 model.py")
        self.at = f"127.0.0.1:{harness.free_port()}"

    def start_films(self, added=""):
        """Start the daemon with the README's configuration and what a page adds to it."""
        (config,) = blocks(self.README[0], "yaml", self.README[1])
        (self.folder / "sluice.yaml").write_text(f"{config}{added}http:\n  listen: {self.at}\n", encoding="utf-8")
        return self.start("sluiced --config sluice.yaml")

    def put_films(self):
        for line in blocks(self.README[0], "sh", self.README[1])[-1].splitlines()[:3]:
            self.run_shell(line)

    def status(self):
        return json.loads(self.run_shell("sluicectl --config sluice.yaml status --json"))

    def assert_prints(self, commands, shown):
        self.assertEqual(self.without_times(self.run_shell(commands)), self.without_times(shown))


class FiltersPage(FilmsCase):
    """Tests that the commands and the worked examples of docs/filters.md do what the page says."""

    PAGE = "docs/filters.md"

    def setUp(self):
        super().setUp()
        self.start_films(*blocks(self.PAGE, "yaml", "## Worked examples"))
        self.section = "## From the command line"

    def test_what_the_page_shows_is_what_happens(self):
        commands, by_kcat = blocks(self.PAGE, "sh", self.section)
        self.assert_prints(commands, *blocks(self.PAGE, "", self.section))
        by_kcat = by_kcat.replace("127.0.0.1:9092", self.status()["kafka"]["bootstrap"])
        ask, read_answers = by_kcat.rsplit("\n", 2)[:2]
        self.run_shell(ask)
        (answer,) = harness.eventually(lambda: [line for line in self.run_shell(read_answers).splitlines()
                                                if '"q2"' in line], "the answer to kcat")
        self.assertEqual([hit["key"] for hit in json.loads(answer)["hits"]], ["alien", "heat"])
        self.assertEqual(json.loads(answer)["counts"]["admitted"], 2)
        (made,) = blocks(self.PAGE, "python", self.section)
        self.run_shell(f"PYTHONPATH={data.ROOT}/tests/e2e /usr/bin/python3 - <<'END'\nimport uuid, wire, numpy as np\n"
                       f"sluice = wire.pb\n{made}assert wire.value_of(query.parameters[1]) == ['us', 'jp']\nEND\n")

    def test_the_worked_examples(self):
        text = read(self.PAGE).split("\n## Worked examples\n")[1]
        for line in re.findall(r"^\{.*\}$", text, re.MULTILINE):
            item = json.loads(line)
            value = {"parts": {"films": {"vector": [1, 1]}}, "attributes": item["attributes"]}
            self.ctl("put", item["id"], json.dumps(value))
        rows = re.findall(r"^\| `(.+?)` \| (?:`(.+?)`)? ?\| (.+?) \|$", text, re.MULTILINE)
        self.assertGreater(len(rows), 15)
        for condition, parameters, due in rows:
            with self.subTest(condition):
                query = json.dumps({"space": "films", "k": 10, "vector": [1, 0]})
                answer = json.loads(self.ctl("query", "--format", "json", "--json", query, "--filter", condition,
                                             *(["--parameters", parameters] if parameters else [])))
                self.assertEqual(", ".join(hit["key"] for hit in answer["hits"]) or "nothing", due)
                self.assertEqual(answer["counts"]["admitted"], len(answer["hits"]))

    def ctl(self, *words):
        return self.run_shell(shlex.join(["sluicectl", "--config", "sluice.yaml", *words]))


class SeenPage(FilmsCase):
    """Tests that the example of docs/seen.md does what the page says."""

    def test_what_the_page_shows_is_what_happens(self):
        page = "docs/seen.md", "## Example"
        self.start_films(*blocks(page[0], "yaml", page[1]))
        self.put_films()
        record, query = blocks(page[0], "sh", page[1])
        self.run_shell(record.replace("127.0.0.1:9092", self.status()["kafka"]["bootstrap"]))
        harness.eventually(lambda: self.status()["seen"]["items"] == 1, "the record")
        self.assert_prints(query, *blocks(page[0], "", page[1]))


class RolloutPage(FilmsCase):
    """Tests that the commands of docs/rollout.md do what the page says."""

    PAGE = "docs/rollout.md"

    def blocks(self, language, section):
        return blocks(self.PAGE, language, f"## {section}")

    def test_what_the_page_lets_a_reader_try_is_what_happens(self):
        daemon = self.start_films()
        self.put_films()
        daemon.terminate()
        daemon.wait()
        self.start_films(*self.blocks("yaml", "Setting it up"))
        for commands, shown in zip(self.blocks("sh", "Try it"), self.blocks("", "Try it"), strict=True):
            self.assert_prints(commands, shown)

    def run_steps(self, steps, generation=2):
        """Run commands of the page in this folder. The space, the daemons and the number of the generation are the
        test's."""
        for of_page, own in (("books 2", f"films {generation}"), ("books", "films"), ("/srv/models/", ""),
                             ("sluice-b:8321", self.at), ("examples/", f"{data.ROOT}/examples/")):
            steps = steps.replace(of_page, own)
        own_config = 'export SLUICECTL="sluicectl --config sluice.yaml"\nsluicectl() { command $SLUICECTL "$@"; }\n'
        return self.run_shell(own_config + steps)

    def inline(self, pattern):
        return re.search(f"`(sluicectl {pattern})`", read(self.PAGE).replace("\n", " "))[1]

    def current(self):
        (row,) = [row for row in self.status()["models"]["generations"] if row["current"]]
        return row["generation"]

    def write_inputs(self):
        vectors = np.array([[3, 1], [1, 0], [0, 2]], np.float32)
        np.save(self.folder / "FILE.npy", vectors)
        with open(self.folder / "items.jsonl", "w", encoding="utf-8") as out:
            for i, row in enumerate(vectors.tolist()):
                out.write(json.dumps({"key": str(i), "value": {"parts": {"films": {"vector": row}}}}) + "\n")
        for day in (23, 24):
            safetensors_io.write(self.folder / f"films-2026-11-{day}.safetensors", {},
                                 {"sluice.similarity": "cosine", "sluice.dim": "2", "day": str(day)})

    def test_the_commands_of_the_steps(self):
        self.write_inputs()
        (topics,) = self.blocks("yaml", "Model files through a topic")
        self.start_films(topics)
        self.run_shell("sluicectl --config sluice.yaml load items.jsonl")
        add, show, switch, retire = self.blocks("sh", "The procedure")
        self.assertIn("films@2 is ready", self.run_steps(add))
        self.run_steps(self.inline(r"load FILE\.npy [^`]*"))
        self.assertRegex(self.run_steps(show), r"\nfilms@2 +ready +3 +100\.000 %")
        (shadow,), (shown, *_) = (self.blocks(language, "See before you switch") for language in ("sh", ""))
        printed, shown = self.run_steps(shadow), shown.splitlines()
        self.assertIn(f"{shown[0]}\nfilms@1", printed)
        self.assertIn(shown[-1].partition(":")[0], printed)
        for step, generation in ((switch, 2), (self.inline("model switch books 1"), 1), (switch, 2)):
            self.run_steps(step)
            self.assertEqual(self.current(), generation)
        self.assertIn("films@1 is gone", self.run_steps(retire))
        (pipeline,) = self.blocks("sh", "In a pipeline")
        self.run_steps(pipeline)
        self.assertEqual(self.current(), 3)
        (derive,) = self.blocks("sh", "Only the networks changed")
        self.run_steps(derive, 4)
        self.assertEqual(self.current(), 4)
        (upload,) = self.blocks("sh", "Model files through a topic")
        self.assertIn("films@5 is ready", self.run_steps(upload))


class ShardingPage(FilmsCase):
    """Tests that the configuration and the commands of docs/sharding.md do what the page says."""

    PORTS = "8321", "8322", "8330"

    def setUp(self):
        super().setUp()
        self.own = dict(zip(self.PORTS, map(str, harness.kafka_node.free_ports(len(self.PORTS)))))

    def blocks(self, language, section):
        """Return the page's blocks, with ports of the test's own."""
        return [re.sub("|".join(self.PORTS), lambda port: self.own[port[0]], text)
                for text in blocks("docs/sharding.md", language, f"## {section}")]

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def run_with_daemons(self, commands):
        """Run commands of which some start a daemon in the background. Return the daemons."""
        first, *others = re.split(r"^(sluiced .*) &\n", commands, flags=re.MULTILINE)
        self.run_shell(first)
        daemons = []
        for command, following in zip(others[::2], others[1::2]):
            daemons.append(self.start(command, re.search(r"--config (\S+)", command)[1]))
            self.run_shell(following)
        return daemons

    @classmethod
    def without_times(cls, text):
        """Replace also the spaces of the columns, which are as wide as the ports."""
        return re.sub(" +", " ", super().without_times(text))

    def switch(self):
        """Add a derived generation, switch to it by the page's command, and go back."""
        self.run_shell("sed 's/\"dot\"/\"cosine\"/; s/films/films-2/' model.py | python3")
        switch, *_ = self.blocks("sh", "A new model")
        switch = re.sub(r"shard-\d:\d+", f"127.0.0.1:{self.own['8322']}", switch).replace("/etc/sluice/", "")
        add = switch.replace("switch books 2", "add films --file films-2.safetensors --derive")
        self.assertIn("films@2 is ready", self.run_shell(add))
        for generation in (2, 1):
            printed = self.run_shell(switch.replace("books 2", f"films {generation}"))
            self.assertIn(f"films@{generation} answers", printed)

    def test_what_the_page_shows_is_what_happens(self):
        shard, merge = self.blocks("yaml", "Set up")
        first, others, load, ask, ask_again = self.blocks("sh", "Try it")
        (config,), shown = self.blocks("yaml", "Try it"), self.blocks("", "Try it")
        self.write("shard-0.yaml", config + "models:\n  topic: sluice.models\n")
        self.write("merge.yaml", merge)
        self.start(first.strip(), "shard-0.yaml")
        other, _ = self.run_with_daemons(others)
        self.run_shell(load)
        layout = ask.splitlines()[0]
        harness.eventually(lambda: " 3 items in 2 of 2 shards" in self.run_shell(f"{layout} || true"), "all films")
        self.assert_prints(ask, shown[0])
        self.assertEqual(self.blocks("sh", "See what there is"), [f"{layout}\n"])
        self.switch()
        *kill, query = ask_again.split("\n", 2)
        self.assertEqual(kill, ["kill %1", "wait %1"])
        other.terminate()
        other.wait(60 * harness.SLOWNESS)
        self.assert_prints(query, shown[1])
        self.write("of-4.yaml", f"{config.partition('catalogue:')[0]}{shard}{config[config.index('spaces:'):]}")
        self.run_shell("sluiced --config of-4.yaml --check-config")


class Documents(unittest.TestCase):
    """What pages show, done with one running daemon."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice-docs-")
        cls.addClassCleanup(cls.folder.cleanup)
        model = Path(cls.folder.name) / "films.safetensors"
        dot = Path(cls.folder.name) / "dot.safetensors"
        safetensors_io.write(model, {}, {"sluice.similarity": "dot", "sluice.dim": "2"})  # the README's
        safetensors_io.write(dot, {}, {"sluice.similarity": "dot"})
        cls.daemon = Daemon({"embedded_broker": {"enabled": True}, "store": {"path": "store"},
                             "spaces": {"films": {"model": str(model)}, "books": {"model": str(dot), "dim": 2}}},
                            cls.folder.name)
        cls.addClassCleanup(cls.daemon.kill)
        cls.daemon.start()
        cls.daemon.wait_ready()

    def ctl(self, *arguments):
        done = subprocess.run([harness.build_dir() / "sluicectl", "--config", self.daemon.config_path, *arguments],
                              capture_output=True, text=True, timeout=60 * harness.SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def put_films(self):
        listed = re.findall(r"^key (\w+) +(\{.*\})$", "\n".join(blocks("docs/protocol.md", "")), re.MULTILINE)
        self.assertEqual([key for key, _ in listed], ["alien", "heat", "ran"])
        for key, value in listed:
            self.ctl("put", key, value)

    def assert_answers(self, path, query, answer):
        printed = json.loads(self.ctl("query", "--format", "json", "--json", query))
        shown = json.loads(answer)
        for field in ("id", "space", "method", "hits", "receipt", "counts"):
            self.assertEqual(printed.get(field), shown.get(field), f"{path}: {field}")
        self.assertEqual(set(printed), set(shown), path)

    def test_the_worked_messages(self):
        self.put_films()
        query, answer = blocks("docs/protocol.md", "json")[:2]
        self.assert_answers("docs/protocol.md", query, answer)

    def run_python(self, text):
        program = Path(self.folder.name) / "example.py"
        program.write_text(text.replace("127.0.0.1:9092", self.daemon.status()["kafka"]["bootstrap"]), encoding="utf-8")
        done = subprocess.run(["/usr/bin/python3", program], capture_output=True, text=True,
                              timeout=90 * harness.SLOWNESS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_the_python_examples(self):
        asks, loads = blocks("docs/protocol.md", "python")
        (command,) = re.findall(r"`(protoc [^`]+)`", read("docs/protocol.md"))
        subprocess.run(command.replace("--python_out=.", f"--python_out={self.folder.name}").split(), cwd=data.ROOT,
                       check=True)
        for _ in range(2):  # the second run must not find the first one's answer
            self.assertEqual(self.run_python(asks), "[(b'alien', 3.0), (b'heat', 1.0)]")
        asks = asks.replace('exclude=[b"ran"]', 'exclude=[b"ran", b"heat"]')
        self.assertEqual(self.run_python(asks), "[(b'alien', 3.0)]")
        self.run_python(loads)
        harness.eventually(lambda: {"books": 2}.items() <= {space["name"]: space["items"] for space in
                                                            self.daemon.status()["spaces"]}.items(), "two books")

    def test_the_commands_of_the_readme(self):
        commands = [line for block in blocks("README.md", "sh") for line in block.replace("\\\n", "").splitlines()
                    if line.startswith("build/release/")]
        self.assertEqual(len(commands), 4)
        golden = data.golden_dir() / "small_uid"  # replaces data that takes minutes to generate
        asked = Path(self.folder.name) / "eval.safetensors"
        inputs, _ = safetensors_io.read(golden / "inputs.safetensors")
        safetensors_io.write(asked, {**inputs, "target_ids": inputs["item_ids"][:len(inputs["user_ids"])]}, {})
        for line in commands:
            words = shlex.split(line.replace("build/release/", f"{harness.build_dir()}/").replace(
                "sluice.yaml", str(self.daemon.config_path)))
            words = [word.replace("packages/packages-mol", f"{golden}/weights").replace(
                "packages/packages-eval.safetensors", str(asked)) for word in words]
            if "--check-config" in words or "sluicectl" in words[0]:
                done = subprocess.run(words, capture_output=True, text=True, timeout=60 * harness.SLOWNESS,
                                      cwd=data.ROOT)
                self.assertEqual(done.returncode, 0, line + done.stderr)
            else:  # a daemon is already running; a second one must refuse to start
                done = subprocess.run(words, capture_output=True, text=True, timeout=60 * harness.SLOWNESS)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("another process", done.stderr)

    def test_the_page_of_metrics_has_all_of_them(self):
        status, body = self.daemon.get("/metrics")
        self.assertEqual(status, 200)
        served = dict(re.findall(r"^# TYPE (\w+) (\w+)$", body, re.MULTILINE))
        rows = re.findall(r"^\| `((?:sluice|process)_\w+)` \| (\w+) \| (.*?) \|", read("docs/metrics.md"), re.MULTILINE)
        self.assertEqual({name: kind for name, kind, _ in rows}, served)
        for name, _, labels in rows:
            rows_of = re.findall(rf"^{name}(?:_bucket)?{{(.*)}} ", body, re.MULTILINE)
            used = {label for row in rows_of for label in re.findall(r'(\w+)="', row)}
            self.assertLessEqual(used, set(re.findall(r"`(\w+)`", labels)), name)

    def test_alerts_name_metrics(self):
        _, body = self.daemon.get("/metrics")
        for name in re.findall(r"\bsluice_\w+", read("docs/metrics.md") + read("docs/operations.md")):
            self.assertIn(name.removesuffix("_bucket"), body)


# Replaces the safetensors package, which the blocks of docs/models.md import and Debian 12 does not have.
SAFETENSORS_TORCH = '''
import torch, safetensors_io

def save_file(tensors, filename, metadata=None):
    assert all(isinstance(t, torch.Tensor) and t.is_contiguous() for t in tensors.values()), tensors.keys()
    assert len({t.data_ptr() for t in tensors.values()}) == len(tensors)  # they share no memory
    assert all(isinstance(s, str) for pair in (metadata or {}).items() for s in pair), metadata
    safetensors_io.write(filename, {name: t.detach().numpy() for name, t in tensors.items()}, metadata or {})
'''

# The similarities that this version serves. Extend the list when one is added.
SERVED = ("dot", "cosine", "weighted_dot", "bilinear", "mol", "recjpq")


class ModelsPage(unittest.TestCase):
    """Tests that each block of docs/models.md runs, and that its models give the scores of double precision."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.rng = data.generator("models.md")
        package = cls.folder / "safetensors"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "torch.py").write_text(SAFETENSORS_TORCH, encoding="utf-8")
        cls.save_inputs()
        cls.run_python("\n".join(blocks("docs/models.md", "python")))

    @classmethod
    def run_python(cls, text):
        path = os.pathsep.join((str(cls.folder), str(data.ROOT / "tests" / "e2e")))
        done = subprocess.run(["/usr/bin/python3", "-c", text], cwd=cls.folder, capture_output=True, text=True,
                              timeout=120 * harness.SLOWNESS, env={**os.environ, "PYTHONPATH": path})
        if done.returncode:
            raise AssertionError(f"{text}\n{done.stderr}")

    @classmethod
    def save_inputs(cls):
        """Write checkpoints as training leaves them. torch runs in another process."""
        rng = cls.rng
        models.random_mol(rng, cls.folder / "drawn", pq=8, px=4, d=64, dq=50, dx=50, uid_hash=(6040,), query_hidden=512,
                          gating=(128, 128, 128))
        tensors, _ = safetensors_io.read(cls.folder / "drawn")
        cls.table = rng.standard_normal((301, 50)).astype(np.float32)
        cls.queries = rng.standard_normal((9, 50)).astype(np.float32)
        cls.users = rng.integers(0, 2 ** 40, 9)
        cls.targets = rng.integers(1, 301, 9)
        cls.w = {name: rng.standard_normal(shape).astype(np.float32)
                 for name, shape in (("v", 50), ("W", (1, 50, 50)), ("P", (7, 50)), ("Q", (7, 50)))}
        cls.centroids = rng.standard_normal((5, 256, 10)).astype(np.float32)
        cls.codes = rng.integers(0, 256, (302, 5))
        state = {f"module._ndp_module.{name}": tensor for name, tensor in tensors.items()}
        old = "module._ndp_module._item_embeddings_fn._item_emb_proj_module.1.bias"
        state["module._ndp_module._item_proj_module.1.bias"] = state.pop(old)
        state["module._embedding_module._item_emb.weight"] = cls.table
        files = {"checkpoint.pt": {"epoch": np.zeros(1), "model_state_dict": state},
                 "queries.pt": {"embeddings": cls.queries, "user_ids": cls.users, "targets": cls.targets},
                 "weighted.pt": {"v": cls.w["v"]}, "bilinear.pt": {"weight": cls.w["W"]},
                 "factors.pt": {"query_map.weight": cls.w["P"], "item_map.weight": cls.w["Q"]},
                 "recjpq.pt": {"centroids": cls.centroids, "item_codes": cls.codes}}
        for name, content in files.items():
            np.save(cls.folder / f"{name}.npy", content)
        cls.run_python("""
import glob, numpy, torch
def convert(value):
    return {k: convert(v) for k, v in value.items()} if isinstance(value, dict) else torch.from_numpy(value.copy())
for path in glob.glob("*.pt.npy"):
    torch.save(convert(numpy.load(path, allow_pickle=True).item()), path[:-4])
""")

    def evaluate(self, model, items="items.safetensors"):
        words = ["--model", model, "--items", items, "--queries", "queries.safetensors", "-k", "300", "--output", "o"]
        return subprocess.run([harness.build_dir() / "sluicectl", "eval", *words], cwd=self.folder, capture_output=True,
                              text=True, timeout=60 * harness.SLOWNESS)

    def assert_serves(self, model, scores, items="items.safetensors", first_id=1):
        """Check the scores that eval finds. scores: the expected ones [queries, items]."""
        done = self.evaluate(model, items)
        self.assertEqual(done.returncode, 0, done.stderr)
        found, _ = safetensors_io.read(self.folder / "o")
        self.assertEqual(found["top_ids"].shape, scores.shape)
        for q, ids in enumerate(found["top_ids"]):
            self.assertEqual(len(set(ids)), len(ids))
            np.testing.assert_allclose(found["top_scores"][q], scores[q][ids - first_id], rtol=1e-4, atol=1e-3)
        self.assertTrue(np.all(found["exact"] == 1))

    def expected(self):
        """Return {model: (similarity, scores of items.safetensors)}."""
        q, d = self.queries.astype(np.float64), self.table[1:].astype(np.float64)
        w = {name: weight.astype(np.float64) for name, weight in self.w.items()}
        length = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(d, axis=1)
        return {"dot": ("dot", q @ d.T), "cosine": ("cosine", q @ d.T / length),
                "weighted_dot": ("weighted_dot", (q * w["v"]) @ d.T), "bilinear": ("bilinear", q @ w["W"][0] @ d.T),
                "factors": ("bilinear", (q @ w["P"].T) @ (d @ w["Q"].T).T)}

    def test_vector_similarities(self):
        for name, (similarity, scores) in self.expected().items():
            with self.subTest(name):
                _, metadata = safetensors_io.read(self.folder / f"{name}.safetensors")
                self.assertEqual(metadata["sluice.similarity"], similarity)
                if similarity in SERVED:
                    self.assert_serves(f"{name}.safetensors", scores)
                else:  # fails once the similarity is served; extend SERVED then
                    self.assertIn("is not one of", self.evaluate(f"{name}.safetensors").stderr)

    def test_mol(self):
        model = models.load(self.folder / "drawn")
        g, item_gate = model.items(self.table[1:].astype(np.float64))
        f, query_gate = model.queries(self.queries.astype(np.float64), self.users)
        scores = np.stack([model.phi(f[b], query_gate[b], g, item_gate) for b in range(len(f))])
        self.assert_serves("mol.safetensors", scores)

    def test_recjpq(self):
        table = np.einsum("mbw,qmw->qmb", self.centroids.astype(np.float64),
                          self.queries.astype(np.float64).reshape(9, 5, 10))
        scores = sum(table[:, split, self.codes[:-2, split]] for split in range(5))
        self.assert_serves("recjpq.safetensors", scores, "recjpq-items.safetensors", first_id=0)

    def test_the_metadata_of_mol_is_that_of_the_drawn_model(self):
        _, drawn = safetensors_io.read(self.folder / "drawn")
        _, written = safetensors_io.read(self.folder / "mol.safetensors")
        self.assertEqual(set(drawn) | {"sluice.similarity"}, set(written))
        for key in drawn:
            self.assertEqual(json.loads(drawn[key]) if drawn[key][0] in "[0123456789-" else drawn[key],
                             json.loads(written[key]) if written[key][0] in "[0123456789-" else written[key], key)

    def test_the_command(self):
        plain, filtered = [shlex.split(block.replace("\\\n", "")) for block in blocks("docs/models.md", "sh")]
        (attributes,) = blocks("docs/models.md", "json")
        (self.folder / "attributes.jsonl").write_text(attributes, encoding="utf-8")
        for words, shown in ((plain, "HR@100"), (filtered, "1 of 300 items admitted")):
            self.assertEqual(words[0], "sluicectl")
            done = subprocess.run([harness.build_dir() / words[0], *words[1:]], cwd=self.folder, capture_output=True,
                                  text=True, timeout=60 * harness.SLOWNESS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("average(2000)", done.stdout)
            self.assertIn(shown, done.stdout)


if __name__ == "__main__":
    data.main()
