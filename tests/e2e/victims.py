# SPDX-License-Identifier: Apache-2.0
"""Daemons that are killed, stopped and started again at random times, and what happened when."""

import signal
import time

import data


class Victims:
    def __init__(self, rng, daemons, down_s):
        """down_s: at most so long until one is started again."""
        self.rng, self.daemons, self.down_s = rng, daemons, down_s
        self.down = {}  # daemon -> when it is to be started again
        self.events, self.began = [], time.monotonic()

    def begin(self):
        """Events are dated from now on."""
        self.began = time.monotonic()

    def note(self, event):
        self.events.append(f"{time.monotonic() - self.began:6.2f} s  {event}")

    def up(self):
        return [daemon for daemon in self.daemons if daemon not in self.down]

    def kill(self):
        self._end("killed", signal.SIGKILL, self.up())

    def stop(self):
        """A process that has just begun does not know of signals yet: it is left alone."""
        self._end("stopped", signal.SIGTERM, [daemon for daemon in self.up() if daemon.get("/readyz")])

    def _end(self, how, number, chosen):
        if not chosen:
            return
        daemon = data.pick(self.rng, chosen)
        assert daemon.is_running(), f"{daemon.folder.name} ended by itself:\n{daemon.log_tail()}"
        daemon.process.send_signal(number)
        self.down[daemon] = time.monotonic() + self.rng.uniform(0, self.down_s)
        self.note(f"{daemon.folder.name} is {how}")

    def restart(self):
        """Start those whose time has come. Return whether none is down."""
        for daemon, due in list(self.down.items()):
            if time.monotonic() >= due and not daemon.is_running():
                assert daemon.process.returncode in (0, -signal.SIGKILL), daemon.log_tail()
                daemon.start()
                del self.down[daemon]
                self.note(f"{daemon.folder.name} is started")
        return not self.down
