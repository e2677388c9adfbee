#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams what train.py made into Sluice, queries it, and compares the answers with torch's.

    examples/pytorch/stream.py FOLDER [HOST:PORT]     the address of Kafka; default: 127.0.0.1:9092

It needs the package of clients/python, not torch.
"""

import sys
from pathlib import Path

import numpy as np
from sluice_client import Catalogue, Queries, Query, codes

PATIENCE_S = 120


def write(catalogue, data):
    """Write every item with a part for each model. Return the positions after them."""
    for row, (vector, code) in enumerate(zip(data["vectors"], data["codes"])):
        catalogue.put(str(row), {"mol": vector, "recjpq": codes(code)})
    return catalogue.flush()


def ask(queries, space, vectors, k, written):
    """Send all queries at once, and return their answers."""
    futures = [queries.submit(Query(space, k, vector, at_least=written), PATIENCE_S) for vector in vectors]
    return [future.result() for future in futures]


def report(space, answers, expected, targets):
    found = [[int(hit.key) for hit in answer.hits] for answer in answers]
    k = expected.shape[1]
    recall = np.mean([len(set(row) & set(due)) / k for row, due in zip(found, expected)])
    hit_rate = np.mean([target in row for row, target in zip(found, targets)])
    proven = np.mean([answer.exact for answer in answers])
    scored = np.mean([answer.message.counts.scored for answer in answers])
    print(f"{space}: recall@{k} against torch {recall:.4f}, HR@{k} {hit_rate:.3f}, proven exact {proven:.2f}, "
          f"scored in full {scored:.0f} of {answers[0].message.counts.items}")


def main():
    data = np.load(Path(sys.argv[1]) / "catalogue.npz")
    kafka = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1:9092"
    with Catalogue(kafka) as catalogue, Queries(kafka) as queries:
        written = write(catalogue, data)
        for space, vectors in (("mol", data["queries"]), ("recjpq", data["encoded"])):
            expected = data[space]
            report(space, ask(queries, space, vectors, expected.shape[1], written), expected, data["targets"])


if __name__ == "__main__":
    main()
