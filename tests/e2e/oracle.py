# SPDX-License-Identifier: Apache-2.0
"""Check the daemon's answers against a reference.

The oracle replays the catalogue log up to an answer's watermark, and computes the scores in float64.

    oracle = Oracle({"movies": models.load(path)}, {"country": "keyword", "ends": "time"}, Lifetimes(expires="ends"))
    oracle.feed(records)                 the catalogue topic, in the order of its offsets
    oracle.check(query, answer)          raises AssertionError if the answer is wrong
"""

import collections
from dataclasses import dataclass, field

import numpy as np

import boosts
import filters
import models
import wire

KEY_MAX = 256
# Maximum score error, as a fraction of the range of the scores: the definition of "exact".
TOLERANCE = 1e-5
DELETE = "delete"


@dataclass
class Record:
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: list = field(default_factory=list)


@dataclass
class Kept:
    """An item, or the change of one: rows in the models by space, and attributes, where None removes one."""
    parts: dict
    attributes: dict

    def changed(self, change):
        """Return a new item: earlier states still refer to this one."""
        attributes = {**self.attributes, **change.attributes}
        return Kept({**self.parts, **change.parts}, {name: v for name, v in attributes.items() if v is not None})


@dataclass
class Lifetimes:
    """The attributes that say when an item's life begins and ends."""
    not_before: str = None
    expires: str = None

    def is_alive(self, attributes, time_ms):
        return (attributes.get(self.not_before, time_ms) <= time_ms
                and time_ms < attributes.get(self.expires, time_ms + 1))

    def moments(self, attributes):
        """Return the times at which an item with these attributes may change."""
        return [attributes[name] for name in (self.not_before, self.expires) if name in attributes]


class Space:
    """The items of one space in one state: their keys in ascending order, their rows in the model, their attributes."""

    def __init__(self, items, name):
        held = sorted((key, item.parts[name], item) for key, item in items.items() if name in item.parts)
        self.keys = [key for key, _, _ in held]
        self.rows = np.array([row for _, row, _ in held], np.intp)
        self.attributes = filters.Items(item.attributes for _, _, item in held)
        self.index = {key: i for i, key in enumerate(self.keys)}


class State:
    def __init__(self, items):
        self.items = items
        self.spaces = {}

    def space(self, name):
        if name not in self.spaces:
            self.spaces[name] = Space(self.items, name)
        return self.spaces[name]


class Scores:
    """What the daemon may score each item, from `least` to `most`. Those of equal `ids` have equal scores in any
    arithmetic. sums: the boosts; None: there are none."""

    def __init__(self, similarities, slack, rows, sums):
        self.sums, self.ids = sums, rows
        self.least, self.most = similarities - slack, similarities + slack
        if sums:
            self.least, self.most = sums.scores(self.least, -1), sums.scores(self.most, 1)
            self.ids = np.unique(np.stack([rows, sums.sums]), axis=1, return_inverse=True)[1].reshape(len(rows))


class Partition:
    """The changes of one partition, and the items that result from its offsets below `position`."""

    def __init__(self):
        self.changes = []  # (offset, key, DELETE or Kept)
        self.rewind()

    def rewind(self):
        self.done, self.position, self.items = 0, 0, {}

    def move_to(self, next_offset):
        if next_offset < self.position:
            self.rewind()
        while self.done < len(self.changes) and self.changes[self.done][0] < next_offset:
            _, key, change = self.changes[self.done]
            if change is DELETE:
                self.items.pop(key, None)
            else:
                self.items[key] = self.items.get(key, Kept({}, {})).changed(change)
            self.done += 1
        self.position = next_offset


