"""Headless Chromium, driven by the DevTools protocol over two pipes: no driver, no package."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import threading
import time
from collections import deque
from contextlib import contextmanager

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
"""None where there is none."""


class Page:
    """A page in the browser, what it logged, and what it asked the network for."""

    def __init__(self, send):
        self._send = send
        self.errors = []
        self.requests = []

    def heard(self, event):
        """Keep errors and requests."""
        kind, told = event["method"], event["params"]
        if kind == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif kind == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(str([value.get("value") for value in told["args"]]))
        elif kind == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    def open(self, path, *, width=1280, height=800, dark=False, scripts=True):
        """Open a file, or an address, at a size, in light or dark; wait until it is drawn."""
        self.errors.clear()
        self.requests.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self._send("Emulation.setScriptExecutionDisabled", value=not scripts)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._send("Emulation.setDeviceMetricsOverride", **size)
        self._send("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self.wait("document.readyState === 'complete'")
        if scripts:
            self.settle()

    def run(self, expression):
        """Return the value of a JavaScript expression, promises awaited."""
        told = self._send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in told:
            raise AssertionError(told["exceptionDetails"]["exception"]["description"])
        return told["result"].get("value")

    def wait(self, expression, seconds=20):
        """Wait until an expression holds."""
        end = time.monotonic() + seconds
        while not self.run(expression):
            assert time.monotonic() < end, f"never held: {expression}"
            time.sleep(0.05)

    def settle(self):
        """Wait for two frames, so that what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, kind, x, y, **more):
        """Move, press or release the mouse at a point of the window."""
        self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        """Click at a point of the window."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def key(self, key):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self._send("Input.dispatchKeyEvent", type=kind, key=key)
        self.settle()

    def picture(self, path, selector=None):
        """Write what is seen, or all of an element, as PNG."""
        clip = {}
        if selector:
            area = self.run(
                f"(() => {{ const a = document.querySelector({json.dumps(selector)})"
                ".getBoundingClientRect(); return {x: a.x + scrollX, y: a.y + scrollY, "
                "width: a.width, height: a.height, scale: 1}; })()"
            )
            clip = {"clip": area, "captureBeyondViewport": True}
        shot = self._send("Page.captureScreenshot", **clip)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile):
    """Yield a page of a new browser, which ends with the block.

    Args:
        profile: An empty folder for what the browser keeps.
    """
    to_read, to_write = os.pipe(), os.pipe()
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
        *("--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"),
        *("--hide-scrollbars", f"--user-data-dir={profile}", "about:blank"),
    ]
    # Chromium reads commands at descriptor 3 and writes answers at 4.
    shell = f'exec "$@" 3<&{to_read[0]} 4>&{to_write[1]}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=(to_read[0], to_write[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read[0])
    os.close(to_write[1])
    try:
        yield _page(to_read[1], to_write[0])
    finally:
        process.terminate()
        process.wait(20)
        os.close(to_read[1])


def _page(commands, answers):
    """Attach to the browser's page."""
    numbers, session, waiting = itertools.count(1), {}, {}
    events = deque()

    def listen():
        rest = b""
        while block := os.read(answers, 1 << 20):
            *whole, rest = (rest + block).split(b"\0")
            for text in whole:
                told = json.loads(text)
                if "id" in told:
                    waiting.pop(told["id"]).append(told)
                elif events:
                    events[0](told)
        os.close(answers)

    def send(method, **params):
        number, answer = next(numbers), []
        waiting[number] = answer
        told = {"id": number, "method": method, "params": params, **session}
        os.write(commands, json.dumps(told).encode() + b"\0")
        end = time.monotonic() + 60
        while not answer:
            assert time.monotonic() < end, f"no answer to {method}"
            time.sleep(0.002)
        assert "error" not in answer[0], (method, answer[0]["error"])
        return answer[0]["result"]

    threading.Thread(target=listen, daemon=True).start()
    (target,) = (
        info["targetId"]
        for info in send("Target.getTargets")["targetInfos"]
        if info["type"] == "page"
    )
    attached = send("Target.attachToTarget", targetId=target, flatten=True)
    session["sessionId"] = attached["sessionId"]
    page = Page(send)
    events.append(page.heard)
    for domain in ("Page", "Runtime", "Log", "Network"):
        send(f"{domain}.enable")
    return page
