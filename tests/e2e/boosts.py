# SPDX-License-Identifier: Apache-2.0
"""Boosts as engine/boosts/boosts.h defines them: an evaluator in float64, and random boosts.

    Sums(query, items, types, now_ms)     what each item gets, of filters.Items
    Draw(rng, types).boosts()             random ones
"""

import numpy as np

import filters
import wire
from wire import pb

MAX = 1e30
# The error of 2^-x, as a fraction of the boost: the daemon's and the oracle's may differ in the last bits.
DECAY_ERROR = 1e-15
YEAR_MS = 365 * 24 * 3600 * 1000
NUMBERS = ("integer", "number", "time")


class Sums:
    """The sum of boosts of each item, and its largest error."""

    def __init__(self, query, items, types, now_ms):
        self.sums, self.errors = np.zeros(len(items)), np.zeros(len(items))
        for boost in query.boosts:
            with np.errstate(over="ignore"):
                values = self._values(boost, items, types, now_ms) * boost.weight
            given = np.where(np.isnan(values), 0, np.clip(values, -MAX, MAX))
            self.sums += given
            if types.get(boost.attribute) == "time":
                self.errors += DECAY_ERROR * np.abs(given)

    @staticmethod
    def _values(boost, items, types, now_ms):
        """Return what the weight is multiplied with: nan for items that get nothing."""
        if boost.filter:
            parameters = [wire.value_of(value) for value in boost.parameters]
            return np.where(items.admitted(boost.filter, parameters, types), 1, np.nan)
        values = np.array([item.get(boost.attribute, np.nan) for item in items], float)
        if types[boost.attribute] == "time":
            return 2.0 ** -(np.maximum(float(now_ms) - values, 0) / boost.half_life_ms)
        return values

    def scores(self, similarities, sign):
        """Return the smallest (sign -1) or largest (sign 1) scores that items of these similarities can have."""
        return ((similarities + self.sums) + sign * self.errors).astype(np.float32).astype(float)


class Draw:
    """Random boosts over the attributes. Most weights change the order of the hits; some decide it, some hardly do."""

    def __init__(self, rng, types=None):
        self.rng, self.types = rng, types or filters.TYPES
        self.filters = filters.Draw(rng, self.types)
        self.numbers = [name for name, kind in self.types.items() if kind in NUMBERS]

    def _pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def boosts(self, most=3):
        return [self._boost() for _ in range(self.rng.integers(most + 1))]

    def now(self):
        """Return a time around those of items, or far away."""
        near = filters.Draw.NOW + int(self.rng.integers(-2000, 2000)) * 60000
        return near if self.rng.random() < 0.9 else self._pick([0, 1, 2 ** 62, 2 ** 63 - 1])

    def add(self, query, most=3):
        """Give the query boosts and, sometimes, a time."""
        query.boosts.extend(self.boosts(most))
        if query.boosts and self.rng.random() < 0.5:
            query.now_unix_ms = self.now()
        return query

    def _weight(self, scale=1.0):
        """Return a weight: `scale` is what a usual value is multiplied with to be about 1."""
        roll = self.rng.random()
        if roll < 0.05:
            return self._pick([0.0, -0.0, 1e9, -1e9, 1e-300, 5e-324])
        return float(self.rng.choice([-1, 1, 1, 1]) * 10 ** self.rng.uniform(-4, 4) * scale)

    def _boost(self):
        if self.rng.random() < 0.3:
            text, parameters = self.filters.filter()
            return pb.Boost(weight=self._weight(), filter=text,
                            parameters=[wire.make_value(value) for value in parameters])
        name = self._pick(self.numbers)
        if self.types[name] == "time":
            return pb.Boost(weight=self._weight(), attribute=name, half_life_ms=self._half_life())
        return pb.Boost(weight=self._weight(self._pick([1, 0.05, 0.0005])), attribute=name)

    def _half_life(self):
        return max(1, int(10 ** self.rng.uniform(0, np.log10(10.0 * YEAR_MS)))) if self.rng.random() < 0.95 \
            else self._pick([1, 2 ** 63 - 1])
