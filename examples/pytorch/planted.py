# SPDX-License-Identifier: Apache-2.0
"""Data with a known truth, for two models to find: every item has two sides, and a query looks at one of them.

An item is a vector of two halves. A query is a wish and the number of the half that it is about. Which half counts is
known only to a query, so that no single inner product of the two vectors gives the truth.
"""

import torch

HALF = 8
ITEM_DIM, QUERY_DIM = 2 * HALF, HALF + 2
NOISE = 0.5


class Planted:
    def __init__(self, n_items, seed=1):
        self.random = torch.Generator().manual_seed(seed)
        self.items = self.normal(n_items, ITEM_DIM)

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.random)

    def queries(self, n):
        """Return queries [n, QUERY_DIM] and the truth [n, items]: how much each query likes each item."""
        wish, side = self.normal(n, HALF), torch.randint(2, (n,), generator=self.random)
        truth = torch.where(side[:, None] == 0, wish @ self.items[:, :HALF].T, wish @ self.items[:, HALF:].T)
        return torch.cat([wish, torch.eye(2)[side]], dim=1), truth + NOISE * self.normal(*truth.shape)
