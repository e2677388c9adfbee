#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the daemon with a GPU, simulated on the CPU by tests/support/cuda_model.

The daemon serves from the GPU. When the GPU fails, the daemon continues on the CPU, or stops if the configuration
requires the GPU. The example of a machine with several cards has files without a fault.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import data
import models
from harness import SLOWNESS, Case, Daemon, System, build_dir
from wire import pb

N_ITEMS = 150 if data.QUICK else 600


def setUpModule():
    global folder, paths, spaces
    folder = tempfile.TemporaryDirectory(prefix="sluice-models-")
    rng = data.generator("gpu models")
    paths = {name: Path(folder.name) / f"{name}.safetensors" for name in ("taste", "codes", "plain", "rotated")}
    models.random_mol(rng, paths["taste"], uid_hash=(13,))
    models.random_recjpq(rng, paths["codes"], m=8, b=100, d=64)
    models.random_vectors(rng, paths["plain"], "weighted_dot")
    models.random_vectors(rng, paths["rotated"], "bilinear", n=40)
    spaces = {name: models.load(path) for name, path in paths.items()}


def tearDownModule():
    folder.cleanup()


class Gpu(Case):
    def open(self, backend, model, name, **where):
        self.system = System(paths, spaces, {"engine": {"backend": backend}, "catalogue": {"max_items": 2000}},
                             name=name, environment={"SLUICE_CUDA_MODEL": model}, **where)
        self.addCleanup(self.system.close)
        self.system.open()
        self.system.oracle.may_search_more = True
        self.write(range(N_ITEMS))

    def write(self, numbers):
        for i in numbers:
            self.system.put(b"item-%d" % i)
        self.system.sync()

    def draw_all(self):
        """Draw a query for every method of every space. Each query waits for everything written so far."""
        return [self.system.queries.draw(name, method, at_least=self.system.positions())
                for name in spaces for method in self.system.queries.methods(name)]

    def test_answers_come_from_the_gpu(self):
        self.open("auto", "on", "gpu")
        self.assertEqual(self.system.daemon.status()["backend"], "cuda")
        for round_ in range(3):
            self.system.ask(self.draw_all())
            self.write(range(round_ * 50, N_ITEMS, 3))
            for i in range(round_, N_ITEMS, 11):
                self.system.put_raw(b"item-%d" % i, None)
            self.system.sync()
        self.system.check_catalogue()
        status = self.system.daemon.status()
        self.assertEqual((status["backend"], status["backends_failed"]), ("cuda", 0))
        self.assertIsNone(status["backend_reason"])
        self.assertIn('sluice_backend{name="cuda"} 1', self.system.daemon.get("/metrics")[1])
        self.system.daemon.stop()

    def test_the_processor_goes_on_when_the_gpu_fails(self):
        for calls in (700, 1501, 4000):  # CUDA calls until the failure: during a load, between loads, during queries
            with self.subTest(calls=calls):
                self.open("auto", f"fail:{calls}", f"failing{calls}")
                for round_ in range(60):
                    self.system.ask(self.draw_all())
                    self.write(range(round_, N_ITEMS, 29))
                    if self.system.daemon.status()["backends_failed"]:
                        break
                status = self.system.daemon.status()
                self.assertEqual((status["backend"], status["backends_failed"]), ("cpu", 1))
                self.assertTrue(status["backend_reason"])
                self.assertIn("sluice_backend_failures 1", self.system.daemon.get("/metrics")[1])
                self.assertEqual(self.system.daemon.log().count("event=backend_failed"), 1)
                self.write(range(0, N_ITEMS, 5))
                self.system.ask(self.draw_all())
                self.system.check_catalogue()
                self.system.daemon.stop()

    def test_nothing_but_the_gpu_stops_in_order(self):
        self.open("cuda", "fail:2500", "alone")
        queries = []
        while self.system.daemon.is_running() and len(queries) < 3000:
            query = self.system.queries.draw("codes", "exact")
            self.system.send(query)
            queries.append(query)
            try:
                self.system.client.wait([query.id], 5)
            except AssertionError:
                break  # the daemon stopped before it answered
        self.assertEqual(self.system.daemon.wait_exit(), 1)
        log = self.system.daemon.log()
        self.assertIn("the GPU failed", log)
        self.assertIn("event=stopped", log)
        answers = [self.system.client.replies[q.id][0].answer for q in queries if q.id in self.system.client.replies]
        errors = [a for a in answers if a.HasField("error")]
        self.assertTrue(all(pb.Error.Code.Name(a.error.code) == "INTERNAL" for a in errors))
        self.assertGreater(len(answers), len(errors))

    def test_the_gpu_searches_with_filters(self):
        for backend in ("auto", "cuda"):
            with self.subTest(backend=backend):
                self.open(backend, "on", f"filters-{backend}", types={"year": "integer"})
                for filter_ in ("year < 1990", "not year < 1990", "year = 1990"):
                    self.system.ask([self.system.queries.draw(name, method, at_least=self.system.positions(),
                                                              filter=filter_)
                                     for name in spaces for method in self.system.queries.methods(name)])
                self.assertEqual(self.system.daemon.status()["backend"], "cuda")
                self.system.daemon.stop()

    def test_no_gpu_is_said(self):
        with tempfile.TemporaryDirectory() as place:
            config = {"engine": {"backend": "cuda"}, "embedded_broker": {"enabled": True},
                      "store": {"path": f"{place}/store"}, "spaces": {"codes": {"model": str(paths["codes"])}}}
            daemon = Daemon(config, place).start()
            self.assertEqual(daemon.wait_exit(), 78)
            self.assertIn("engine.backend is cuda, but the NVIDIA driver shows no GPU to this process: use auto or cpu",
                          daemon.log())


