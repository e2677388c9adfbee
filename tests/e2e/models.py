# SPDX-License-Identifier: Apache-2.0
"""The similarities in numpy float64, written directly from their formulas, and random models.

dot, cosine, weighted_dot, bilinear   as defined in docs/models.md
mol     Mixture-of-Logits as in the authors' implementation in inference mode; docs/models.md has the formulas
recjpq  score = sum over the splits m of <centroids[m][code_m], q_m>

A model has exact_methods, methods() to draw from, row_of(part), scores(query, rows), and for its approximate methods:

    stages()   the candidate lists; the candidates are their union. None if the method may skip any admitted item
    ceiling()  the bound on the scores of items not returned, from docs/exactness.md. A receipt's bound may be lower,
               but never higher
"""

import json
import re
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

import safetensors_io
from wire import WireError, floats_of


def sigmoid(z):
    # exp of a non-positive number cannot overflow.
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1, e) / (1 + e)


def silu(z):
    return z * sigmoid(z)


def gelu(z):
    return 0.5 * z * (1 + erf(z / np.sqrt(2)))


def load(path):
    tensors, metadata = safetensors_io.read(path)
    kind = metadata.get("sluice.similarity", "mol")
    kinds = {"mol": Mol, "recjpq": Recjpq, "bilinear": Bilinear}
    return kinds.get(kind, Vectors)(tensors, metadata)


@dataclass
class Stage:
    """A candidate list: the n admitted items with the largest values. The daemon's values may be off by `slack`."""
    values: np.ndarray
    n: int
    slack: float


def nth_best(values, n):
    """Return the n-th largest value, or -inf if there are fewer than n."""
    return np.sort(values)[-n] if 0 < n <= len(values) else -np.inf


class Rows:
    """A table that grows by a row for each new part. A part that was seen before keeps its row."""

    def __init__(self, **widths):
        self.columns = {name: np.empty((1024, width)) for name, width in widths.items()}
        self.by_content = {}

    def find(self, content):
        return self.by_content.get(content)

    def add(self, content, **values):
        row = self.by_content[content] = len(self.by_content)
        for name, column in self.columns.items():
            if row == len(column):
                self.columns[name] = np.concatenate([column, np.empty_like(column)])
        for name, value in values.items():
            self.columns[name][row] = value
        return row

    def __getitem__(self, name):
        return self.columns[name][:len(self.by_content)]


# Allowed f32 rounding error of a dot product of unit vectors.
DOT_SLACK = 2.0 ** -18


class Vectors:
    """A dot, cosine or weighted_dot model."""

    exact_methods = ("", "exact", "brute_force")

    def __init__(self, tensors, metadata):
        self.similarity = metadata["sluice.similarity"]
        self.weights = tensors["v"].astype(np.float64) if "v" in tensors else 1.0
        self.set_dim(len(tensors["v"]) if "v" in tensors else int(metadata["sluice.dim"]))

    def set_dim(self, n):
        self.dq = self.dx = n
        self.rows = Rows(vector=n)

    def methods(self):
        return ["", "exact", "brute_force"]

    def row_of(self, part):
        """Return the row of an item part. Raise WireError if the part does not fit this model."""
        if part.codes or part.HasField("components") or part.HasField("item_gate") or not part.HasField("vector"):
            raise WireError("not a vector alone")
        vector = floats_of(part.vector)
        if len(vector) != self.dx:
            raise WireError("wrong dimension")
        row = self.rows.find(vector.tobytes())
        return self.rows.add(vector.tobytes(), vector=vector) if row is None else row

    def scores(self, query, rows):
        q, items = floats_of(query.vector).astype(np.float64), self.rows["vector"][rows]
        if self.similarity == "cosine":
            # A zero vector has the cosine 0.
            q, items = (v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300) for v in (q, items))
        return items @ (self.weights * q)

    def vectors(self, rows):
        """Return the items' vectors, by whose cosines mmr compares them."""
        return self.rows["vector"][rows]


