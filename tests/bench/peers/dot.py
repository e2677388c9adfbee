# SPDX-License-Identifier: Apache-2.0
"""Peers for exact search by inner product: numpy (OpenBLAS sgemv) and Faiss's exact index."""
from common import best, load, serve
from flat import index, items

serve(load("queries"), {
    "numpy:sgemv": ("exact", lambda q, k: best(q @ items.T if len(q) > 1 else (items @ q[0])[None], k)),
    "faiss:IndexFlatIP": ("exact", lambda q, k: index.search(q, k)[1]),
})
