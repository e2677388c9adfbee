# SPDX-License-Identifier: Apache-2.0
"""A real Kafka broker for tests. Where none can be run they are skipped, aloud; in CI that is a failure."""

import sys
import unittest

import data

sys.path.insert(0, str(data.ROOT / "tests" / "broker"))
import kafka_broker  # noqa: E402


def require():
    reason = kafka_broker.why_unavailable()
    if not reason:
        return
    if data.CI:
        raise AssertionError(f"CI runs nothing without a real broker: {reason}")
    print(f"SKIPPED: NO TEST AGAINST A REAL KAFKA BROKER WAS RUN: {reason.upper()}", file=sys.stderr, flush=True)
    raise unittest.SkipTest(reason)


def open_for(add_cleanup=unittest.addModuleCleanup):
    """Started; closed behind the module's last test, or with what `add_cleanup` belongs to."""
    require()
    broker = kafka_broker.KafkaBroker().start()
    add_cleanup(broker.close)
    return broker
