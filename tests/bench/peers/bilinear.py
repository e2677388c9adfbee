# SPDX-License-Identifier: Apache-2.0
"""Peers for exact search under a bilinear W: numpy (OpenBLAS sgemv) and Faiss's exact index, both on q' = W^T q."""
from common import best, load, load_model, serve
from flat import index, items

W = load_model()["W"]

serve(load("queries"), {
    "numpy:sgemv": ("exact", lambda q, k: best((q @ W) @ items.T if len(q) > 1 else (items @ (q[0] @ W))[None], k)),
    "faiss:IndexFlatIP": ("exact", lambda q, k: index.search(q @ W, k)[1]),
})
