# SPDX-License-Identifier: Apache-2.0
"""Faiss's exact index over the vectors in items.npy."""
from common import load, note

import faiss
import numpy as np

CHUNK = 65536

faiss.omp_set_num_threads(1)
items = load("items")
index = faiss.IndexFlatIP(items.shape[1])
for begin in range(0, len(items), CHUNK):
    index.add(np.ascontiguousarray(items[begin:begin + CHUNK]))
note(f"IndexFlatIP: {index.ntotal} items")
