"""Drive JupyterLab as a reader does: open a notebook, run all cells, wait until they are done."""

import os
import secrets
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
from playwright.sync_api import TimeoutError as Late

from labs.launch import free_port

ROOT = Path(__file__).resolve().parents[2]
START_S, RUN_S, STOP_S = 300, 600, 15
PATIENCE_MS = 120_000  # for a single step in the browser
SETTINGS = {
    "--ServerApp.ip": "127.0.0.1",
    "--ServerApp.port_retries": "0",
    "--ServerApp.open_browser": "False",
    "--ServerApp.allow_root": "True",
    "--LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
}
NO_NEWS = "config/lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
STATUS = "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status"
IDLE = f"{STATUS} === 'idle'"
PROMPTS = "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map((e) => e.textContent.trim()).filter((t) => t)"
# cells may be marked as waiting for a kernel that never heard of them
STARTED = rf"() => {PROMPTS}.some((text) => /\[\d+\]/.test(text) || (text === '[*]:' && {STATUS} === 'busy'))"
FINISHED = rf"() => {{ const all = {PROMPTS}; return all.length && all.every((text) => /\[\d+\]/.test(text)) && {IDLE}; }}"


class Lab:
    """A server over `folder`; its settings, runtime files and history stay inside `folder`."""

    def __init__(self, folder):
        self.folder, self.token, self.port = folder, secrets.token_hex(16), free_port()
        (folder / "notebooks").mkdir()
        (folder / NO_NEWS).parent.mkdir(parents=True)
        (folder / NO_NEWS).write_text('{"fetchNews": "false"}')
        self.log = open(folder / "server.log", "w")  # noqa: SIM115, closed in stop
        self.process = subprocess.Popen(self._command(), cwd=folder, env=self._environment(), stdout=self.log, stderr=subprocess.STDOUT)
        self._wait()

    def _command(self):
        options = {**SETTINGS, "--ServerApp.port": self.port, "--ServerApp.root_dir": self.folder / "notebooks"}
        return [sys.executable, "-m", "jupyterlab", f"--IdentityProvider.token={self.token}", *(f"{k}={v}" for k, v in options.items())]

    def _environment(self):
        folders = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime", "IPYTHONDIR": "ipython"}
        return {**os.environ, **{name: str(self.folder / place) for name, place in folders.items()}, "PYTHONPATH": str(ROOT)}

    def _wait(self):
        until = time.monotonic() + START_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise RuntimeError(f"JupyterLab did not start:\n{(self.folder / 'server.log').read_text()[-3000:]}")
            time.sleep(0.2)

    def _answers(self):
        try:
            return urllib.request.urlopen(self.address("api"), timeout=5).status == 200
        except OSError:
            return False

    def address(self, path):
        """The URL of `path` with the token that opens it."""
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def write(self, name, *cells):
        """A notebook with these code cells."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / "notebooks" / name)

    def open(self, page, name):
        """Show notebook `name` on `page` and wait for its kernel."""
        # On a slow machine JupyterLab may ask something first (whether to go on loading, which kernel): nothing else can be
        # clicked until it is told. The answer it offers is taken, and what was asked is printed.
        page.add_locator_handler(page.locator(".jp-Dialog"), _accept, no_wait_after=True)  # one dialog may follow another
        page.goto(self.address(f"lab/tree/{name}") + "&reset", wait_until="domcontentloaded")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=START_S * 1000)
        page.wait_for_function(f"() => {IDLE}", timeout=START_S * 1000)

    def run_all(self, page):
        """Run every cell and wait for the last; a click that JupyterLab loses while it starts is repeated."""
        for _ in range(5):
            choose(page, "Run", "Run All Cells")
            try:
                page.wait_for_function(STARTED, timeout=20_000)
                break
            except Late:
                continue
        page.wait_for_function(FINISHED, timeout=RUN_S * 1000)

    def theme(self, page, name):
        """Switch to theme `name`, such as "JupyterLab Dark", and wait until its colours are there."""
        choose(page, "Settings", "Theme", name)
        light = "false" if "Dark" in name else "true"
        page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{light}'")
        page.wait_for_load_state("networkidle")

    def close(self, page):
        """End the kernels that the page's notebooks started."""
        for session in page.request.get(self.address("api/sessions")).json():
            page.request.delete(self.address(f"api/sessions/{session['id']}"), headers={"Authorization": f"token {self.token}"})

    def stop(self):
        """End the server and its kernels, which go when it does. A server that is busy with a kernel may not hear the first signal."""
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def _accept(dialog):
    print("asked:", dialog.first.inner_text()[:300])
    dialog.first.locator(".jp-Dialog-footer button").last.click()


def choose(page, menu, *items):
    """Pick an entry of the menu bar."""
    page.click(f'.lm-MenuBar-itemLabel:text-is("{menu}")')
    for item in items[:-1]:
        page.hover(f'.lm-Menu-itemLabel:text-is("{item}")')
    page.click(f'.lm-Menu-itemLabel:text-is("{items[-1]}")')
