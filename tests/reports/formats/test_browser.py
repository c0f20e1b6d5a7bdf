"""The report in a browser: Chromium over its debugging pipe, so that no driver and no network port is needed."""

import base64
import json
import os
import shutil
import subprocess
import sys

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]  # fmt: skip


#: The smallest contrast of any text with what lies behind it, and the text.
CONTRAST = """(() => {
  const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m.slice(0, 3), 1] : m; };
  const over = (a, b) => a.slice(0, 3).map((x, i) => x * a[3] + b[i] * (1 - a[3]));
  const light = c => { const [r, g, b] = c.map(x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { const layers = []; for (; e; e = e.parentElement)
    layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below),
      matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255]); };
  let worst = [99, ''];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, text = walk.currentNode.data.trim();
    if (!text || ['STYLE', 'title'].includes(e.tagName) || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), back = behind(e);
    const front = over(parse(e instanceof SVGElement ? style.fill : style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    if (ratio < worst[0]) worst = [ratio, text.slice(0, 60)];
  }
  return worst; })()"""


#: Elements that reach over the right edge of the page.
OUTSIDE = """[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1
  && !e.closest('svg svg')).map(e => e.tagName + ' ' + (e.textContent || '').slice(0, 40)).slice(0, 5)"""


NOISE = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}


class Browser:
    """One page of a headless Chromium."""

    def __init__(self, profile) -> None:
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()
        script = f"import os, sys; os.dup2({to_read}, 3); os.dup2({to_write}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        command = [sys.executable, "-c", script, CHROMIUM, *FLAGS]
        self.process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def message(self) -> dict:
        while b"\0" not in self.buffer:
            part = os.read(self.read, 1 << 20)
            if not part:
                raise RuntimeError("the browser is gone")
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(line)

    def call(self, method: str, **parameters) -> dict:
        self.number += 1
        sent = {"id": self.number, "method": method, "params": parameters}
        os.write(self.write, json.dumps(sent | ({"sessionId": self.session} if self.session else {})).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") == self.number:
                assert "error" not in got, got
                return got["result"]
            self.events.append(got)

    def open(self, url: str, width: int, *, dark: bool) -> None:
        self.events = []
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def evaluate(self, script: str):
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"]["value"]

    def close(self) -> None:
        self.session = None
        self.call("Browser.close")
        self.process.wait(20)
        os.close(self.read)
        os.close(self.write)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    page = Browser(tmp_path_factory.mktemp("profile"))
    yield page
    page.close()


@pytest.mark.slow(reason="it starts a browser")
@pytest.mark.parametrize("which", ["page", "hostile_page"])
def test_page_in_a_browser(browser, tmp_path, request, which):
    file = tmp_path / "report.html"
    file.write_text(request.getfixturevalue(which), encoding="utf-8")
    for width in (1280, 390):
        for dark in (False, True):
            browser.open(file.as_uri(), width, dark=dark)
            assert browser.evaluate(OUTSIDE) == [], (width, dark)
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), (width, dark)
            ratio, text = browser.evaluate(CONTRAST)
            assert ratio >= 4.5, (width, dark, ratio, text)
            assert not [event for event in browser.events if event["method"] in NOISE]
    printed = browser.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
