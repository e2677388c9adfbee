# SPDX-License-Identifier: Apache-2.0
"""Four views of a package. Each is a sparse matrix, reduced to a short dense vector per package by truncated SVD."""

import re

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from aptlists import alternatives

STOP = set("a an and any are as at be by can for from has in into is it its of on or s so that the this to using with "
           "which you your".split())
WORD = re.compile(r"[a-z][a-z+#]*[a-z+#]|[a-z](?=\b)")


def words(text):
    out = []
    for w in WORD.findall(text.lower()):
        if w in STOP:
            continue
        if len(w) > 4 and w.endswith("s") and not w.endswith("ss"):
            w = w[:-1]
        out.append(w)
    return out


def name_words(name):
    out = []
    for w in words(name):
        out.append(w)
        if w.startswith("lib") and len(w) > 5:
            out.append(w[3:])
    return out


def text_terms(name, record):
    """Words of the summary count most, then those of the name, then those of the long description if there is one."""
    terms = {}
    summary = words(record.get("Description", ""))
    for w in summary:
        terms[w] = terms.get(w, 0.0) + 1.0
    for a, b in zip(summary, summary[1:]):
        terms[a + " " + b] = 0.7
    for w in name_words(name):
        terms[w] = terms.get(w, 0.0) + 0.3
    for w in words(record.get("Long", "")):
        terms[w] = terms.get(w, 0.0) + 0.25
    return terms


def needs(record):
    """Names of the packages that a package needs. Only the first of several alternatives counts: alternatives are the
    training signal (relation.py) and must not be seen here."""
    groups = alternatives(record.get("Depends")) + alternatives(record.get("Pre-Depends"))
    return {group[0] for group in groups}


def dependency_terms(needed, needed_by):
    return {"needs " + n: 1.0 for n in needed} | {"needed by " + n: 0.7 for n in needed_by}


def tag_terms(record):
    tags = [t.strip() for t in record.get("Tag", "").replace("\n", " ").split(",")]
    return {t: 1.0 for t in tags if t and not t.endswith("TODO")}


def origin_terms(name, record):
    """Where a package comes from: section, maintainer, home page, and the end of its name."""
    terms = {"section " + record.get("Section", ""): 1.5}
    terms["maintainer " + record.get("Maintainer", "").partition("<")[0].strip()] = 0.5
    parts = name.split("-")
    if len(parts) > 1:
        terms["ends " + re.sub(r"[0-9.]+$", "", parts[-1])] = 0.7
    host = re.sub(r"^\w+://(www\.)?", "", record.get("Homepage", "")).partition("/")[0]
    if host:
        terms["host " + host] = 0.5
    return terms


def tfidf(rows, min_df=3):
    """Sparse row-normalised tf-idf matrix of a list of {term: weight}."""
    count = {}
    for terms in rows:
        for t in terms:
            count[t] = count.get(t, 0) + 1
    column = {t: i for i, t in enumerate(sorted(t for t, c in count.items() if c >= min_df))}
    idf = np.empty(len(column), np.float32)
    for t, i in column.items():
        idf[i] = np.log(len(rows) / count[t])
    indptr, indices, data = [0], [], []
    for terms in rows:
        for t, w in terms.items():
            i = column.get(t)
            if i is not None:
                indices.append(i)
                data.append(w)
        indptr.append(len(indices))
    data = np.asarray(data, np.float32) * idf[indices]
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(rows), len(column)), dtype=np.float32)
    norm = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.diags((1 / np.maximum(norm, 1e-9)).astype(np.float32)) @ matrix


def orthonormal(rows):
    """Orthonormal basis of the columns of a tall matrix, through its small Gram matrix."""
    values, vectors = np.linalg.eigh(rows.T.astype(np.float32) @ rows)
    keep = values > values[-1] * 1e-6
    return rows @ (vectors[:, keep] / np.sqrt(values[keep]))


def truncated_svd(matrix, rank, rng, rounds=3):
    """Randomised SVD (Halko et al.): U * S of the best rank-`rank` approximation."""
    transposed = matrix.T.tocsr()
    basis = matrix @ rng.standard_normal((matrix.shape[1], rank + 16)).astype(np.float32)
    for _ in range(rounds):
        basis = matrix @ (transposed @ orthonormal(basis))
    basis = orthonormal(basis)
    small = transposed @ basis
    values, vectors = np.linalg.eigh(small.T @ small)
    best = np.argsort(-values)[:rank]
    return basis @ (vectors[:, best] * np.sqrt(np.maximum(values[best], 0)))


def unit_rows(dense, missing):
    """Rows of length one; rows of packages that lack this view are zero."""
    dense = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-9)
    dense[missing] = 0
    return dense.astype(np.float32)


def related_directions(dense, missing, pairs, weight, dims, ridge=0.03, power=0.0):
    """Fisher's criterion: the `dims` directions in which related packages differ least, compared with all packages.

    ridge  share of the mean variance that is added to every direction, against overfitting
    power  0: all directions weigh the same; larger: better directions weigh more
    """
    use = ~(missing[pairs[:, 0]] | missing[pairs[:, 1]])
    difference = dense[pairs[use, 0]] - dense[pairs[use, 1]]
    within = (difference * weight[use, None]).T @ difference / weight[use].sum()
    within += ridge * np.trace(within) / len(within) * np.eye(len(within), dtype=np.float32)
    centred = dense - dense[~missing].mean(axis=0)
    total = centred[~missing].T @ centred[~missing] / (~missing).sum()
    last = len(within) - 1
    ratio, directions = scipy.linalg.eigh(total, within, subset_by_index=[last + 1 - dims, last])
    out = centred @ np.ascontiguousarray(directions[:, ::-1])
    return out / out[~missing].std(axis=0) * ratio[::-1] ** power


def embed(matrix, rank, dims, pairs, weight, rng):
    """Reduce a view to unit rows of `dims` numbers: SVD to `rank` axes, then directions shared by related packages."""
    missing = matrix.getnnz(axis=1) == 0
    dense = unit_rows(truncated_svd(matrix, rank, rng), missing)
    return unit_rows(related_directions(dense, missing, pairs, weight, dims), missing)


def matrices(packages):
    needed = {name: needs(record) for name, record in packages.items()}
    needed_by = {}
    for name, others in needed.items():
        for other in others:
            needed_by.setdefault(other, []).append(name)
    return {
        "text": tfidf([text_terms(n, r) for n, r in packages.items()]),
        "dependencies": tfidf([dependency_terms(needed[n], needed_by.get(n, ())) for n in packages]),
        "tags": tfidf([tag_terms(r) for r in packages.values()]),
        "origin": tfidf([origin_terms(n, r) for n, r in packages.items()]),
    }
