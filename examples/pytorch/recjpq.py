# SPDX-License-Identifier: Apache-2.0
"""RecJPQ: an item is a few codes, and the model learns what each code means.

The codes come from the interactions, as in the paper: a truncated SVD of the matrix of queries and items gives each
item a coordinate for each split, and a split's items are cut into equal shares in the order of their coordinates.
"""

import torch
from torch import nn


def codes_of(interactions, splits, sub_items):
    """Return codes [items, splits] for a matrix [queries, items] of ones and zeros."""
    _, _, coordinates = torch.svd_lowrank(interactions, q=splits, niter=4)
    ranks = coordinates.argsort(dim=0).argsort(dim=0)
    return ranks * sub_items // len(coordinates)


class RecJpq(nn.Module):
    def __init__(self, query_dim, codes, sub_items, width=8, hidden=128):
        super().__init__()
        self.splits = codes.shape[1]
        self.register_buffer("codes", codes)
        self.centroids = nn.Parameter(torch.randn(self.splits, sub_items, width) / width)
        self.encoder = nn.Sequential(nn.Linear(query_dim, hidden), nn.SiLU(), nn.Linear(hidden, self.splits * width))

    def forward(self, queries):
        """Return the scores [queries, all items]."""
        return self.encoder(queries) @ self.item_vectors().T

    def item_vectors(self):
        return torch.cat([self.centroids[split][self.codes[:, split]] for split in range(self.splits)], dim=1)

    def metadata(self):
        return {"sluice.similarity": "recjpq"}
