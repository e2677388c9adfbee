# SPDX-License-Identifier: Apache-2.0
"""Benchmark PyTorch on a GPU with the same problem shapes as ops/bench gpu.

It runs Mixture-of-Logits in eager mode, written from the paper's formulas (section 3.1, appendix A), and torch.matmul
with torch.topk. Inputs are random, because the times do not depend on their values. The items' components, gates and
averages are precomputed, which favours PyTorch. They are f32, or f16 with tensor cores if the row says f16. Times are
from torch.cuda.Event; they are medians over different queries, with caches flushed before each search. A row is
method | items | batch | k | median ms | p95 ms.

    python3 tests/bench/peers/gpu.py [--device cuda|cpu] [--items N] [--seconds S] [--json | --markdown]
"""
import argparse
import json
import sys
import time

import torch
import torch.nn.functional as F

PQ, PX, DIM, LOGITS, HIDDEN = 8, 8, 32, 64, 128
TAU = 0.05
CHUNK_PAIRS = 32 * 67404  # query-item pairs scored at a time: 5 GB of intermediates
QUERIES = 512
VECTOR_DIM = 768

torch.set_grad_enabled(False)


class Mol:
    """A random mol problem. Precomputed per item: components [N, PX, d], item gates [N, L], averages [N, d]."""

    def __init__(self, n_items, device, dtype):
        make = {"device": device, "dtype": dtype}
        self.components = F.normalize(torch.randn(n_items, PX, DIM, **make), dim=-1)
        self.gates = torch.randn(n_items, LOGITS, **make)
        self.averages = self.components.mean(1)
        self.first = torch.randn(HIDDEN, LOGITS, **make) * 0.1
        self.first_bias = torch.randn(HIDDEN, **make) * 0.1
        self.second = torch.randn(LOGITS, HIDDEN, **make) * 0.1
        self.second_bias = torch.randn(LOGITS, **make) * 0.1
        self.query_components = F.normalize(torch.randn(QUERIES, PQ, DIM, **make), dim=-1)
        self.query_gates = torch.randn(QUERIES, LOGITS, **make)

    def score(self, f, u, components, gates):
        """Return phi for queries [B, PQ, d] and items: shared [1, X, PX, d], or one set per query [B, X, PX, d]."""
        if components.shape[0] == 1:
            logits = torch.einsum("bnd,xmd->bxnm", f, components[0])
        else:
            logits = torch.einsum("bnd,bxmd->bxnm", f, components)
        logits = logits.reshape(*logits.shape[:2], LOGITS) / TAU
        hidden = F.silu(F.linear(logits, self.first, self.first_bias))
        z = u.unsqueeze(1) * gates + F.linear(hidden, self.second, self.second_bias)
        return (F.softmax(z * torch.sigmoid(z), -1) * logits).sum(-1)

    def exact(self, rows, k):
        f, u = self.query_components[rows], self.query_gates[rows]
        chunk = max(1, CHUNK_PAIRS // len(rows))
        values, ids = [], []
        for begin in range(0, len(self.gates), chunk):
            scores = self.score(f, u, self.components[None, begin:begin + chunk], self.gates[None, begin:begin + chunk])
            top = torch.topk(scores, min(k, scores.shape[1]))
            values.append(top.values)
            ids.append(top.indices + begin)
        order = torch.topk(torch.cat(values, 1), k).indices
        return torch.cat(ids, 1).gather(1, order)

    def rescored(self, rows, candidates, k):
        """Score all candidates, mask duplicates afterwards, and return the k best."""
        candidates = candidates.sort(1).values
        phi = self.score(self.query_components[rows], self.query_gates[rows], self.components[candidates],
                         self.gates[candidates])
        phi[:, 1:][candidates[:, 1:] == candidates[:, :-1]] = -32767.0
        return candidates.gather(1, torch.topk(phi, k).indices)

    def of_average(self, rows, n):
        sums = self.query_components[rows].sum(1)
        return torch.topk(sums @ self.averages.T, min(n, len(self.averages)), sorted=False).indices

    def of_pairs(self, rows, n):
        """Return the n best items for each pair of components.

        It handles one item component at a time, because all at once would need 40 GB.
        """
        f = self.query_components[rows].reshape(-1, DIM)
        lists = []
        for m in range(PX):
            dots = f @ self.components[:, m].T
            lists.append(torch.topk(dots, min(n, dots.shape[1]), sorted=False).indices.view(len(rows), -1))
        return torch.cat(lists, 1)

    def average(self, rows, k):
        return self.rescored(rows, self.of_average(rows, 4000), k)

    def per_embedding(self, rows, k):
        return self.rescored(rows, self.of_pairs(rows, 100), k)

    def combined(self, rows, k):
        return self.rescored(rows, torch.cat([self.of_pairs(rows, 100), self.of_average(rows, 1000)], 1), k)


class Vectors:
    def __init__(self, n_items, device, dtype):
        self.items = torch.randn(n_items, VECTOR_DIM, device=device, dtype=dtype)
        self.queries = torch.randn(QUERIES, VECTOR_DIM, device=device, dtype=dtype)

    def search(self, rows, k):
        return torch.topk(torch.matmul(self.queries[rows], self.items.T), k).indices


class Codes:
    """PQTopK with gathers, because eager mode has no better table lookup."""

    def __init__(self, n_items, device):
        self.codes = torch.randint(0, 256, (8, n_items), device=device, dtype=torch.int32)
        self.tables = torch.randn(QUERIES, 8, 256, device=device)

    def search(self, rows, k):
        tables = self.tables[rows]
        scores = tables[:, 0].index_select(1, self.codes[0])
        for m in range(1, 8):
            scores += tables[:, m].index_select(1, self.codes[m])
        return torch.topk(scores, k).indices


class Clock:
    def __init__(self, device):
        self.is_cuda = device == "cuda"
        n = (512 << 20) // 4 if self.is_cuda else 1024
        self.from_, self.to = torch.randn(n, device=device), torch.empty(n, device=device)

    def ms(self, run):
        """Return the time of run() in ms, with cold caches: GPU time on a GPU, else wall time."""
        self.to.copy_(self.from_)
        if not self.is_cuda:
            begin = time.perf_counter()
            run()
            return (time.perf_counter() - begin) * 1e3
        torch.cuda.synchronize()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)