class Bilinear(Vectors):
    """A bilinear model, q^T W d. The file holds W, or its factors P and Q: W = P Q^T."""

    def __init__(self, tensors, metadata):
        w = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
        self.similarity = metadata["sluice.similarity"]
        self.w = w["W"] if "W" in w else w["P"] @ w["Q"].T
        self.u, self.sigma, self.vt = np.linalg.svd(self.w)
        self.set_dim(len(self.w))

    def vectors(self, rows):
        """Return what W counts of the vectors, in a basis of its own."""
        rank = int((self.sigma > 1e-9 * self.sigma[0]).sum())
        return super().vectors(rows) @ self.vt[:rank].T

    def methods(self):
        return [*super().methods(), "low_rank(1)", "low_rank(5)", f"low_rank({self.dq})"]

    def scores(self, query, rows):
        return self.rows["vector"][rows] @ (floats_of(query.vector).astype(np.float64) @ self.w)

    def cut_scores(self, query, rows, rank):
        """Return the scores under the rank-`rank` truncation of W."""
        cut = self.u[:, :rank] * self.sigma[:rank] @ self.vt[:rank]
        return self.rows["vector"][rows] @ (floats_of(query.vector).astype(np.float64) @ cut)

    def stages(self, query, rows, admitted, name, arguments):
        values = self.cut_scores(query, rows, *arguments)
        return [Stage(values, query.k, 1e-5 * np.abs(values).max(initial=0))]

    def ceiling(self, query, rows, admitted, left, worst, name, arguments):
        """Apply Theorem 3 of the bilinear paper: |s_W - s_(W_r)| <= sigma_(r+1) |q| |d|."""
        rank, = arguments
        sigma = np.append(self.sigma, 0)[rank]
        size = np.linalg.norm(floats_of(query.vector).astype(np.float64))
        sizes = np.linalg.norm(self.rows["vector"][rows[left]], axis=1)
        return (self.cut_scores(query, rows[left], rank) + sigma * size * sizes).max()


