#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a catalogue, two models and queries for Sluice from apt's package lists.

    prepare.py DIRECTORY            write packages-mol.safetensors, packages-pq.safetensors, packages-eval.safetensors,
                                    items.jsonl, queries.jsonl and summaries.tsv, unless all of them are newer than the
                                    lists and this program
    prepare.py --force DIRECTORY    write them in any case
"""

import argparse
import base64
import glob
import json
import os
import sys
import time

sys.dont_write_bytecode = True  # write no files but the outputs

import numpy as np

import aptlists
import mol
import pq
import relation
import safetensors
import views

SEED = 20240731
OUTPUTS = ("packages-mol.safetensors", "packages-pq.safetensors", "packages-eval.safetensors", "items.jsonl",
           "queries.jsonl", "summaries.tsv")
# Axes that the SVD of each view keeps; related_directions() reduces them to 64.
RANK = {"text": 256, "dependencies": 128, "tags": 96, "origin": 128}
DIMS = 64
DENSE_DIMS = 192
STEPS = 250
ASKED = ("gimp", "firefox-esr", "vlc", "vim", "postgresql", "nginx", "python3-numpy")
K = 8
EVAL_QUERIES = 256
STARTED = time.monotonic()


def say(text):
    print(f"{time.monotonic() - STARTED:6.1f} s  {text}", flush=True)


def up_to_date(directory):
    here = os.path.dirname(os.path.abspath(__file__))
    programs = [p for p in glob.glob(here + "/*.py") if not p.endswith(("/show.py", "/retrain.py"))]
    newest = max([os.stat(p).st_mtime for p in programs] + [aptlists.newest_list_time()])
    paths = [os.path.join(directory, name) for name in OUTPUTS]
    return all(os.path.exists(p) and os.stat(p).st_mtime > newest for p in paths)


def raw_vectors(packages, pairs, weight, rng):
    """The items' raw vectors x: four blocks of 64 numbers, one per view."""
    blocks = []
    for name, matrix in views.matrices(packages).items():
        missing = float((matrix.getnnz(axis=1) == 0).mean())
        say(f"view '{name}': {matrix.shape[1]:,} terms to {DIMS} numbers; {missing:.0%} of the packages lack it")
        blocks.append(views.embed(matrix, RANK[name], DIMS, pairs, weight, rng))
    return np.concatenate(blocks, axis=1)


def train_mol(x, pairs, weight, held, rng):
    model = mol.Mol([DIMS] * len(RANK), DIMS, rng=rng)

    def show(when, **kind):
        for name, which in (("training", ~held), ("held-out", held)):
            one, ten = mol.hit_rate(model, x, pairs[which], weight[which], np.random.default_rng(SEED), (1, 10), **kind)
            say(f"{when}: {name} pairs found first of 1,001: {one:5.1%}, among the first ten: {ten:5.1%}")

    show("before training, no gate ", uniform=True)
    show("before training, with gate")
    mol.train(model, x, pairs[~held], weight[~held], rng, STEPS, rates=(3e-4, 5e-3),
              report=lambda step, loss: say(f"step {step} of {STEPS}: loss {loss:.3f}"))
    show("after training, no gate  ", uniform=True)
    show("after training, with gate")
    return model


def dense_vectors(model, x, pairs, weight):
    """Unit vectors whose inner product is the similarity that the codes approximate."""
    components = model.item(x)["hat"].reshape(len(x), -1)
    nobody = np.zeros(len(x), bool)
    return views.unit_rows(views.related_directions(components, nobody, pairs, weight, DENSE_DIMS, 4.0, 0.25), nobody)


def half_floats(row):
    return {"type": "F16", "data": base64.b64encode(row.astype("<f2").tobytes()).decode()}


def plain(row):
    return [float(f"{v:.6g}") for v in row]


def write_items(path, packages, x, codes):
    """Write the items last, and rename the file when it is complete: if it exists, so do all others."""
    unfinished = path + ".part"
    with open(unfinished, "w", encoding="utf-8") as f:
        for (name, record), row, code in zip(packages.items(), x, codes.tolist()):
            value = {"parts": {"packages": {"vector": half_floats(row)}, "packages-pq": {"codes": code}},
                     "attributes": aptlists.attributes(record)}
            f.write(json.dumps({"key": name, "value": value}, separators=(",", ":")) + "\n")
    os.replace(unfinished, path)


