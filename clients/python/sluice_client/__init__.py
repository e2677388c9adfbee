# SPDX-License-Identifier: Apache-2.0
"""A client of Sluice: write items and what users have seen, and query, through Kafka.

    Catalogue     writes items
    SeenItems     writes what users have seen
    Queries       sends queries and returns their answers; one object serves all threads of a process
    wait_visible  waits until one daemon has read to given positions
"""

from .answer import Answer, Hit
from .catalogue import Catalogue, SeenItems
from .errors import Closed, NoAnswer, NoBroker, QueryError, SluiceError, WriteError
from .messages import Boost, Query, codes, components, vector
from .pending import Counters
from .positions import Positions, merged, wait_visible
from .queries import Queries

__all__ = ["Answer", "Boost", "Catalogue", "Closed", "Counters", "Hit", "NoAnswer", "NoBroker", "Positions", "Queries",
           "Query", "QueryError", "SeenItems", "SluiceError", "WriteError", "codes", "components", "merged", "vector",
           "wait_visible"]
