# SPDX-License-Identifier: Apache-2.0
"""A real Kafka broker for tests. If none can run, the tests are skipped with a message; in CI they fail."""

import sys
import unittest

import data

sys.path.insert(0, str(data.ROOT / "tests" / "broker"))
import kafka_broker  # noqa: E402
from kafka_broker import RESTARTS_SOON  # noqa: E402, F401


def require():
    reason = kafka_broker.why_unavailable()
    if not reason:
        return
    if data.CI:
        raise AssertionError(f"a real broker is required in CI: {reason}")
    print(f"SKIPPED: NO TEST AGAINST A REAL KAFKA BROKER WAS RUN: {reason.upper()}", file=sys.stderr, flush=True)
    raise unittest.SkipTest(reason)


def open_for(add_cleanup=unittest.addModuleCleanup, properties=None):
    """Return a started broker. It is closed after the module's last test, or with the cleanups of `add_cleanup`."""
    require()
    broker = kafka_broker.KafkaBroker(properties=properties).start()
    add_cleanup(broker.close)
    return broker
