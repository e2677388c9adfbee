#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a Mixture-of-Logits model and a RecJPQ model on planted data, and exports both.

    examples/pytorch/train.py FOLDER

It writes into the folder mol.safetensors and recjpq.safetensors, and catalogue.npz for stream.py: items, queries, and
what torch finds for them.
"""

import sys
from pathlib import Path

import numpy as np
import torch

import safetensors_file
from mol import Mol
from planted import ITEM_DIM, QUERY_DIM, Planted
from recjpq import RecJpq, codes_of

ITEMS, HELD_OUT, K = 2000, 200, 10
SPLITS, SUB_ITEMS = 8, 64
STEPS, BATCH, SAMPLED = 300, 64, 128


def train(name, parameters, loss_of):
    """Run Adam for STEPS steps."""
    adam = torch.optim.Adam(parameters, lr=5e-3)
    for step in range(STEPS):
        loss = loss_of()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 100 == 99:
            print(f"{name}: step {step + 1}, loss {loss.item():.3f}", flush=True)


def train_mol(data):
    """Sampled softmax: the item that a query likes best against the best of other queries and random items."""
    model = Mol(QUERY_DIM, ITEM_DIM)

    def loss():
        queries, truth = data.queries(BATCH)
        sampled = torch.randint(ITEMS, (SAMPLED,), generator=data.random)
        best = truth[:, sampled].argmax(dim=1)
        return torch.nn.functional.cross_entropy(model(queries, data.items[sampled]), best)
    train("mol", model.parameters(), loss)
    return model


def train_recjpq(data):
    """Softmax over all items, which costs little: their scores are sums of a few look-ups."""
    _, truth = data.queries(2 * ITEMS)
    liked = truth.topk(K, dim=1).indices
    model = RecJpq(QUERY_DIM, codes_of(torch.zeros_like(truth).scatter_(1, liked, 1.0), SPLITS, SUB_ITEMS), SUB_ITEMS)

    def loss():
        queries, truth = data.queries(BATCH)
        return torch.nn.functional.cross_entropy(model(queries), truth.argmax(dim=1))
    train("recjpq", model.parameters(), loss)
    return model


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)  # for tensors as small as these, more are slower
    data = Planted(ITEMS)
    mol, recjpq = train_mol(data).eval(), train_recjpq(data).eval()
    safetensors_file.write(folder / "mol.safetensors", mol.state_dict(), mol.metadata())
    safetensors_file.write(folder / "recjpq.safetensors", {"centroids": recjpq.centroids}, recjpq.metadata())
    with torch.no_grad():
        queries, truth = data.queries(HELD_OUT)
        np.savez(folder / "catalogue.npz", vectors=data.items.numpy(), codes=recjpq.codes.numpy(),
                 queries=queries.numpy(), encoded=recjpq.encoder(queries).numpy(), targets=truth.argmax(dim=1).numpy(),
                 mol=mol(queries, data.items).topk(K).indices.numpy(), recjpq=recjpq(queries).topk(K).indices.numpy())
    print(f"{folder}: two models, {ITEMS} items and {HELD_OUT} queries")


if __name__ == "__main__":
    main()
