# SPDX-License-Identifier: Apache-2.0
"""Faiss as a peer for recjpq: its exact index on the decoded vectors, and its two product quantisers."""
from codes import SPLITS, centroids, codes, dim, use_centroids
from common import load, note, serve

import faiss
import numpy as np

CHUNK = 65536
TRAINING = 65536


def vectors(rows):
    """Return the decoded vectors of rows of codes: the concatenated centroids of their sub-items."""
    return np.concatenate([centroids[m, rows[:, m]] for m in range(SPLITS)], axis=1)


def flat():
    """Return an exact index of all decoded vectors. It takes 4 bytes x dim per item."""
    index = faiss.IndexFlatIP(dim)
    for begin in range(0, len(codes), CHUNK):
        index.add(vectors(codes[begin:begin + CHUNK]))
    return index


def pq():
    """Return a product quantiser with the same codes and centroids."""
    index = faiss.IndexPQ(dim, SPLITS, 8, faiss.METRIC_INNER_PRODUCT)
    use_centroids(index)
    faiss.copy_array_to_vector(np.ascontiguousarray(codes).ravel(), index.codes)
    index.ntotal = len(codes)
    return index


def fast_scan():
    """Return a quantiser with 16 codes of 4 bits, trained by Faiss: the same bytes per item, approximate scores."""
    index = faiss.IndexPQFastScan(dim, 16, 4, faiss.METRIC_INNER_PRODUCT)
    picked = np.random.default_rng(1).choice(len(codes), min(TRAINING, len(codes)), replace=False)
    index.train(vectors(codes[np.sort(picked)]))
    for begin in range(0, len(codes), CHUNK):
        index.add(vectors(codes[begin:begin + CHUNK]))
    return index


def searching(what, index):
    note(f"{what}: {index.ntotal} items")
    return lambda q, k: index.search(q, k)[1]


serve(load("queries"), {
    "faiss:IndexPQ": ("exact", searching("IndexPQ", pq())),
    "faiss:IndexPQFastScan": ("exact", searching("IndexPQFastScan", fast_scan())),
    "faiss:IndexFlatIP": ("exact", searching("IndexFlatIP", flat())),
})
