# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that does what a reader does: open a page, fill in a form, press a button.

It is driven through a pipe (--remote-debugging-pipe), so no port and no library is needed.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile

import harness


def program():
    """Return the path of the browser; None: it is not installed."""
    return shutil.which("chromium")


class Browser:
    """One tab. Use it in a `with` block."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.n_sent = 0
        self.rest = b""

    def __enter__(self):
        # Processes of the browser may write to it for a moment after its end.
        self.profile = tempfile.TemporaryDirectory(prefix="sluice-browser-", ignore_cleanup_errors=True)
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        words = [program(), "--headless", "--disable-gpu", *sandbox, f"--user-data-dir={self.profile.name}",
                 "--remote-debugging-pipe", *self.arguments, "about:blank"]
        # The browser reads from file descriptor 3 and writes to 4.
        script = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", script, "bash", *words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=(read_commands, write_answers), start_new_session=True)
        os.close(read_commands)
        os.close(write_answers)
        self.session = None
        try:
            self.attach()
        except AssertionError:
            self.__exit__()
            raise
        return self

    def attach(self):
        pages = [target for target in self.send("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        self.session = self.send("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]

    def __exit__(self, *_):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(10 * harness.SLOWNESS)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.profile.cleanup()

    def read_message(self):
        while b"\0" not in self.rest:
            readable, _, _ = select.select([self.answers], [], [], 60 * harness.SLOWNESS)
            assert readable, "the browser does not answer"
            more = os.read(self.answers, 1 << 16)
            assert more, "the browser has ended"
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        """Send a command of the DevTools protocol, and return its result."""
        self.n_sent += 1
        command = {"id": self.n_sent, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.read_message()
            if message.get("id") == self.n_sent:
                assert "error" not in message, message
                return message["result"]

    def run(self, script):
        """Run JavaScript in the page, and return its value."""
        done = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def open(self, url):
        self.send("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def wait_for(self, condition):
        return harness.eventually(lambda: self.run(condition), condition, 30)

    def screenshot(self, path, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
