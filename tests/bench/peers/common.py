# SPDX-License-Identifier: Apache-2.0
"""Code shared by the peer programs: one thread, the data in the temporary folder, and the protocol with the benchmark.

The benchmark writes "run METHOD ROUND BATCH K". The peer answers with one line, "MS CPU_MS ID ID ...", with K ids per
query. Under filters the benchmark has written absent.npy before, and -1 stands for no id.
"""
import json
import os
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402: numpy reads these variables when it is imported


def folder():
    return sys.argv[1]


def load(name):
    """Return a memory-mapped array that the benchmark wrote. All its readers share the pages.

    It is mapped copy-on-write, because PyTorch warns of arrays that cannot be written.
    """
    return np.load(os.path.join(folder(), name + ".npy"), mmap_mode="c")


def load_model():
    """Return the tensors of model.safetensors, {name: array}."""
    with open(os.path.join(folder(), "model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], np.float32).reshape(t["shape"])
        for name, t in header.items()
    }


def note(text):
    print("peers:", text, file=sys.stderr, flush=True)


def best(scores, k):
    """Return the indices of the k best scores of each row, best first."""
    rows = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, rows, 1), axis=1)
    return np.take_along_axis(rows, order, 1)


def serve(queries, methods):
    """Run searches for the benchmark until it closes stdin.

    methods: {name: (the Sluice method to compare with, search(queries [batch, dim], k) -> ids [batch, k])}

    A method under filters has a third entry, prepare(absent [filters, items]). It is not timed, and search() gets its
    result as a third argument. filtering.py makes such methods.
    """
    out = os.fdopen(os.dup(1), "w")
    print("ready", *(f"{name}={rival}" for name, (rival, *_) in methods.items()), file=out, flush=True)
    for line in sys.stdin:
        _, name, start, batch, k = line.split()
        start, batch, k = int(start), int(batch), int(k)
        rows = np.ascontiguousarray(queries[np.arange(start * batch, (start + 1) * batch) % len(queries)])
        _, search, *prepare = methods[name]
        filters = [make(np.array(load("absent"))) for make in prepare]  # a copy: the benchmark writes the file again
        begin, cpu = time.perf_counter(), time.process_time()
        ids = search(rows, k, *filters)
        ms, cpu_ms = (time.perf_counter() - begin) * 1e3, (time.process_time() - cpu) * 1e3
        ids = np.asarray(ids).reshape(batch, -1)[:, :k]
        print(f"{ms:.6f} {cpu_ms:.6f}", *ids.ravel().tolist(), file=out, flush=True)
