"""A headless Chromium, driven over a pipe by the DevTools protocol.

Only what the tests of the report need. There is no library under it: those that drive browsers come
with a browser of their own, or with extension modules for one version of Python each.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60


def find_browser():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class BrowserError(Exception):
    pass


class Refused(BrowserError):
    """What the browser could not do just now: while it leaves a page, say."""


class Browser:
    """One browser with one page. Use it in a `with` statement."""

    def __init__(self, program):
        self._profile = tempfile.TemporaryDirectory(
            prefix="rekernel-browser-", ignore_cleanup_errors=True)
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()

        def connect():  # the browser reads commands from descriptor 3 and answers on 4
            first, second = os.dup(to_child), os.dup(from_child)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._process = subprocess.Popen(
            [
                program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
                "--disable-dev-shm-usage", "--disable-background-networking", "--mute-audio",
                f"--user-data-dir={self._profile.name}", "about:blank",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=connect,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer = b""
        self._last_id = 0
        self._session = None
        self.events = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call(
            "Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self._call("Browser.close")
            self._process.wait(PATIENCE_S)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._profile.cleanup()

    # --- the protocol ---

    def _call(self, method, parameters=None):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters or {}}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(PATIENCE_S)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise Refused(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer in {seconds} s")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise BrowserError("the browser has ended")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _wait_for(self, method):
        for event in self.events:
            if event.get("method") == method:
                return
        end = time.monotonic() + PATIENCE_S
        while True:
            event = self._receive(end - time.monotonic())
            self.events.append(event)
            if event.get("method") == method:
                return

    # --- what tests do with a page ---

    def resize(self, width, height=900, phone=False):
        self._call("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})

    def prefer(self, scheme, media=""):
        """`scheme`: "light" or "dark"; `media`: "print" or the screen."""
        self._call("Emulation.setEmulatedMedia", {
            "media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, url):
        """Loads a page, and forgets what happened on the one before."""
        self.events = []
        self._call("Page.navigate", {"url": "about:blank"})
        self._wait_for("Page.loadEventFired")
        self.events = []
        failure = self._call("Page.navigate", {"url": url}).get("errorText")
        if failure:
            raise BrowserError(f"{url}: {failure}")
        self._wait_for("Page.loadEventFired")

    def run(self, script):
        """The value of a script, whose promises are awaited."""
        answer = self._call("Runtime.evaluate", {
            "expression": script, "returnByValue": True, "awaitPromise": True,
            "userGesture": True})
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait_until(self, condition):
        """Asks until a script's value is true. A page may be on its way."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                if self.run(condition):
                    return
            except Refused:
                pass
            time.sleep(0.02)
        raise BrowserError(f"never true: {condition}")

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", {
                "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def hover(self, x, y):
        self._call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", {"type": kind, "key": key})

    def requests(self):
        """The addresses that were asked for since the page was opened."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """Exceptions, errors and warnings since the page was opened."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event.get("method") == "Log.entryAdded":
                if parameters["entry"]["level"] in ("error", "warning"):
                    found.append(parameters["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled":
                if parameters["type"] in ("error", "warning", "assert"):
                    found.append(" ".join(str(one.get("value", one.get("description", "")))
                                          for one in parameters["args"]))
        return found

    def screenshot(self, path, whole=True):
        image = self._call("Page.captureScreenshot", {
            "format": "png", "captureBeyondViewport": whole})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))

    def print_to(self, path):
        pages = self._call("Page.printToPDF", {"printBackground": False})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(pages))