class Mol:
    similarity = "mol"
    exact_methods = ("", "exact", "brute_force", "two_pass")

    def __init__(self, tensors, metadata):
        self.w = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
        self.pq, self.px, self.d, self.dq, self.dx = (int(metadata[f"mol.{n}"]) for n in ("Pq", "Px", "dP", "Dq", "Dx"))
        self.n_logits = self.pq * self.px
        self.tau, self.eps = float(metadata["mol.temperature"]), float(metadata["mol.eps"])
        self.act = {"geglu": gelu, "swiglu": silu}
        self.qnl, self.inl = metadata.get("mol.qnl"), metadata.get("mol.inl")
        self.uid_hash = json.loads(metadata.get("mol.uid_hash", "[]"))
        # Raw vectors are projected in bulk, when scores are next computed.
        self.rows = Rows(vector=self.dx, components=self.px * self.d, gate=self.n_logits)
        self.is_raw = []
        self.n_projected = 0

    def _projection(self, x, prefix, nonlinearity):
        w = self.w
        if f"{prefix}.1._w" in w:
            h = x @ w[f"{prefix}.1._w"] + w[f"{prefix}.1._b"]
            half = h.shape[1] // 2
            x = self.act[nonlinearity](h[:, :half]) * h[:, half:]
            return x @ w[f"{prefix}.2.weight"].T + w[f"{prefix}.2.bias"]
        return x @ w[f"{prefix}.1.weight"].T + w[f"{prefix}.1.bias"]

    def _normalized(self, components):
        return components / np.maximum(np.linalg.norm(components, axis=-1, keepdims=True), self.eps)

    def items(self, x):
        """Return the normalised components [n, Px, d] and item gates [n, L] of raw vectors [n, Dx]."""
        w, gate = self.w, "_gating_fn._item_only_partial_module"
        g = self._projection(x, "_item_embeddings_fn._item_emb_proj_module", self.inl).reshape(-1, self.px, self.d)
        hidden = silu(x @ w[f"{gate}.1.weight"].T + w[f"{gate}.1.bias"])
        return self._normalized(g), hidden @ w[f"{gate}.3.weight"].T

    def queries(self, q, user_ids):
        """Return the normalised components [n, Pq, d] and query gates [n, L] of raw vectors [n, Dq]."""
        w, gate = self.w, "_gating_fn._query_only_partial_module"
        f = self._projection(q, "_query_embeddings_fn._query_emb_proj_module", self.qnl)
        f = f.reshape(len(q), self.pq - len(self.uid_hash), self.d)
        for i, size in enumerate(self.uid_hash):
            table = w[f"_query_embeddings_fn._uid_embeddings_{i}.weight"]
            row = np.array([int(user) % size + 1 for user in user_ids])
            f = np.concatenate([f, table[row][:, None]], axis=1)
        hidden = silu(q @ w[f"{gate}.0.weight"].T + w[f"{gate}.0.bias"])
        return self._normalized(f), hidden @ w[f"{gate}.2.weight"].T

    def phi(self, f, query_gate, g, item_gate):
        """Return the scores [n] of one query (f [Pq, d], gate [L]) for items (g [n, Px, d], gates [n, L])."""
        w, cross = self.w, "_gating_fn._qi_partial_module"
        logits = (g @ f.T).transpose(0, 2, 1).reshape(-1, self.n_logits) / self.tau
        gate = query_gate * item_gate
        if f"{cross}.1.weight" in w:
            hidden = silu(logits @ w[f"{cross}.1.weight"].T + w[f"{cross}.1.bias"])
            gate = gate + hidden @ w[f"{cross}.3.weight"].T + w[f"{cross}.3.bias"]
        s = silu(gate)
        pi = np.exp(s - s.max(axis=1, keepdims=True))
        pi /= pi.sum(axis=1, keepdims=True)
        return (pi * logits).sum(axis=1)

    def row_of(self, part):
        """Return the row of an item part. Raise WireError if the part does not fit this model."""
        if part.codes:
            raise WireError("codes in a mol part")
        ready = part.HasField("components") or part.HasField("item_gate")
        if part.HasField("vector") == ready:
            raise WireError("neither a vector nor components with item_gate")
        if ready:
            components, gate = floats_of(part.components), floats_of(part.item_gate)
            if len(components) != self.px * self.d or len(gate) != self.n_logits:
                raise WireError("wrong dimension")
            content = (components.tobytes(), gate.tobytes())
            row = self.rows.find(content)
            if row is None:
                unit = self._normalized(components.astype(np.float64).reshape(self.px, self.d))
                row = self.rows.add(content, components=unit.ravel(), gate=gate)
                self.is_raw.append(False)
            return row
        vector = floats_of(part.vector)
        if len(vector) != self.dx:
            raise WireError("wrong dimension")
        row = self.rows.find(vector.tobytes())
        if row is None:
            row = self.rows.add(vector.tobytes(), vector=vector)
            self.is_raw.append(True)
        return row

    def _project_new(self):
        new = np.flatnonzero(self.is_raw[self.n_projected:]) + self.n_projected
        self.n_projected = len(self.is_raw)
        if len(new):
            components, gates = self.items(self.rows["vector"][new])
            self.rows["components"][new] = components.reshape(len(new), -1)
            self.rows["gate"][new] = gates

    def _query_side(self, query):
        if query.HasField("vector"):
            f, gate = self.queries(floats_of(query.vector).astype(np.float64)[None], [query.user_id])
            return f[0], gate[0]
        f = floats_of(query.components).astype(np.float64).reshape(self.pq, self.d)
        return self._normalized(f), floats_of(query.query_gate).astype(np.float64)

    def vectors(self, rows):
        self._project_new()
        return self.rows["components"][rows]

    def scores(self, query, rows):
        self._project_new()
        f, gate = self._query_side(query)
        components = self.rows["components"][rows].reshape(-1, self.px, self.d)
        return self.phi(f, gate, components, self.rows["gate"][rows])

    def methods(self):
        return ["", "exact", "brute_force", "two_pass", "average(50)", "average(400)", "per_embedding(20)",
                "combined(5,100)"]

    def averages(self, query, rows):
        """Return the first-stage scores of average(N), and their maximum error in f32."""
        self._project_new()
        f, _ = self._query_side(query)
        summed = f.sum(axis=0)
        item = self.rows["components"][rows].reshape(-1, self.px, self.d).sum(axis=1)
        slack = DOT_SLACK * np.linalg.norm(summed) * np.linalg.norm(item, axis=1).max(initial=0)
        return item @ summed / self.n_logits, slack / self.n_logits

    def dots(self, query, rows):
        """Return the dot products [n, Px * Pq] of all pairs of components."""
        self._project_new()
        f, _ = self._query_side(query)
        return (self.rows["components"][rows].reshape(-1, self.px, self.d) @ f.T).reshape(-1, self.n_logits)

    def stages(self, query, rows, admitted, name, arguments):
        stages = []
        if name != "average":
            stages += [Stage(values, arguments[0], DOT_SLACK) for values in self.dots(query, rows).T]
        if name != "per_embedding":
            values, slack = self.averages(query, rows)
            stages.append(Stage(values, arguments[-1], slack))
        return stages

    def ceiling(self, query, rows, admitted, left, worst, name, arguments):
        """Return the largest logit that an item outside all lists can have.

        Such an item's dot products are at most the largest of the lists' N-th best ones. A logit is a dot product
        divided by tau, and the score is at most the largest logit.
        """
        if name == "average":
            return (1 + DOT_SLACK) / self.tau
        cuts = [nth_best(values[admitted], arguments[0]) for values in self.dots(query, rows).T]
        return (max(cuts) + DOT_SLACK) / self.tau