def write_queries(path, names, x, dense):
    position = {name: i for i, name in enumerate(names)}
    with open(path, "w", encoding="utf-8") as f:
        for name in (n for n in ASKED if n in position):
            i = position[name]
            for space, tag, vector in (("packages", "mol", x[i]), ("packages-pq", "pq", pq.query_vector(dense[i]))):
                query = {"id": f"packages like {name} ({tag})", "space": space, "k": K, "vector": plain(vector),
                         "exclude": [name]}
                f.write(json.dumps(query, separators=(",", ":")) + "\n")


def draw_questions(pairs, weight, rng):
    """Pairs (query, target) of packages: no package is a query twice, and no target is a query."""
    asked, targets = [], []
    order = rng.choice(len(pairs), min(len(pairs), 20 * EVAL_QUERIES), replace=False, p=weight / weight.sum())
    for a, b in rng.permuted(pairs[order], axis=1):
        if len(asked) < EVAL_QUERIES and a not in asked and a not in targets and b not in asked:
            asked.append(a)
            targets.append(b)
    return np.array(asked, np.int64), np.array(targets, np.int64)


def write_eval(path, x, pairs, weight):
    """Write the input of `sluicectl eval` for packages-mol.safetensors: some packages are queries, all others items.
    The target of a query is the package that a held-out pair relates to it. Ids are row numbers."""
    asked, targets = draw_questions(pairs, weight, np.random.default_rng(SEED))
    items = np.setdiff1d(np.arange(len(x), dtype=np.int64), asked)
    vectors = x.astype(np.float16)  # exact: x has half-precision values
    safetensors.write(path, {"item_ids": items, "item_embeddings": vectors[items], "query_embeddings": vectors[asked],
                             "target_ids": targets}, {})


def show_neighbours(names, model, x, dense, codes, centroids):
    """Print a few results computed with numpy; Sluice must give the same."""
    position = {name: i for i, name in enumerate(names)}
    items = model.item(x)
    for name in (n for n in ASKED[:2] if n in position):
        i = position[name]
        for tag, scores in (("mol", model.score(model.query(x[i:i + 1]), items)[0]),
                            ("pq ", pq.score(pq.query_vector(dense[i]), codes, centroids))):
            best = [names[j] for j in np.argsort(-scores)[:K + 1] if j != i][:K]
            say(f"like {name} ({tag}): {', '.join(best)}")


def main():
    parser = argparse.ArgumentParser(description="Make a catalogue for Sluice from apt's package lists.")
    parser.add_argument("--force", action="store_true", help="write the outputs even if they are up to date")
    parser.add_argument("directory")
    arguments = parser.parse_args()
    directory = arguments.directory
    os.makedirs(directory, exist_ok=True)
    if not arguments.force and up_to_date(directory):
        say(f"{directory} is up to date")
        return
    rng = np.random.default_rng(SEED)

    packages = aptlists.read_packages()
    names = list(packages)
    say(f"{len(names):,} packages read")
    pairs, weight = relation.pairs(packages)
    held = rng.random(len(pairs)) < 0.1
    say(f"{len(pairs):,} pairs that maintainers relate, a tenth held out")

    x = raw_vectors(packages, pairs[~held], weight[~held], rng).astype(np.float16).astype(np.float32)
    say("training the projections and the gate")
    model = train_mol(x, pairs, weight, held, rng)
    dense = dense_vectors(model, x, pairs[~held], weight[~held])
    codes, centroids, lost = pq.encode(dense, rng)
    say(f"{pq.SPLITS} bytes of codes a package; they lose {lost:.0%} of the dense vectors' squared length")
    show_neighbours(names, model, x, dense, codes, centroids)

    paths = {name: os.path.join(directory, name) for name in OUTPUTS}
    if os.path.exists(paths["items.jsonl"]):
        os.remove(paths["items.jsonl"])
    safetensors.write(paths["packages-mol.safetensors"], model.w, model.metadata())
    safetensors.write(paths["packages-pq.safetensors"], {"centroids": centroids}, {"sluice.similarity": "recjpq"})
    with open(paths["summaries.tsv"], "w", encoding="utf-8") as f:
        f.writelines(f"{name}\t{aptlists.summary(record)}\n" for name, record in packages.items())
    write_eval(paths["packages-eval.safetensors"], x, pairs[held], weight[held])
    write_queries(paths["queries.jsonl"], names, x, dense)
    write_items(paths["items.jsonl"], packages, x, codes)
    say(f"written to {directory}: items.jsonl has {os.path.getsize(paths['items.jsonl']) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
