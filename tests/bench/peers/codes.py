# SPDX-License-Identifier: Apache-2.0
"""The catalogue of recjpq that the benchmark wrote: codes, and centroids for Faiss's product quantisers."""
from common import load

import faiss
import numpy as np

SPLITS, SUBITEMS = 8, 256

faiss.omp_set_num_threads(1)
codes = load("codes")
centroids = np.ascontiguousarray(load("centroids")).reshape(SPLITS, SUBITEMS, -1)
dim = SPLITS * centroids.shape[2]


def use_centroids(index):
    """Give an index with a product quantiser our centroids, so that it needs no training."""
    faiss.copy_array_to_vector(centroids.ravel(), index.pq.centroids)
    index.is_trained = True