class Recjpq:
    similarity = "recjpq"
    exact_methods = ("", "exact", "pqtopk", "default", "prune")

    def __init__(self, tensors, metadata):
        self.centroids = tensors["centroids"].astype(np.float64)
        self.m, self.b, self.width = self.centroids.shape
        self.d = self.m * self.width
        self.rows = Rows(codes=self.m)

    def methods(self):
        return ["", "exact", "pqtopk", "default", "prune(1)", "prune(8)", "prune_inflated(8,120)",
                "prune_limited(8,20)"]

    def row_of(self, part):
        if any(part.HasField(name) for name in ("vector", "components", "item_gate")):
            raise WireError("vectors in a recjpq part")
        if len(part.codes) != self.m:
            raise WireError("wrong number of codes")
        if max(part.codes) >= self.b:
            raise WireError("a code is out of range")
        row = self.rows.find(part.codes)
        return self.rows.add(part.codes, codes=list(part.codes)) if row is None else row

    def sub_scores(self, query):
        q = floats_of(query.vector).astype(np.float64).reshape(self.m, self.width)
        return np.einsum("mbw,mw->mb", self.centroids, q)

    def vectors(self, rows):
        return self.centroids[np.arange(self.m), self.rows["codes"][rows].astype(np.intp)].reshape(len(rows), -1)

    def scores(self, query, rows):
        return self.sub_scores(query)[np.arange(self.m), self.rows["codes"][rows].astype(np.intp)].sum(axis=1)

    def visit(self, query, rows, batch_size, n_iterations):
        """Run Algorithm 1 of the RecJPQPrune paper without its threshold, for n_iterations.

        Return a mask of the visited items, and sigma at the stop.
        """
        if len(rows) == 0:
            return np.ones(0, bool), -np.inf
        scores, codes = self.sub_scores(query), self.rows["codes"][rows].astype(np.intp)
        orders = []
        for split in range(self.m):
            live = np.unique(codes[:, split])
            orders.append(live[np.argsort(-scores[split, live])])
        visited = [0] * self.m
        for _ in range(n_iterations):
            best = max(range(self.m), key=lambda m: scores[m, orders[m][visited[m]]])
            visited[best] += batch_size
            if visited[best] >= len(orders[best]):
                return np.ones(len(rows), bool), -np.inf
        met = np.any([np.isin(codes[:, m], orders[m][:visited[m]]) for m in range(self.m)], axis=0)
        return met, sum(scores[m, orders[m][visited[m]]] for m in range(self.m))

    def stages(self, query, rows, admitted, name, arguments):
        if name == "prune_inflated":
            return None
        met, _ = self.visit(query, rows, *arguments)
        return [Stage(met.astype(float), int((met & admitted).sum()), 0)]

    def ceiling(self, query, rows, admitted, left, worst, name, arguments):
        """Return sigma at the stop. prune_inflated stops once sigma is at most its threshold: return that."""
        if name == "prune_inflated":
            return worst + (arguments[1] / 100 - 1) * abs(worst)
        return self.visit(query, rows, *arguments)[1]


def parse_method(text):
    """Return (name, [arguments])."""
    name, _, rest = text.partition("(")
    return name, [int(argument) for argument in re.findall(r"\d+", rest)]


