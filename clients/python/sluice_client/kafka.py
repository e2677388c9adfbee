# SPDX-License-Identifier: Apache-2.0
"""Settings of Kafka clients, and the partitions that a reader without a group reads."""

import os
from typing import Any, Dict, List, Mapping, Optional, Union

from confluent_kafka import Consumer, Producer, TopicPartition

from .errors import SluiceError

# An address such as "127.0.0.1:9092", or properties of librdkafka.
Kafka = Union[str, Mapping[str, Any]]


def settings(kafka: Kafka, defaults: Mapping[str, Any], more: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """Return librdkafka's properties: the defaults, then what the caller set, then what he set for this client."""
    own = {"bootstrap.servers": kafka} if isinstance(kafka, str) else kafka
    return {**defaults, **own, **(more or {})}


def verify_process(opened_in: int) -> None:
    """Raise SluiceError in a fork of the process that opened a client: the client's threads are not there."""
    if os.getpid() != opened_in:
        raise SluiceError(f"the client was opened in process {opened_in}, of which this one is a fork: open it here")


def partitions_of(client: Union[Consumer, Producer], topic: str, timeout_s: float) -> List[int]:
    """Return the topic's partitions. Raise SluiceError if there is no such topic."""
    found = client.list_topics(topic, timeout=timeout_s).topics[topic]
    if found.error is not None:
        raise SluiceError(f"topic {topic}: {found.error}")
    return sorted(found.partitions)


def assign_end(consumer: Consumer, topic: str, timeout_s: float) -> List[int]:
    """Read the topic from where it ends now. Return its partitions.

    The offsets are asked for here: with OFFSET_END the consumer would ask later, perhaps after an answer was written.
    """
    partitions = partitions_of(consumer, topic, timeout_s)
    ends = [TopicPartition(topic, partition) for partition in partitions]
    for end in ends:
        end.offset = consumer.get_watermark_offsets(end, timeout=timeout_s)[1]
    consumer.assign(ends)
    return partitions
