# SPDX-License-Identifier: Apache-2.0
"""The size of topics on a broker's disk, read from its log files."""

import struct

HEAD, BATCH = 12, 61  # bytes before what a batch's length counts, and of the whole head of a batch
COUNT_AT = 57  # where a batch has the number of its records


def lone_bytes(data_path, topic):
    """Return the bytes of a topic's records, as if each had a batch of its own: batches vary with the load."""
    return sum(sum(batch_sizes(path.read_bytes())) for path in data_path.glob(f"{topic}-*/*.log"))


def batch_sizes(log):
    at = 0
    while at + BATCH <= len(log):
        length, = struct.unpack_from(">i", log, at + 8)
        n_records, = struct.unpack_from(">i", log, at + COUNT_AT)
        yield HEAD + length + BATCH * (n_records - 1)
        at += HEAD + length
