# SPDX-License-Identifier: Apache-2.0
"""Peers for recjpq under filters: Faiss's product quantiser with a bitmap, and PQTopK in PyTorch with a mask.

The IndexPQ of Faiss 1.7.3, Debian's, takes no selector. IndexIVFPQ does: with one list and without residuals, it adds
the same table entries for the same codes.
"""
from codes import SPLITS, centroids, codes, dim, use_centroids
from common import load, note, serve
from filtering import with_bitmap, with_mask

import faiss
import numpy as np
import torch


def one_list():
    """Return an IndexIVFPQ that has all codes in its only list."""
    quantizer = faiss.IndexFlatIP(dim)
    quantizer.add(np.zeros((1, dim), np.float32))
    index = faiss.IndexIVFPQ(quantizer, dim, 1, SPLITS, 8, faiss.METRIC_INNER_PRODUCT)
    index.by_residual = False
    use_centroids(index)
    ids = np.arange(len(codes))
    index.invlists.add_entries(0, len(codes), faiss.swig_ptr(ids), faiss.swig_ptr(np.ascontiguousarray(codes)))
    index.ntotal = len(codes)
    return index


index = one_list()
note(f"IndexIVFPQ: {index.ntotal} items")
subitems = torch.from_numpy(centroids)
columns = torch.from_numpy(np.ascontiguousarray(codes.T).astype(np.int32))  # [splits, items]


def pqtopk(q):
    tables = torch.einsum("bmd,msd->bms", torch.from_numpy(q).view(len(q), SPLITS, -1), subitems)
    return sum(tables[:, m].index_select(1, columns[m]) for m in range(SPLITS))


serve(load("queries"), {
    "faiss:IndexIVFPQ": with_bitmap(lambda q, k, p: index.search(q, k, params=p)[1], faiss.SearchParametersIVF),
    "torch:pqtopk": with_mask(pqtopk),
})
