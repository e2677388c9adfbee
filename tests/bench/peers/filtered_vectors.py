# SPDX-License-Identifier: Apache-2.0
"""Peers for bilinear and dot under filters: Faiss's exact index with a bitmap, and a product in PyTorch with a mask.

Under a bilinear W, both search with q' = W^T q. The model of dot has no W.
"""
from common import load, load_model, serve
from filtering import with_bitmap, with_mask
from flat import index, items

import faiss
import torch

W = load_model().get("W")
columns = torch.from_numpy(items).T


def rotated(q):
    return q if W is None else q @ W


serve(load("queries"), {
    "faiss:IndexFlatIP": with_bitmap(lambda q, k, p: index.search(rotated(q), k, params=p)[1], faiss.SearchParameters),
    "torch:matmul": with_mask(lambda q: torch.from_numpy(rotated(q)) @ columns),
})
