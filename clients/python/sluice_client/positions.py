# SPDX-License-Identifier: Apache-2.0
"""Positions in a topic: how far something was written or read. They make a query wait for one's own writes."""

import http.client
import json
import time
import urllib.request
from typing import Dict, Mapping

from .errors import NoAnswer, SluiceError

# A daemon's pages are near: a proxy of the environment is for others.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))

# {partition: next}: all offsets below `next` are included.
Positions = Dict[int, int]


def merged(*positions: Mapping[int, int]) -> Positions:
    """Return the positions that include all of the given ones."""
    out: Positions = {}
    for some in positions:
        for partition, following in some.items():
            out[partition] = max(following, out.get(partition, 0))
    return out


def reached(watermark: Mapping[int, int], wanted: Mapping[int, int]) -> bool:
    return all(watermark.get(partition, 0) >= following for partition, following in wanted.items())


def wait_visible(url: str, wanted: Mapping[int, int], timeout_s: float = 30) -> None:
    """Wait until the daemon whose HTTP pages are at `url` has read the catalogue to the wanted positions.

    Raises SluiceError if it has no catalogue, as a merge has none.

    This says nothing about other daemons. A query with `at_least` is certain, whichever daemon answers it.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is not the address of a page: http://{url}")
    deadline = time.monotonic() + timeout_s
    while True:
        # A daemon that cannot be reached, or is stopping, may be there again soon.
        try:
            watermark = _watermark(url, timeout_s)
            if reached(watermark, wanted):
                return
            reason = f"the daemon at {url} has read to {watermark}, not to {dict(wanted)}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = f"the daemon at {url} does not say how far it has read: {error}"
        if time.monotonic() > deadline:
            raise NoAnswer(f"after {timeout_s} s {reason}")
        time.sleep(0.005)


def _watermark(url: str, timeout_s: float) -> Positions:
    with _DIRECT.open(url.rstrip("/") + "/status", timeout=timeout_s) as response:
        status = json.load(response)
    if "watermark" not in status:
        raise SluiceError(f"the daemon at {url} has no catalogue, its role is {status.get('role')}: "
                          "ask one that searches")
    return {position["partition"]: position["next"] for position in status["watermark"]}
