# SPDX-License-Identifier: Apache-2.0
"""Exact searches under filters, as methods for serve(): Faiss with bitmaps, PyTorch with a mask.

Query q of a batch has filter q % filters. Bitmaps and masks are made before a search is timed.
"""
import faiss
import numpy as np
import torch

torch.set_num_threads(1)
torch.set_grad_enabled(False)


def with_bitmap(search, parameters):
    """Faiss takes one selector a call, so the queries of each filter are searched together.

    search: (queries, k, parameters) -> ids    parameters: the index's class of search parameters
    """
    def prepare(absent):
        return [faiss.IDSelectorBitmap(np.packbits(row == 0, bitorder="little")) for row in absent]

    def run(q, k, selectors):
        ids = np.empty((len(q), k), np.int64)
        for i, selector in enumerate(selectors):
            # The parameters do not keep the selector alive in Faiss 1.7.3; the list does.
            ids[i::len(selectors)] = search(q[i::len(selectors)], k, parameters(sel=selector))
        return ids
    return "exact", run, prepare


def with_mask(score):
    """score: queries [batch, dim] -> scores, a tensor [batch, items]"""
    def prepare(absent):
        return torch.from_numpy(absent).bool()

    def run(q, k, mask):
        scores = score(q).view(-1, *mask.shape)
        best = scores.masked_fill_(mask, -torch.inf).topk(k)
        return best.indices.masked_fill_(best.values == -torch.inf, -1)
    return "exact", run, prepare
