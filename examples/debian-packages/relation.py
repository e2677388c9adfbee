# SPDX-License-Identifier: Apache-2.0
"""Pairs of packages that their maintainers relate. They are the training signal; the views contain none of it.

Two packages are related if they are alternatives in a dependency ("a | b"), provide the same virtual package, or stand
side by side in one Recommends or Suggests field. A package and what it recommends are not a pair: gimp suggests
gimp-help, which goes with it but is not similar to it.
"""

import numpy as np

from aptlists import alternatives

MAX_GROUP = 12


def groups(packages):
    providers = {}
    for name, record in packages.items():
        for group in alternatives(record.get("Provides")):
            providers.setdefault(group[0], []).append(name)
        for field in ("Depends", "Recommends", "Suggests"):
            clauses = alternatives(record.get(field))
            for clause in clauses:
                if len(clause) > 1:
                    yield clause, 1.0
            if field != "Depends":
                yield [clause[0] for clause in clauses], 0.5
    for virtual, names in providers.items():
        if virtual not in packages:
            yield names, 1.0


def pairs(packages):
    """Distinct pairs (a, b) with a < b, and their weights. Pairs of a large group weigh less."""
    index = {name: i for i, name in enumerate(packages)}
    weight = {}
    for names, w in groups(packages):
        members = sorted({index[n] for n in names if n in index})
        if not 2 <= len(members) <= MAX_GROUP:
            continue
        w = w / (len(members) - 1)
        for i, a in enumerate(members):
            for b in members[i + 1:]:
                weight[a, b] = weight.get((a, b), 0.0) + w
    ab = np.array(list(weight), np.int64)
    return ab, np.array(list(weight.values()), np.float32)
