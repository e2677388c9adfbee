# SPDX-License-Identifier: Apache-2.0
"""How many bytes queries, parts, answers and marks take in Kafka's log: the formula of docs/scale.md.

A record is taken to be the only one of its batch, as at low load. Numbers whose length varies count as they are in a
large catalogue. What a query's hits have in common is in here; errors, JSON and compression are not.
"""

from dataclasses import dataclass

BATCH, RECORD = 61, 9  # Kafka's own bytes for a batch, and for a record: lengths, offset and time
PART, ANSWER = 112, 84  # what is not below: of a part its head, of both counts, times, receipt, method and model
PARTIALS_KEY = 22  # beside the query topic's name: partition, offset and time of the query's record
CONTENT_TYPE = 36  # the header of parts and answers
MARK = 2
HEARTBEAT = 90  # with its key, in a batch of its own
HIT, BOOSTED, VALUE, SHOWN, VECTOR = 9, 5, 4, 8, 4  # beside keys, values, names and numbers
POSITION = 8  # of a partition below 128
EXPLANATION = 15


@dataclass(frozen=True, kw_only=True)
class Queries:
    """What the queries ask for. Lengths are in bytes."""

    k: int = 10  # hits of an answer, and of each part; with mmr, the candidates
    query_bytes: float = 300  # the value of a query's record
    query_key_bytes: float = 0  # its key
    id_bytes: float = 12
    key_bytes: float = 20  # of an item
    topic_bytes: float = 14  # the name of the query topic
    partitions: int = 64  # of the catalogue topic
    attributes: int = 0  # that each hit shows,
    attribute_bytes: float = 12  # each with its name and value
    value_bytes: float = 0  # of max_per's attribute; 0: no max_per
    has_boosts: bool = False
    vector_numbers: int = 0  # of each candidate of mmr, in parts
    explanations: int = 0
    trace_bytes: float = 0  # of the headers traceparent, tracestate and baggage, with their names and lengths

    def hit(self):
        value = self.value_bytes and VALUE + self.value_bytes
        return (HIT + self.key_bytes + self.attributes * (SHOWN + self.attribute_bytes) + value +
                BOOSTED * self.has_boosts)

    def reply(self, n_partitions):
        """What answers and parts have alike."""
        return self.id_bytes + POSITION * n_partitions + self.explanations * (EXPLANATION + self.key_bytes)

    def query(self):
        return BATCH + RECORD + self.query_key_bytes + self.query_bytes + self.trace_bytes

    def part(self, n_shards):
        vector = self.vector_numbers and VECTOR + 4 * self.vector_numbers
        return (BATCH + RECORD + CONTENT_TYPE + PARTIALS_KEY + self.topic_bytes + PART + self.query_key_bytes +
                self.trace_bytes + self.k * (self.hit() + vector) + self.reply(self.partitions / n_shards))

    def answer(self):
        return (BATCH + RECORD + CONTENT_TYPE + self.query_key_bytes + ANSWER + self.trace_bytes +
                self.k * self.hit() + self.reply(self.partitions))

    def mark(self):
        return BATCH + RECORD + PARTIALS_KEY + self.topic_bytes + MARK


def per_second(queries, rate, layout, is_hedged=False):
    """Return what Kafka takes in and gives out in a second, without the copies that brokers make of each other's logs.

    layout     of simulation.py
    is_hedged  every replica answers every query
    """
    n_searches = layout.shards * (layout.replicas if is_hedged else 1)
    partials, beats, n_answers = 0, 0, n_searches
    if layout.merges:
        partials = n_searches * queries.part(layout.shards) + queries.mark()
        beats, n_answers = layout.shards * layout.replicas * HEARTBEAT, 1
    written = rate * (queries.query() + partials + n_answers * queries.answer()) + beats
    return written, written + rate * (n_searches - 1) * queries.query()
