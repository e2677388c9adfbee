# SPDX-License-Identifier: Apache-2.0
"""Mixture-of-Logits in numpy: scoring, and training by hand-written backpropagation (sampled softmax, Adam).

A query and an item have a few component embeddings each. Every pair of components gives one logit. A small gate
decides for each query and item how much each logit counts. Tensor names and shapes are those of the reference
implementation, so that Sluice can read a trained model.
"""

import numpy as np

EPS = 1e-6
QUERY_W, QUERY_B = ["_query_embeddings_fn._query_emb_proj_module.1." + t for t in ("weight", "bias")]
ITEM_W, ITEM_B = ["_item_embeddings_fn._item_emb_proj_module.1." + t for t in ("weight", "bias")]
GATE_Q = ["_gating_fn._query_only_partial_module." + t for t in ("0.weight", "0.bias", "2.weight")]
GATE_X = ["_gating_fn._item_only_partial_module." + t for t in ("1.weight", "1.bias", "3.weight")]
GATE_QX = ["_gating_fn._qi_partial_module." + t for t in ("1.weight", "1.bias", "3.weight", "3.bias")]


def sigmoid(z):
    return 1 / (1 + np.exp(-np.clip(z, -30, 30)))


class Mol:
    def __init__(self, view_dims, d=32, hidden=32, temperature=0.05, like_with_like=2.0, rng=None):
        """Each view has one query and one item component, computed from that view's block of x; at first it is a copy.

        The projections have no bias. So the component of a missing view is zero, and similar to nothing.
        """
        self.P, self.d, self.hidden, self.temperature = len(view_dims), d, hidden, temperature
        self.D, self.L = sum(view_dims), len(view_dims) ** 2
        blocks = np.zeros((self.P * d, self.D), np.float32)
        self.trainable, start = np.zeros_like(blocks), 0
        for p, n in enumerate(view_dims):
            blocks[np.arange(p * d, p * d + n), np.arange(start, start + n)] = 1
            self.trainable[p * d:p * d + d, start:start + n] = 1
            start += n

        def normal(rows, columns, gain=1.0):
            return (rng.standard_normal((rows, columns)) * gain / np.sqrt(columns)).astype(np.float32)

        def zeros(n):
            return np.zeros(n, np.float32)

        self.w = {
            QUERY_W: blocks.copy(), QUERY_B: zeros(self.P * d), ITEM_W: blocks.copy(), ITEM_B: zeros(self.P * d),
            GATE_Q[0]: normal(hidden, self.D), GATE_Q[1]: zeros(hidden), GATE_Q[2]: normal(self.L, hidden, .3),
            GATE_X[0]: normal(hidden, self.D), GATE_X[1]: zeros(hidden), GATE_X[2]: normal(self.L, hidden, .3),
            GATE_QX[0]: normal(hidden, self.L, .1), GATE_QX[1]: zeros(hidden), GATE_QX[2]: normal(self.L, hidden, .3),
            GATE_QX[3]: like_with_like * np.eye(self.P, dtype=np.float32).ravel(),
        }

    def metadata(self):
        h = self.hidden
        values = {
            "Pq": self.P, "Px": self.P, "dP": self.d, "Dq": self.D, "Dx": self.D, "temperature": self.temperature,
            "eps": EPS, "qnl": "swiglu", "inl": "swiglu", "query_hidden_dim": -1, "item_hidden_dim": -1,
            "gating_query_hidden_dim": h, "gating_item_hidden_dim": h, "gating_qi_hidden_dim": h,
            "gating_combination_type": "glu_silu", "dot_product_l2_norm": 1, "uid_hash": "[]",
        }
        return {"mol." + k: str(v) for k, v in values.items()} | {"sluice.similarity": "mol"}

    def side(self, x, proj_w, proj_b, gate):
        """Component embeddings and gate of one side, and the values that backward() needs."""
        raw = (x @ self.w[proj_w].T + self.w[proj_b]).reshape(len(x), self.P, self.d)
        norm = np.maximum(np.linalg.norm(raw, axis=2, keepdims=True), EPS)
        h = x @ self.w[gate[0]].T + self.w[gate[1]]
        sig = sigmoid(h)
        return {"x": x, "norm": norm, "hat": raw / norm, "h": h, "sig": sig, "gate": (h * sig) @ self.w[gate[2]].T}

    def query(self, x):
        return self.side(x, QUERY_W, QUERY_B, GATE_Q)

    def item(self, x):
        return self.side(x, ITEM_W, ITEM_B, GATE_X)

    def score(self, q, x, uniform=False):
        """phi [queries, items] of two sides. With `uniform` every logit counts the same, as if there were no gate."""
        return self.forward(q, x, uniform)["phi"]

    def forward(self, q, x, uniform=False):
        n, m, P, d = len(q["hat"]), len(x["hat"]), self.P, self.d
        dots = q["hat"].reshape(n * P, d) @ x["hat"].reshape(m * P, d).T
        logits = (dots.reshape(n, P, m, P).transpose(0, 2, 1, 3) / self.temperature).reshape(n * m, self.L)
        if uniform:
            return {"phi": logits.mean(axis=1).reshape(n, m)}
        h = logits @ self.w[GATE_QX[0]].T + self.w[GATE_QX[1]]
        sig = sigmoid(h)
        cross = (h * sig) @ self.w[GATE_QX[2]].T + self.w[GATE_QX[3]]
        z = (q["gate"][:, None] * x["gate"][None]).reshape(n * m, self.L) + cross
        zsig = sigmoid(z)
        s = z * zsig
        pi = np.exp(s - s.max(axis=1, keepdims=True))
        pi /= pi.sum(axis=1, keepdims=True)
        phi = (pi * logits).sum(axis=1)
        return {"logits": logits, "h": h, "sig": sig, "z": z, "zsig": zsig, "pi": pi, "phi": phi.reshape(n, m)}

    def backward(self, q, x, f, dphi):
        """Gradients of all tensors, from the gradient of phi."""
        n, m, P, d, L = len(q["hat"]), len(x["hat"]), self.P, self.d, self.L
        dphi, phi = dphi.reshape(-1, 1), f["phi"].reshape(-1, 1)
        g = {}
        weighted = dphi * f["pi"]
        dz = weighted * (f["logits"] - phi) * (f["zsig"] * (1 + f["z"] * (1 - f["zsig"])))
        act = f["h"] * f["sig"]
        g[GATE_QX[2]], g[GATE_QX[3]] = dz.T @ act, dz.sum(axis=0)
        dh = (dz @ self.w[GATE_QX[2]]) * (f["sig"] * (1 + f["h"] * (1 - f["sig"])))
        g[GATE_QX[0]], g[GATE_QX[1]] = dh.T @ f["logits"], dh.sum(axis=0)
        dlogits = (weighted + dh @ self.w[GATE_QX[0]]) / self.temperature
        dz = dz.reshape(n, m, L)
        dots = dlogits.reshape(n, m, P, P).transpose(0, 2, 1, 3).reshape(n * P, m * P)
        dq = (dots @ x["hat"].reshape(m * P, d)).reshape(n, P, d)
        dx = (dots.T @ q["hat"].reshape(n * P, d)).reshape(m, P, d)
        self.side_backward(g, q, dq, np.einsum("nml,ml->nl", dz, x["gate"]), QUERY_W, GATE_Q)
        self.side_backward(g, x, dx, np.einsum("nml,nl->ml", dz, q["gate"]), ITEM_W, GATE_X)
        return g

    def side_backward(self, g, s, dhat, dgate, proj_w, gate):
        draw = (dhat - s["hat"] * (dhat * s["hat"]).sum(axis=2, keepdims=True)) / s["norm"]
        g[proj_w] = draw.reshape(len(draw), -1).T @ s["x"] * self.trainable
        g[gate[2]] = dgate.T @ (s["h"] * s["sig"])
        dh = (dgate @ self.w[gate[2]]) * (s["sig"] * (1 + s["h"] * (1 - s["sig"])))
        g[gate[0]], g[gate[1]] = dh.T @ s["x"], dh.sum(axis=0)


