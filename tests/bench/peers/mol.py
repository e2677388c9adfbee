# SPDX-License-Identifier: Apache-2.0
"""Mixture-of-Logits in eager PyTorch, written from the paper's formulas (section 3.1, appendix A).

As in the authors' implementation, scoring projects the items from raw vectors each time. The components and averages of
all items are precomputed for the candidate stages. Brute force scores the items in chunks, because one call would need
33 GB.
"""
import common

import torch
import torch.nn.functional as F

PQ, PX, DIM, LOGITS, GLU = 8, 8, 32, 64, 512
TAU, EPS = 0.05, 1e-6
CHUNK = 67404  # items scored at a time: a tenth of Books, about 5 GB

torch.set_num_threads(1)
torch.set_grad_enabled(False)
W = {name: torch.tensor(value) for name, value in common.load_model().items()}
QUERY, ITEM, GATE = ("_query_embeddings_fn._query_emb_proj_module.", "_item_embeddings_fn._item_emb_proj_module.",
                     "_gating_fn._%s_partial_module.")
items = torch.tensor(common.load("items"))


def normalize(v):
    return v / v.norm(dim=-1, keepdim=True).clamp(min=EPS)


def query_components(q):
    h = q @ W[QUERY + "1._w"] + W[QUERY + "1._b"]
    h = F.gelu(h[:, :GLU]) * h[:, GLU:]
    return normalize(F.linear(h, W[QUERY + "2.weight"], W[QUERY + "2.bias"]).view(-1, PQ, DIM))


def item_components(x):
    return normalize(F.linear(x, W[ITEM + "1.weight"], W[ITEM + "1.bias"]).view(*x.shape[:-1], PX, DIM))


def mlp(x, part, first, second):
    prefix = GATE % part
    hidden = F.silu(F.linear(x, W[f"{prefix}{first}.weight"], W[f"{prefix}{first}.bias"]))
    return F.linear(hidden, W[f"{prefix}{second}.weight"], W.get(f"{prefix}{second}.bias"))


def score(q, f, x):
    """Return phi for queries q [B, D] and items x: shared [1, X, D], or one set per query [B, X, D]."""
    g = item_components(x)
    if x.shape[0] == 1:
        logits = torch.einsum("bnd,xmd->bxnm", f, g[0])
    else:
        logits = torch.einsum("bnd,bxmd->bxnm", f, g)
    logits = logits.reshape(*logits.shape[:2], LOGITS) / TAU
    z = mlp(q, "query_only", 0, 2).unsqueeze(1) * mlp(x, "item_only", 1, 3) + mlp(logits, "qi", 1, 3)
    return (F.softmax(z * torch.sigmoid(z), -1) * logits).sum(-1)


common.note("computing the components and averages of all items")
components = torch.cat([item_components(chunk) for chunk in items.split(65536)])
averages = components.mean(1)
by_component = components.permute(1, 2, 0).contiguous()  # [P_x, d, N]
del components


def brute_force(q, k):
    q = torch.from_numpy(q)
    f = query_components(q)
    scores, ids = [], []
    for begin in range(0, len(items), CHUNK):
        top = torch.topk(score(q, f, items[None, begin:begin + CHUNK]), min(k, len(items) - begin))
        scores.append(top.values)
        ids.append(top.indices + begin)
    order = torch.topk(torch.cat(scores, 1), k).indices
    return torch.cat(ids, 1).gather(1, order)


def average_candidates(f, n):
    return torch.topk(f.sum(1) @ averages.T, min(n, len(items)), sorted=False).indices


def list_candidates(f, n):
    """Return the n best items for each pair of components.

    It handles one item component at a time, because all pairs at once would need 40 GB.
    """
    lists = []
    for m in range(PX):
        dots = f.reshape(-1, DIM) @ by_component[m]
        lists.append(torch.topk(dots, min(n, len(items)), sorted=False).indices.view(len(f), -1))
    return torch.cat(lists, 1)


def rescored(q, f, candidates, k):
    """Score all candidates, mask duplicates afterwards as the authors' code does, and return the k best."""
    candidates = candidates.sort(1).values
    phi = score(q, f, items[candidates])
    phi[:, 1:][candidates[:, 1:] == candidates[:, :-1]] = -32767.0
    return candidates.gather(1, torch.topk(phi, k).indices)


def average(n):
    def search(q, k):
        q = torch.from_numpy(q)
        f = query_components(q)
        candidates = average_candidates(f, n)
        return candidates.gather(1, torch.topk(score(q, f, items[candidates]), k).indices)
    return search


def combined(n_list, n_average):
    def search(q, k):
        q = torch.from_numpy(q)
        f = query_components(q)
        return rescored(q, f, torch.cat([list_candidates(f, n_list), average_candidates(f, n_average)], 1), k)
    return search


common.serve(common.load("queries"), {
    "torch:average(4000)": ("average(4000)", average(4000)),
    "torch:combined(100,1000)": ("combined(100,1000)", combined(100, 1000)),
    "torch:brute_force": ("exact", brute_force),
})
