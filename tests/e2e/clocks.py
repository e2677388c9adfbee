# SPDX-License-Identifier: Apache-2.0
"""Wall clocks of daemons, that tests step."""

import struct
import time

from harness import build_dir

NS_PER_MS = 10**6


class SteppedClock:
    """A daemon's own wall clock, which is `ms` ahead of the machine's. Make it before the daemon starts."""

    def __init__(self, daemon, ms=0):
        self.path = daemon.folder / "clock"
        self.path.write_bytes(struct.pack("<q", ms * NS_PER_MS))
        daemon.environment = {"LD_PRELOAD": str(build_dir() / "tests" / "libstep_clock.so"),
                              "STEP_CLOCK": str(self.path),
                              # jemalloc's threads wait by the machine's wall clock: behind it, they would spin.
                              "MALLOC_CONF": "background_thread:false"}

    def _ahead_ns(self):
        return struct.unpack("<q", self.path.read_bytes())[0]

    def now_ms(self):
        return (time.time_ns() + self._ahead_ns()) // NS_PER_MS

    def step(self, ms):
        stepped = self._ahead_ns() + ms * NS_PER_MS
        with open(self.path, "r+b") as file:  # write in place, because the daemon has mapped the file
            file.write(struct.pack("<q", stepped))