def measure(clock, search, batch, k, seconds, device):
    """Return the sorted times of the rounds in ms. Each round searches different queries."""
    times = []
    begin = time.perf_counter()
    for round_ in range(3 + 200):
        rows = torch.arange(round_ * batch, (round_ + 1) * batch, device=device) % QUERIES
        ms = clock.ms(lambda: search(rows, k))
        if round_ >= 3:
            times.append(ms)
        if len(times) >= 2 and time.perf_counter() - begin > seconds:
            break
    return sorted(times)


def workloads(items, device):
    """Yield (name, items, batch, k, search). Free each problem's memory before creating the next one."""
    for dtype, suffix in ((torch.float32, ""), (torch.float16, " f16")):
        if device == "cpu" and dtype == torch.float16:
            continue  # PyTorch has no f16 products on the CPU
        n = items or 674044
        mol = Mol(n, device, dtype)
        for batch in (32, 1):
            for name in ("exact", "average", "per_embedding", "combined"):
                title = {"average": "average(4000)", "per_embedding": "per_embedding(100)",
                         "combined": "combined(100,1000)"}.get(name, name)
                yield f"torch: mol {title}{suffix}", n, batch, 100, getattr(mol, name)
        del mol
        n = items or 1000000
        vectors = Vectors(n, device, dtype)
        for batch in (1, 32):
            yield f"torch: matmul + topk, {VECTOR_DIM}{suffix}", n, batch, 10, vectors.search
        del vectors
    n = items or 10000000
    codes = Codes(n, device)
    for batch in (1, 32):
        yield "torch: pqtopk by gathers", n, batch, 10, codes.search


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--items", type=int)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("peers: error: this PyTorch finds no GPU (--device cpu runs the same on the processor)")
    torch.manual_seed(time.time_ns() % 2**31)
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    columns = ("method", "items", "batch", "k", "median ms", "p95 ms")
    clock = Clock(options.device)
    if not options.json:
        print(f"\nPyTorch {torch.__version__} on {device}\n")
        line = "| " + " | ".join(columns) + " |" + "\n|---" + "|--:" * (len(columns) - 1) + "|"
        plain = "  ".join(f"{c:>34}" if i == 0 else f"{c:>9}" for i, c in enumerate(columns))
        print(line if options.markdown else plain)
    for name, n, batch, k, search in workloads(options.items, options.device):
        times = measure(clock, search, batch, k, options.seconds, options.device)
        median, p95 = times[len(times) // 2], times[min(len(times) - 1, int(0.95 * len(times)))]
        if options.json:
            print(json.dumps({"workload": "gpu", "method": name, "items": n, "batch": batch, "k": k, "threads": 1,
                              "median_ms": median, "p95_ms": p95, "device": device, "runs": len(times)}))
        elif options.markdown:
            print(f"| {name} | {n} | {batch} | {k} | {median:.4f} | {p95:.4f} |")
        else:
            print(f"{name:>34}  {n:>9}  {batch:>9}  {k:>9}  {median:>9.4f}  {p95:>9.4f}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