class Oracle:
    def __init__(self, spaces, types=None, lifetimes=None):
        self.spaces = spaces
        self.types = types or {}  # of the attributes
        self.lifetimes = lifetimes
        self.partitions = {}
        self.rejected = {}  # (partition, offset) -> reason
        self.ends = {}
        self.cached = (None, None)
        self.roots = {}  # {space: the space whose parts it uses}
        self.worst_error = 0.0
        self.checked = 0
        # If true, an approximate method may search all items, as a GPU may. Its answer must then be exact and say so.
        self.may_search_more = False

    # ------------------------------------------------------------------------------------------------ the log

    def feed(self, records):
        for record in records:
            partition = self.partitions.setdefault(record.partition, Partition())
            self.ends[record.partition] = record.offset + 1
            try:
                partition.changes.append((record.offset, record.key, self._change(record)))
            except wire.WireError as reason:
                self.rejected[record.partition, record.offset] = str(reason)

    def _change(self, record):
        if not record.key or len(record.key) > KEY_MAX:
            raise wire.WireError("the key is missing or not of 1 to 256 bytes")
        if record.value is None:
            return DELETE
        if not record.value:
            raise wire.WireError("the value is empty")
        item = wire.decode_item(record.value, record.headers)
        if not item.parts and not item.attributes:
            raise wire.WireError("the item has no parts and no attributes")
        unknown = set(item.parts) - set(self.spaces)
        if unknown:
            raise wire.WireError(f"unknown spaces {sorted(unknown)}")
        attributes = {name: wire.value_of(value) for name, value in item.attributes.items() if name in self.types}
        for name, value in attributes.items():
            if value is not None and not filters.is_of(self.types[name], value):
                raise wire.WireError(f"{name} is {value!r}")
        return Kept(self._rows(item.parts), attributes)

    def _rows(self, parts):
        """Return the rows of the parts, by space: those that share a part have one each."""
        rows = {}
        for name, part in parts.items():
            root = self.roots.get(name, name)
            for user in [root, *(space for space, other in self.roots.items() if other == root)]:
                rows[user] = self.spaces[user].row_of(part)
        return rows

    def end(self):
        """Return the watermark after all the records that were fed."""
        return dict(self.ends)

    def state(self, watermark):
        key = tuple(sorted((p, n) for p, n in watermark.items() if n > 0))
        if self.cached[0] != key:
            merged = {}
            for number, partition in self.partitions.items():
                partition.move_to(watermark.get(number, 0))
                twice = merged.keys() & partition.items.keys()
                assert not twice, f"a test wrote the key {twice.pop()!r} to two partitions"
                merged.update(partition.items)
            self.cached = (key, State(merged))
        return self.cached[1]

    # --------------------------------------------------------------------------------------------- the answer

    def check_error(self, query, answer, *codes):
        assert answer.id == query.id, f"the answer to {query.id} has the id {answer.id!r}"
        got = wire.pb.Error.Code.Name(answer.error.code)
        assert answer.HasField("error"), f"no error, but one of {codes} was due; {len(answer.hits)} hits"
        assert got in codes, f"error {got} ({answer.error.message}), not one of {codes}"
        assert answer.error.message, f"the error {got} has no message"
        assert not answer.hits, "an error and hits in one answer"

    def check(self, query, answer, asked_ms=None):
        """asked_ms: the timestamp of the query's record; None: unknown."""
        try:
            self._check(query, answer, asked_ms)
        except AssertionError as error:
            raise AssertionError(
                f"{error}\nquery {query.id}: space {query.space} method '{query.method}' k {query.k} "
                f"exclude {len(query.exclude)} at_least {len(query.at_least)} "
                f"max_per {query.max_per.attribute} {query.max_per.n} attributes {list(query.attributes)}\n"
                f"filter {query.filter!r} parameters {[wire.value_of(value) for value in query.parameters]}\n"
                f"boosts {wire.boosts_json(query)} now {answer.now_unix_ms}\n"
                f"answer: method '{answer.method}' hits {len(answer.hits)} epoch {answer.epoch} "
                f"time {answer.time_unix_ms} watermark { {p.partition: p.next for p in answer.watermark} } receipt exact {answer.receipt.exact} "
                f"bound {answer.receipt.bound if answer.receipt.HasField('bound') else None} "
                f"counts {answer.counts.items}/{answer.counts.scored}/{answer.counts.candidates}") from None
        self.checked += 1

    def _check(self, query, answer, asked_ms):
        assert not answer.HasField("error"), \
            f"error {wire.pb.Error.Code.Name(answer.error.code)}: {answer.error.message}"
        assert (answer.id, answer.space) == (query.id, query.space), f"it answers {answer.id!r} in {answer.space!r}"
        model = self.spaces[query.space]
        state = self.state(self._watermark(query, answer))
        space = state.space(query.space)
        similarities = model.scores(query, space.rows) if space.keys else np.empty(0)
        admitted = self._find_admitted(query, answer, space)

        name, arguments = models.parse_method(query.method)
        is_exact = name in model.exact_methods
        # The range includes 0, because a single item would have no range of its own.
        slack = TOLERANCE * (similarities.max(initial=0) - similarities.min(initial=0))
        self._check_method(model, query, answer)
        hits = self._find_hits(space, admitted, answer)
        self._check_attributes(query, space, hits, answer)
        self._check_now(query, answer, asked_ms)
        sums = boosts.Sums(query, space.attributes, self.types, answer.now_unix_ms) if query.boosts else None
        scores = Scores(similarities, slack, space.rows, sums)
        self._check_similarities(similarities, sums, hits, answer, slack)
        self._check_scores(scores, hits, answer)
        left = admitted.copy()
        left[hits] = False
        if query.max_per.n:
            left &= ~self._find_crowded_out(query, space, scores, hits, left, answer)

        if is_exact:
            due = min(query.k, self._n_possible(query, space, admitted))
            assert len(hits) == due, f"{len(hits)} hits, {due} were due"
            assert answer.receipt.exact, "an exact method whose receipt is not exact"
        elif query.max_per.n or query.boosts:
            pass  # its candidates are those of several rounds
        elif not (self.may_search_more and answer.receipt.exact and len(hits) == min(query.k, int(admitted.sum()))):
            self._check_candidates(model, query, answer, space, similarities, admitted, hits, slack)
        if answer.receipt.exact:
            self._check_best(space, scores, hits, left, answer)
        self._check_bound(query, scores, hits, left, answer)
        if left.any() and not query.max_per.n and (answer.receipt.exact or not query.boosts):
            self._check_ceiling(model, query, answer, space, admitted, left, slack)
        self._check_counts(space, admitted, answer)
        self._check_explanations(query, state, space, admitted, scores, answer)

    def _find_admitted(self, query, answer, space):
        """Return a mask of the items that the query admits and that are alive at the answer's time."""
        parameters = [wire.value_of(value) for value in query.parameters]
        admitted = space.attributes.admitted(query.filter, parameters, self.types).copy()
        assert answer.HasField("time_unix_ms") == bool(self.lifetimes), "the answer has a time just with lifetimes"
        if self.lifetimes:
            admitted &= np.array([self.lifetimes.is_alive(attributes, answer.time_unix_ms)
                                  for attributes in space.attributes], bool)
        for key in query.exclude:
            if key in space.index:
                admitted[space.index[key]] = False
        return admitted

    # ---- at most n of a value

    @staticmethod
    def _values(query, space):
        return [attributes.get(query.max_per.attribute) for attributes in space.attributes]

    def _n_possible(self, query, space, admitted):
        """Return how many items can be hits."""
        if not query.max_per.n:
            return int(admitted.sum())
        values = collections.Counter(value for value, is_in in zip(self._values(query, space), admitted) if is_in)
        return values.pop(None, 0) + sum(min(count, query.max_per.n) for count in values.values())

    def _find_crowded_out(self, query, space, scores, hits, left, answer):
        """Return a mask of the items whose value has n hits. If the answer is exact, these are better."""
        values, worst = self._values(query, space), {}
        for i, hit in zip(hits, answer.hits):
            assert wire.value_of(hit.value) == values[i], f"{hit.key!r} has the value {values[i]!r}, not {hit.value}"
        counts = collections.Counter(values[i] for i in hits if values[i] is not None)
        assert max(counts.values(), default=0) <= query.max_per.n, f"{counts} hits of a value"
        for i, hit in zip(hits, answer.hits):
            worst[values[i]] = hit.score  # the hits are in order
        out = np.array([value is not None and counts[value] == query.max_per.n for value in values], bool) & left
        for i in np.flatnonzero(out) if answer.receipt.exact else ():
            assert scores.least[i] <= worst[values[i]], f"{space.keys[i]!r} is better than a hit of its value"
        return out

    def _watermark(self, query, answer):
        watermark = {p.partition: p.next for p in answer.watermark}
        assert len(watermark) == len(answer.watermark), "a partition is twice in the watermark"
        for position in query.at_least:
            assert watermark.get(position.partition, 0) >= position.next, \
                f"at_least {position.partition}:{position.next} was not seen"
        return watermark

    @staticmethod
    def _check_method(model, query, answer):
        asked, ran = query.method, models.parse_method(answer.method)[0]
        if asked in ("", "exact"):
            assert ran and ran in model.exact_methods, f"'{answer.method}' ran, not an exact method"
        else:
            assert answer.method.replace(" ", "") == asked, f"'{answer.method}' ran, not '{asked}'"

    @staticmethod
    def _find_hits(space, admitted, answer):
        hits = []
        for hit in answer.hits:
            assert hit.key in space.index, f"{hit.key!r} is not an item of this state"
            assert admitted[space.index[hit.key]], f"{hit.key!r} is not admitted"
            hits.append(space.index[hit.key])
        assert len(set(hits)) == len(hits), "an item is among the hits twice"
        return np.array(hits, np.intp)

    def _check_attributes(self, query, space, hits, answer):
        """Check that the hits show what the query names, as the items have it."""
        for i, hit in zip(hits, answer.hits):
            have = space.attributes[i]
            due = {name: self._shown(name, have[name]) for name in query.attributes if name in have}
            got = {name: wire.value_of(value) for name, value in hit.attributes.items()}
            # As text: 9 is not 9.0, 0.0 is not -0.0, and a set has an order.
            assert repr(sorted(got.items())) == repr(sorted(due.items())), f"{hit.key!r} shows {got}, not {due}"

    def _shown(self, name, value):
        if self.types[name] == "number":
            return float(value) + 0.0
        return sorted(set(value), key=str.encode) if self.types[name] == "keywords" else value

    @staticmethod
    def _check_now(query, answer, asked_ms):
        assert answer.HasField("now_unix_ms") == bool(query.boosts), "the answer has the time of ages just with boosts"
        due = query.now_unix_ms if query.HasField("now_unix_ms") else asked_ms
        assert not query.boosts or due in (None, answer.now_unix_ms), \
            f"ages are counted to {answer.now_unix_ms}, not to {due}"

    def _check_similarities(self, similarities, sums, hits, answer, slack):
        """Check what the hits score without boosts."""
        for hit in answer.hits:
            assert hit.HasField("similarity") == bool(sums), f"{hit.key!r} has a similarity just with boosts"
        if not len(hits):
            return
        got, due = np.array([hit.similarity if sums else hit.score for hit in answer.hits]), similarities[hits]
        error = np.abs(got - due)
        worst = int(error.argmax())
        self.worst_error = max(self.worst_error, float(error[worst] / slack) * TOLERANCE if slack else 0)
        assert error[worst] <= slack, \
            f"hit {worst}, {answer.hits[worst].key!r}, has the score {got[worst]:.6f}; it is {due[worst]:.6f}"

    @staticmethod
    def _check_scores(scores, hits, answer):
        got = [hit.score for hit in answer.hits]
        if scores.sums:
            # The daemon adds to its own similarity: there is no error but that of ages.
            own = np.zeros(len(scores.ids))
            own[hits] = [hit.similarity for hit in answer.hits]
            least, most = (scores.sums.scores(own, sign)[hits] for sign in (-1, 1))
            for i, hit in enumerate(answer.hits):
                assert least[i] <= hit.score <= most[i], \
                    f"hit {i}, {hit.key!r}, has the sum {hit.score!r}; it is {least[i]!r} to {most[i]!r}"
        for i in range(len(hits) - 1):
            assert got[i] >= got[i + 1], f"hits {i} and {i + 1} are in the wrong order: {got[i]} {got[i + 1]}"
            assert got[i] > got[i + 1] or answer.hits[i].key < answer.hits[i + 1].key, \
                f"hits {i} and {i + 1} tie and are not in the order of their keys"
        by_id = {}
        for i, hit in enumerate(hits):
            first = by_id.setdefault(int(scores.ids[hit]), got[i])
            assert first == got[i], f"equal items have the scores {first} and {got[i]}"

    @staticmethod
    def _check_best(space, scores, hits, left, answer):
        if not len(hits) or not left.any():
            return
        last = answer.hits[-1]
        best = np.flatnonzero(left)[np.argmax(scores.least[left])]
        assert scores.least[best] <= last.score, \
            f"{space.keys[best]!r} ({scores.least[best]:.6f}) is missing; the worst hit has {last.score:.6f}"
        # A tie must keep the smaller keys. The keys are in order.
        tied = np.flatnonzero(left & (scores.least == last.score))
        assert not len(tied) or tied[0] > hits[-1], \
            f"{space.keys[tied[0]]!r} ties with {last.key!r} and comes before it"
        # Equal items have equal scores in any arithmetic.
        for hit in hits:
            equal = left & (scores.ids == scores.ids[hit]) if scores.least[hit] <= last.score else None
            if equal is not None and equal.any():
                first = int(np.flatnonzero(equal)[0])
                assert first > hit, f"{space.keys[first]!r} ties with {space.keys[hit]!r} and comes before it"

    @staticmethod
    def _check_bound(query, scores, hits, left, answer):
        receipt = answer.receipt
        assert answer.HasField("receipt"), "there is no receipt"
        # Items that max_per leaves out need no bound, but may have one.
        assert receipt.HasField("bound") == bool(left.any()) or (query.max_per.n and receipt.HasField("bound")), \
            f"bound {'given' if receipt.HasField('bound') else 'missing'}, {int(left.sum())} items were left out"
        if not left.any():
            return
        best = scores.least[left].max()
        assert best <= receipt.bound, \
            f"an item that was left out has at least {best:.6f}, over the bound {receipt.bound}"
        # With fewer hits, those that were left out are missing, or max_per leaves them out.
        if len(hits) == query.k and receipt.bound < answer.hits[-1].score:
            assert receipt.exact, "the bound proves the answer exact, but the receipt does not say so"

    @staticmethod
    def _check_ceiling(model, query, answer, space, admitted, left, slack):
        """Check that the receipt's bound is no higher than docs/exactness.md allows."""
        name, arguments = models.parse_method(query.method)
        worst = answer.hits[-1].score if len(answer.hits) == query.k else -np.inf
        ceiling = worst
        if not answer.receipt.exact:
            ceiling = max(worst, model.ceiling(query, space.rows, admitted, left, worst, name, arguments))
        assert answer.receipt.bound <= ceiling + slack, \
            f"the bound {answer.receipt.bound} is above {ceiling:.6f}, which is a bound too"

    @staticmethod
    def members(stages, admitted):
        """Return two masks: the items that are candidates under any rounding, and those that may be candidates."""
        sure, possible = np.zeros(len(admitted), bool), np.zeros(len(admitted), bool)
        for stage in stages:
            last, next_ = (models.nth_best(stage.values[admitted], n) for n in (stage.n, stage.n + 1))
            sure |= admitted & (stage.values > next_ + stage.slack)
            possible |= admitted & (stage.values >= last - stage.slack)
        return sure, possible

    def _check_candidates(self, model, query, answer, space, scores, admitted, hits, slack):
        """Check that the hits are the min(k, number of candidates) best candidates."""
        name, arguments = models.parse_method(query.method)
        stages = model.stages(query, space.rows, admitted, name, arguments)
        if stages is None:
            due = min(query.k, int(admitted.sum()))
            assert len(hits) == due, f"{len(hits)} hits, {due} were due"
            return
        sure, possible = self.members(stages, admitted)
        assert possible[hits].all(), f"{space.keys[hits[np.argmin(possible[hits])]]!r} is below the candidates' lists"
        least, most = (min(query.k, int(set_.sum())) for set_ in (sure, possible))
        assert least <= len(hits) <= most, f"{len(hits)} hits, {least} to {most} were due"
        if name in ("average", "per_embedding", "combined"):
            assert sure.sum() <= answer.counts.candidates <= possible.sum(), \
                f"{answer.counts.candidates} candidates, {sure.sum()} to {possible.sum()} were due"
            assert answer.counts.scored <= answer.counts.candidates, \
                f"{answer.counts.scored} items were scored, more than the {answer.counts.candidates} candidates"
        # With k hits, candidates below the worst hit may be missing. low_rank returns all its candidates.
        is_cut = len(hits) == query.k and name != "low_rank"
        missed = sure & (scores > scores[hits].min() + slack) if is_cut else sure
        missed[hits] = False
        assert not missed.any(), f"candidate {space.keys[int(np.flatnonzero(missed)[0])]!r} is missing"

    @staticmethod
    def _check_counts(space, admitted, answer):
        counts = answer.counts
        assert counts.items == len(space.keys), f"{counts.items} items counted, {len(space.keys)} in this state"
        assert len(answer.hits) <= counts.scored <= counts.items, f"{counts.scored} items scored"
        if counts.HasField("admitted"):
            assert counts.admitted == admitted.sum(), f"{counts.admitted} items admitted, {admitted.sum()} were due"

    # ---- explanations

    def _check_explanations(self, query, state, space, admitted, scores, answer):
        assert [e.key for e in answer.explanations] == list(query.explain), "the explanations are of other keys"
        ranks = {hit.key: i for i, hit in enumerate(answer.hits, 1)}
        for e in answer.explanations:
            i, rank, got = space.index.get(e.key), ranks.get(e.key), wire.pb.Explanation.Verdict.Name(e.verdict)
            assert e.HasField("score") == (i is not None), f"{e.key!r} has a score just with a part"
            assert i is None or scores.least[i] <= e.score <= scores.most[i], \
                f"{e.key!r} is explained with the score {e.score}; it is {scores.least[i]} to {scores.most[i]}"
            due = self._verdicts(query, state, space, admitted, answer, e, rank)
            assert got in due, f"{e.key!r} is said to be {got}, not {due}"
            assert e.rank == (rank or 0), f"{e.key!r} has the rank {e.rank}, not {rank}"
            assert not rank or e.score == answer.hits[rank - 1].score, f"{e.key!r} has another score as a hit"
            assert e.HasField("below_last_hit") == (got == "OUTRANKED"), f"{e.key!r} is {got}"
            assert got != "OUTRANKED" or e.below_last_hit == np.float32(answer.hits[-1].score) - np.float32(e.score), \
                f"{e.key!r} is said to be {e.below_last_hit} below the last hit"

    def _verdicts(self, query, state, space, admitted, answer, e, rank):
        """Return which verdicts are right."""
        i, time_ms = space.index.get(e.key), answer.time_unix_ms
        if i is None:
            return ["NO_PART" if e.key in state.items else "NO_ITEM"]
        if self.lifetimes and not self.lifetimes.is_alive(space.attributes[i], time_ms):
            is_expired = time_ms >= space.attributes[i].get(self.lifetimes.expires, time_ms + 1)
            return ["EXPIRED" if is_expired else "EMBARGOED"]
        if not admitted[i]:
            return ["EXCLUDED" if e.key in query.exclude else "FILTERED"]
        if rank:
            return ["HIT"]
        last = answer.hits[-1] if answer.hits else None
        if len(answer.hits) == query.k and (-e.score, e.key) > (-last.score, last.key):
            return ["OUTRANKED"]
        return ["CROWDED_OUT"] * bool(query.max_per.n) + ["MISSED"] * (not answer.receipt.exact)


def check_epochs(answers):
    """Check the answers of one run of the daemon: each epoch has one watermark and one time, which never move back."""
    epochs, times = {}, {}
    for answer in answers:
        if answer.HasField("error"):
            continue
        watermark = {p.partition: p.next for p in answer.watermark}
        known = epochs.setdefault(answer.epoch, watermark)
        assert known == watermark, f"epoch {answer.epoch} has the watermarks {known} and {watermark}"
        assert times.setdefault(answer.epoch, answer.time_unix_ms) == answer.time_unix_ms, "an epoch has two times"
    assert sorted(times.values()) == [times[epoch] for epoch in sorted(times)], f"time goes back: {times}"
    ordered = [epochs[epoch] for epoch in sorted(epochs)]
    for earlier, later in zip(ordered, ordered[1:]):
        back = [p for p, n in earlier.items() if later.get(p, 0) < n]
        assert not back, f"the watermark went back in partition {back}: {earlier} -> {later}"
