# SPDX-License-Identifier: Apache-2.0
"""Peers for exact search by inner product: numpy (OpenBLAS sgemv) and Faiss's exact index."""
from common import best, load, note, serve

import faiss
import numpy as np

faiss.omp_set_num_threads(1)
items = load("items")
index = faiss.IndexFlatIP(items.shape[1])
for begin in range(0, len(items), 65536):
    index.add(np.ascontiguousarray(items[begin:begin + 65536]))
note(f"IndexFlatIP: {index.ntotal} items")

serve(load("queries"), {
    "numpy:sgemv": ("exact", lambda q, k: best(q @ items.T if len(q) > 1 else (items @ q[0])[None], k)),
    "faiss:IndexFlatIP": ("exact", lambda q, k: index.search(q, k)[1]),
})