class Adam:
    def __init__(self, weights, rates):
        self.weights, self.rates, self.t = weights, rates, 0
        self.m = {k: np.zeros_like(v) for k, v in weights.items()}
        self.v = {k: np.zeros_like(v) for k, v in weights.items()}

    def step(self, gradients, scale):
        self.t += 1
        for k, g in gradients.items():
            self.m[k] += 0.1 * (g - self.m[k])
            self.v[k] += 0.01 * (g * g - self.v[k])
            m, v = self.m[k] / (1 - 0.9 ** self.t), self.v[k] / (1 - 0.99 ** self.t)
            self.weights[k] -= (scale * self.rates(k) * m / (np.sqrt(v) + 1e-8)).astype(np.float32)


def train(model, x, pairs, weight, rng, steps, batch=128, extra=128, rates=(1e-3, 1e-2), report=None):
    """Train the model's weights with sampled softmax: for each pair (a, b), b must score above the b of other pairs and
    above random packages.

    rates   Adam's step sizes for the two projections and for the gate
    """
    adam = Adam(model.w, lambda k: rates[k not in (QUERY_W, ITEM_W)])
    order = rng.choice(len(pairs), (steps, batch), p=weight / weight.sum())
    loss = 0.0
    for step in range(steps):
        ab = pairs[order[step]]
        flip = rng.random(batch) < 0.5
        a, b = np.where(flip, ab[:, 1], ab[:, 0]), np.where(flip, ab[:, 0], ab[:, 1])
        candidates = np.concatenate([b, rng.integers(0, len(x), extra)])
        q, c = model.query(x[a]), model.item(x[candidates])
        f = model.forward(q, c)
        own = np.arange(batch)
        no_rival = (candidates[None] == a[:, None]) | (candidates[None] == b[:, None])
        no_rival[own, own] = False
        phi = np.where(no_rival, -1e9, f["phi"])
        p = np.exp(phi - phi.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        loss += (-np.log(p[own, own] + 1e-12).mean() - loss) * max(0.02, 1 / (step + 1))
        p[own, own] -= 1
        adam.step(model.backward(q, c, f, p / batch), 1 - 0.9 * step / steps)
        if report and (step + 1) % max(1, steps // 4) == 0:
            report(step + 1, loss)


def hit_rate(model, x, pairs, weight, rng, at, n_pairs=600, n_others=1000, uniform=False):
    """Share of pairs (a, b) for which b is among the best `at` of itself and `n_others` random packages."""
    chance = weight / weight.sum()
    a, b = pairs[rng.choice(len(pairs), min(n_pairs, len(pairs)), replace=False, p=chance)].T
    q, others = model.query(x[a]), model.item(x[rng.integers(0, len(x), n_others)])
    better = np.empty(len(a), np.int64)
    for start in range(0, len(a), 50):
        few = slice(start, start + 50)
        some = {k: v[few] for k, v in q.items()}
        own = np.diagonal(model.score(some, model.item(x[b[few]]), uniform))
        better[few] = (model.score(some, others, uniform) >= own[:, None]).sum(axis=1)
    return [float((better < k).mean()) for k in at]
