"""Key press to settled picture, ours beside plain `ipywidgets.interact` with matplotlib: `python -m benchmarks.explorer_latency`.

Both run in one JupyterLab; after them every explorer runs on a page of its own, as on the site. A key is pressed on the first
slider; the picture is looked at in every animation frame, and the time counts from the key's own time stamp to the last frame
in which it changed. Told beside it is which frame after the key that was: any picture waits for the first, at 60 Hz up to
16.7 ms. The machine's load is printed, since it moves all figures.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from explorers import EXPLORERS
from tests.browser.conftest import BARE, SHOW, state_of
from tests.browser.jupyterlab import Lab
from tools import machine

PRESSES, WARM_UP, REST_MS = 40, 5, 250
OURS = ["from explorers import memory_explorer\nmemory_explorer(num_params='1B', world_size=8, stage=1)"]
PLAIN = [
    """
%matplotlib inline
import ipywidgets
from matplotlib import pyplot as plt
from formulary.memory import ZERO_LEDGER

@ipywidgets.interact(billions=ipywidgets.IntSlider(value=1, min=1, max=80), world_size=ipywidgets.IntSlider(value=8, min=1, max=64))
def show(billions, world_size):
    figure, axes = plt.subplots(figsize=(6, 3.6))
    below = [0, 0, 0, 0]
    columns = [ZERO_LEDGER(num_params=f"{billions}B", world_size=world_size, stage=stage) for stage in range(4)]
    for part in ZERO_LEDGER.parts:
        heights = [column[part] for column in columns]
        axes.bar(range(4), heights, bottom=below, label=part)
        below = [b + h for b, h in zip(below, heights)]
    axes.legend()
    plt.show()
"""
]
# name: (notebook's cells, what is pressed on, what is looked at, how one state of the picture is told from another)
VARIANTS = {
    "explorer": (OURS, ".psi-explorer input[type=range]", ".psi-picture svg", "(e) => e.innerHTML"),
    "interact": (PLAIN, ".noUi-handle", ".jp-RenderedImage img", "(e) => (e.complete && e.naturalWidth ? e.src : null)"),
}
WATCH = """([selector, look]) => {
  const state = () => {
    const picture = document.querySelector(selector);
    return picture && picture.getBoundingClientRect().height > 20 ? eval(look)(picture) : null;
  };
  const start = (event) => { window.press = { at: event.timeStamp, seen: state(), last: null, blank: 0, frames: 0 }; };
  addEventListener("keydown", start, true);
  const frame = () => {
    const press = window.press, now = performance.now();
    if (press) {
      const seen = state();
      press.frames += 1;
      if (seen === null) press.blank += 1;
      else if (seen !== press.seen) { press.seen = seen; press.last = now - press.at; press.drawn = press.frames; }
      press.rest = now - press.at - (press.last ?? 0);
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""


def measure(lab, browser, name):
    """What PRESSES key presses on variant `name` came to in JupyterLab."""
    cells, pressed, picture, look = VARIANTS[name]
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    lab.write(f"{name}.ipynb", *cells)
    lab.open(page, f"{name}.ipynb")
    lab.run_all(page)
    page.wait_for_selector(picture)
    page.evaluate(WATCH, [picture, look])
    page.locator(pressed).first.focus()
    found = [_press(page, "ArrowRight") for _ in range(WARM_UP + PRESSES)][WARM_UP:]
    lab.close(page)
    page.close()
    return found


def measure_bare(browser, make):
    """What a quarter of that came to on explorer `make()`, back and forth, on a page without Jupyter."""
    _, pressed, picture, look = VARIANTS["explorer"]
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    page.set_content('<main><div id="place"></div></main>')
    page.add_script_tag(content=f"{BARE}\nwindow.show = show;")
    page.evaluate(SHOW, [state_of(make()), False])
    page.evaluate(WATCH, [picture, look])
    page.locator(pressed).first.focus()
    page.keyboard.press("ArrowLeft")  # away from the end, if it stands there
    found = [_press(page, key) for _ in range(PRESSES // 8) for key in ("ArrowRight", "ArrowLeft")]
    page.close()
    return found


def _press(page, key):
    page.evaluate("window.press = null")
    page.keyboard.press(key)
    page.wait_for_function(f"window.press?.last && window.press.rest > {REST_MS}", timeout=20_000)
    return page.evaluate("({ last: press.last, drawn: press.drawn, blank: press.blank })")


def tell(name, found):
    """Print the line of one variant."""
    times = [press["last"] for press in found]
    median, p95 = statistics.median(times), statistics.quantiles(times, n=20, method="inclusive")[-1]
    frames, blank = [press["drawn"] for press in found], sum(press["blank"] for press in found)
    drawn = f"frame {statistics.median(frames):.0f}, at most {max(frames)}"
    print(f"{name:<28} median {median:6.1f} ms   p95 {p95:6.1f} ms   {drawn}   blank frames {blank}", flush=True)


def main():
    """Print a line for each variant; returns the exit status."""
    print(f"{PRESSES} presses each, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        lab = Lab(Path(folder))
        try:
            browser = playwright.chromium.launch(executable_path=machine.program("chromium"), args=["--no-sandbox", "--disable-gpu"])
            for name in VARIANTS:
                tell(name, measure(lab, browser, name))
            for name, make in EXPLORERS.items():
                tell(name, measure_bare(browser, make))
        finally:
            lab.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