# ------------------------------------------------------------------------------------------------- random models

def random_mol(rng, path, pq=6, px=3, d=16, dq=24, dx=20, uid_hash=(13,), glu="swiglu", query_hidden=48,
               item_hidden=-1, gating=(32, 24, 40)):
    """Write a random mol model. The weights are large enough to make gates differ between items; biases are not 0."""
    def dense(rows, columns):
        return (rng.standard_normal((rows, columns)) * 1.5 / np.sqrt(columns)).astype(np.float32)

    def bias(n):
        return (rng.standard_normal(n) * 0.3).astype(np.float32)

    def projection(prefix, width, hidden, out):
        if hidden <= 0:
            return {f"{prefix}.1.weight": dense(out, width), f"{prefix}.1.bias": bias(out)}
        return {f"{prefix}.1._w": np.ascontiguousarray(dense(2 * hidden, width).T),
                f"{prefix}.1._b": bias((1, 2 * hidden)),
                f"{prefix}.2.weight": dense(out, hidden), f"{prefix}.2.bias": bias(out)}

    n_logits, own = pq * px, pq - len(uid_hash)
    hq, hx, hc = gating
    gate = "_gating_fn"
    tensors = {
        **projection("_query_embeddings_fn._query_emb_proj_module", dq, query_hidden, own * d),
        **projection("_item_embeddings_fn._item_emb_proj_module", dx, item_hidden, px * d),
        **{f"_query_embeddings_fn._uid_embeddings_{i}.weight": dense(size + 1, d) for i, size in enumerate(uid_hash)},
        f"{gate}._query_only_partial_module.0.weight": dense(hq, dq),
        f"{gate}._query_only_partial_module.0.bias": bias(hq),
        f"{gate}._query_only_partial_module.2.weight": dense(n_logits, hq),
        f"{gate}._item_only_partial_module.1.weight": dense(hx, dx),
        f"{gate}._item_only_partial_module.1.bias": bias(hx),
        f"{gate}._item_only_partial_module.3.weight": dense(n_logits, hx),
        f"{gate}._qi_partial_module.1.weight": dense(hc, n_logits) / np.float32(5),
        f"{gate}._qi_partial_module.1.bias": bias(hc),
        f"{gate}._qi_partial_module.3.weight": dense(n_logits, hc),
        f"{gate}._qi_partial_module.3.bias": bias(n_logits),
    }
    numbers = {"Pq": pq, "Px": px, "dP": d, "Dq": dq, "Dx": dx, "temperature": 0.05, "eps": 1e-6,
               "qnl": glu, "inl": glu,
               "query_hidden_dim": query_hidden, "item_hidden_dim": item_hidden, "gating_query_hidden_dim": hq,
               "gating_item_hidden_dim": hx, "gating_qi_hidden_dim": hc, "gating_combination_type": "glu_silu",
               "dot_product_l2_norm": 1, "uid_hash": json.dumps(list(uid_hash))}
    safetensors_io.write(path, tensors, {f"mol.{name}": str(value) for name, value in numbers.items()})


def random_recjpq(rng, path, m=8, b=256, d=64):
    centroids = rng.standard_normal((m, b, d // m)).astype(np.float32)
    safetensors_io.write(path, {"centroids": centroids}, {"sluice.similarity": "recjpq"})


def random_vectors(rng, path, similarity, n=24, rank=None):
    """Write a random dot, cosine, weighted_dot or bilinear model. With a rank, bilinear is stored as factors."""
    tensors, metadata = {}, {"sluice.similarity": similarity}
    if similarity == "weighted_dot":
        tensors["v"] = rng.standard_normal(n).astype(np.float32)
    elif similarity != "bilinear":
        metadata["sluice.dim"] = str(n)
    elif rank:
        tensors = {name: rng.standard_normal((n, rank)).astype(np.float32) for name in ("P", "Q")}
    else:
        # The singular values decrease, as those of trained models do.
        tensors["W"] = (rng.standard_normal((n, n)) @ np.diag(0.8 ** np.arange(n)) @ rng.standard_normal((n, n))
                        ).astype(np.float32)
    safetensors_io.write(path, tensors, metadata)
