# SPDX-License-Identifier: Apache-2.0
"""RecJPQ codes and centroids: an item has eight codes of one byte each in place of a vector.

RecJPQ cuts one SVD component per split into 256 quantiles. Eight numbers are too few to tell 60,000 packages from their
neighbours. So here each split clusters the residual of the splits before it (residual quantisation, k-means). A
package's dense vector is then nearly the sum of its eight centroids. Its score is a sum over the splits. It is nearly
the dense inner product if every split gets the same query: the query vector is the dense one, repeated eight times.
"""

import numpy as np
import scipy.sparse as sp

SPLITS, SUB_ITEMS = 8, 256


def nearest(points, centroids):
    return (points @ centroids.T - 0.5 * (centroids ** 2).sum(axis=1)).argmax(axis=1)


def means(points, code, fallback):
    """Mean of each sub-item's members, which is the least-squares centroid."""
    member = sp.csr_matrix((np.ones(len(code), np.float32), code, np.arange(len(code) + 1)), (len(code), SUB_ITEMS))
    count = np.asarray(member.sum(axis=0)).ravel()[:, None]
    return np.where(count > 0, member.T @ points / np.maximum(count, 1), fallback).astype(np.float32)


def cluster(points, rng, rounds=6, sample=8192):
    """k-means on a sample."""
    points = points[rng.choice(len(points), min(sample, len(points)), replace=False)]
    centroids = points[rng.choice(len(points), SUB_ITEMS, replace=False)]
    for _ in range(rounds):
        centroids = means(points, nearest(points, centroids), centroids)
    return centroids


def encode(dense, rng):
    """codes [items, 8] and centroids [8, 256, d] for the rows of `dense`, and the share of squared length lost."""
    codes = np.empty((len(dense), SPLITS), np.uint8)
    centroids = np.empty((SPLITS, SUB_ITEMS, dense.shape[1]), np.float32)
    rest = dense.copy()
    for m in range(SPLITS):
        seeds = cluster(rest, rng)
        codes[:, m] = nearest(rest, seeds)
        centroids[m] = means(rest, codes[:, m], seeds)
        rest -= centroids[m][codes[:, m]]
    return codes, centroids, float((rest ** 2).sum() / (dense ** 2).sum())


def query_vector(dense):
    return np.tile(dense, SPLITS)


def score(query, codes, centroids):
    """Scores of all items for one query vector [8 * d]: a table of 256 numbers per split, one look-up per code."""
    table = np.einsum("mbw,mw->mb", centroids, query.reshape(SPLITS, -1))
    return table[np.arange(SPLITS), codes].sum(axis=1)
