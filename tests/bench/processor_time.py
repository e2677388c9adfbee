# SPDX-License-Identifier: Apache-2.0
"""The processor time of processes, and of everything else on the machine, from /proc."""

import os
import time
from pathlib import Path

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def of_process(pid):
    """Return the milliseconds that a process has worked, its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return TICK_MS * (int(fields[11]) + int(fields[12]))  # user, system


def of_machine():
    """Return the milliseconds that all cores have worked; what other guests of the host took counts as work."""
    user, nice, system, idle, waiting, irq, soft_irq, stolen, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return TICK_MS * (user + nice + system + irq + soft_irq + stolen)


class Meter:
    """Measures what named groups of processes do from now on. groups: name -> [pid]."""

    def __init__(self, groups):
        self.groups = groups
        self.began = self.ended = time.monotonic()
        self.before, self.machine_before = self._now(), of_machine()

    def _now(self):
        return {name: sum(map(of_process, pids)) for name, pids in self.groups.items()}

    def span_s(self):
        return self.ended - self.began

    def read(self):
        """Return (the cores that each group has used on average, those of all others)."""
        self.ended = time.monotonic()
        span_ms = 1000 * self.span_s()
        used = {name: (after - self.before[name]) / span_ms for name, after in self._now().items()}
        machine = (of_machine() - self.machine_before) / span_ms
        return used, max(0.0, machine - sum(used.values()))