class Module(unittest.TestCase):
    """The library of the CUDA backend, which the daemon looks for beside itself and in ../lib/sluice."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-module-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "bin").mkdir()
        (self.root / "lib/sluice").mkdir(parents=True)
        shutil.copy(build_dir() / "sluiced", self.root / "bin")
        self.module = self.root / "lib/sluice/libsluice_cuda.so"
        self.config = self.root / "sluice.yaml"
        self.config.write_text(f"engine: {{backend: cuda}}\nembedded_broker: {{enabled: true}}\n"
                               f"store: {{path: {self.root}/store}}\nspaces: {{codes: {{model: {paths['codes']}}}}}\n")

    def check(self, *said):
        done = subprocess.run([self.root / "bin/sluiced", "--check-config", "--config", self.config], text=True,
                              capture_output=True, env={**os.environ, "SLUICE_CUDA_MODEL": "on"}, timeout=60 * SLOWNESS)
        self.assertEqual(done.returncode, 78 if said else 0, done.stderr)
        for words in said:
            self.assertIn(words, done.stderr)

    def test_it_is_found_where_it_is_installed(self):
        shutil.copy(build_dir() / self.module.name, self.module)
        self.check()

    def test_without_it_the_package_is_named(self):
        self.check("there is no ", "libsluice_cuda.so: it comes with the package sluice-cuda")

    def test_what_cannot_be_loaded_is_said(self):
        self.module.write_bytes(b"not a library")
        self.check("the CUDA backend cannot be loaded: ", "libsluice_cuda.so")

    def test_another_library_is_refused(self):
        used = subprocess.run(["ldd", build_dir() / "sluiced"], capture_output=True, text=True, check=True).stdout
        shutil.copy(re.search(r"=> (\S*/libyaml\S*)", used)[1], self.module)
        self.check("libsluice_cuda.so is not a CUDA backend of Sluice")

    def test_another_version_is_refused(self):
        version = subprocess.run([self.root / "bin/sluiced", "--version"], capture_output=True).stdout.split()[-1]
        library = (build_dir() / self.module.name).read_bytes()
        self.assertIn(version + b"\0", library)
        self.module.write_bytes(library.replace(version + b"\0", b"9" * len(version) + b"\0"))
        self.check(f"is of version {'9' * len(version)}, but this is Sluice {version.decode()}: install the same version")


class Shards(unittest.TestCase):
    """The files of examples/gpu-shards: two shards, each with a card, and a merge, as instances of the service."""

    EXAMPLE = data.ROOT / "examples/gpu-shards"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-gpu-shards-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def read(self, name):
        return (self.EXAMPLE / f"{name}.yaml").read_text()

    def test_the_configurations_are_fine(self):
        shutil.copy(paths["plain"], self.root / "books.safetensors")
        for name in ("shard-0", "shard-1", "merge"):
            config = self.root / f"{name}.yaml"
            config.write_text(self.read(name).replace("/etc/sluice", str(self.root))
                              .replace("/var/lib/sluice", str(self.root))
                              .replace("max_items: 6000000", "max_items: 6000"))  # the machine may be small
            done = subprocess.run([build_dir() / "sluiced", "--check-config", "--config", config], text=True,
                                  capture_output=True, env={**os.environ, "SLUICE_CUDA_MODEL": "on"},
                                  timeout=60 * SLOWNESS)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{config}: fine\n", ""))

    def test_the_shards_differ_in_what_is_their_own(self):
        """Index, store and address; the cards are those of the drop-ins."""
        first, second = self.read("shard-0"), self.read("shard-1")
        for of_first, of_second in (("index: 0", "index: 1"), ("listen: 127.0.0.1:8321", "listen: 127.0.0.1:8322"),
                                    ("first card", "second card"), ("Shard 0", "Shard 1"), ("shard-0", "shard-1")):
            self.assertIn(of_first, first)
            first = first.replace(of_first, of_second)
        self.assertEqual(first, second)
        for index in range(2):
            drop_in = (self.EXAMPLE / f"sluiced@shard-{index}.service.d/card.conf").read_text()
            self.assertEqual(re.findall(r"^Environment=CUDA_VISIBLE_DEVICES=(.*)$", drop_in, re.MULTILINE), [str(index)])

    def test_the_merge_has_the_topics_of_the_shards(self):
        lines = re.findall(r"^  (?:group|\w*topic|bootstrap\.servers): \S+", self.read("merge"), re.MULTILINE)
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.assertRegex(self.read("shard-0"), f"(?m)^{re.escape(line)}(?: |$)")

    @unittest.skipUnless(data.CI or shutil.which("systemd-analyze"), "there is no systemd here")
    def test_the_services_have_no_fault(self):
        unit = (data.ROOT / "systemd/sluiced.service.in").read_text()
        for name, value in (("@SLUICE_BIN@", str(build_dir())), ("@SLUICE_CONFIG@", "/etc/sluice/%i.yaml"),
                            ("@SLUICE_STATE@", "sluice/%i"), ("@INSTANCE@", " (%i)")):
            unit = unit.replace(name, value)
        (self.root / "sluiced@.service").write_text(unit)
        for index in range(2):
            folder = shutil.copytree(self.EXAMPLE / f"sluiced@shard-{index}.service.d",
                                     self.root / f"sluiced@shard-{index}.service.d")
            (folder / "gpu.conf").symlink_to(data.ROOT / "systemd/sluiced.service.d/gpu.conf")
        units = [f"sluiced@{name}.service" for name in ("shard-0", "shard-1", "merge")]
        done = subprocess.run(["systemd-analyze", "--man=no", "verify", *units], capture_output=True, text=True,
                              env={**os.environ, "SYSTEMD_UNIT_PATH": f"{self.root}:"}, timeout=60 * SLOWNESS)
        self.assertEqual([line for line in done.stderr.splitlines() if "sluiced@" in line or self.root.name in line], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
