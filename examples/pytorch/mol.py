# SPDX-License-Identifier: Apache-2.0
"""Mixture-of-Logits as docs/models.md defines it. The names of modules give tensors the names that Sluice reads."""

import torch
from torch import nn


class QueryEmbeddings(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self._query_emb_proj_module = nn.Sequential(nn.Dropout(0.0), nn.Linear(dim, out))


class ItemEmbeddings(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self._item_emb_proj_module = nn.Sequential(nn.Dropout(0.0), nn.Linear(dim, out))


class Gating(nn.Module):
    def __init__(self, query_dim, item_dim, pairs, hidden):
        super().__init__()
        self._query_only_partial_module = nn.Sequential(
            nn.Linear(query_dim, hidden), nn.SiLU(), nn.Linear(hidden, pairs, bias=False))
        self._item_only_partial_module = nn.Sequential(
            nn.Dropout(0.0), nn.Linear(item_dim, hidden), nn.SiLU(), nn.Linear(hidden, pairs, bias=False))
        self._qi_partial_module = nn.Sequential(
            nn.Dropout(0.0), nn.Linear(pairs, hidden), nn.SiLU(), nn.Linear(hidden, pairs))


class Mol(nn.Module):
    EPS = 1e-6

    def __init__(self, query_dim, item_dim, components=2, width=16, hidden=32, temperature=0.05):
        super().__init__()
        self.query_dim, self.item_dim, self.components, self.width = query_dim, item_dim, components, width
        self.hidden, self.temperature = hidden, temperature
        self._query_embeddings_fn = QueryEmbeddings(query_dim, components * width)
        self._item_embeddings_fn = ItemEmbeddings(item_dim, components * width)
        self._gating_fn = Gating(query_dim, item_dim, components ** 2, hidden)

    def forward(self, queries, items):
        """Return the scores [queries, items]."""
        f = self.normalised(self._query_embeddings_fn._query_emb_proj_module(queries))
        g = self.normalised(self._item_embeddings_fn._item_emb_proj_module(items))
        logits = torch.einsum("bnd,imd->binm", f, g).flatten(2) / self.temperature
        gating = self._gating_fn
        of_query, of_item = gating._query_only_partial_module(queries), gating._item_only_partial_module(items)
        z = of_query[:, None] * of_item[None] + gating._qi_partial_module(logits)
        return (torch.softmax(nn.functional.silu(z), dim=2) * logits).sum(dim=2)

    def normalised(self, flat):
        components = flat.view(len(flat), self.components, self.width)
        return components / components.norm(dim=2, keepdim=True).clamp_min(self.EPS)

    def metadata(self):
        """Return what the tensors do not show."""
        values = {"Pq": self.components, "Px": self.components, "dP": self.width, "Dq": self.query_dim,
                  "Dx": self.item_dim, "temperature": self.temperature, "eps": self.EPS, "uid_hash": "[]",
                  "query_hidden_dim": -1, "item_hidden_dim": -1, "gating_query_hidden_dim": self.hidden,
                  "gating_item_hidden_dim": self.hidden, "gating_qi_hidden_dim": self.hidden,
                  "gating_combination_type": "glu_silu", "dot_product_l2_norm": 1}
        return {"sluice.similarity": "mol", **{f"mol.{name}": str(value) for name, value in values.items()}}
