"""Lessons as they stand on the site: run once, their widgets made into parts of the page that live without a kernel."""

import hashlib
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from autograder.form import QUESTION

from . import forms, mounts

ROOT = Path(__file__).resolve().parent.parent
CODE = ("formulary", "explorers", "autograder", "labs", "exercises/bank")
RUN_S = 600
MODEL = "IPY_MODEL_"
VIEW, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"


def page(path, cache):
    """The notebook at `path` with its outputs, ready for the site; run again only if it or the code it runs has changed."""
    notebook = _run(path, cache)
    models = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    links = _links(models)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [shown for output in cell.outputs for shown in _shown(output, models, links)]
    notebook.metadata.pop("widgets", None)
    return notebook


def _run(path, cache):
    """The executed notebook, from the cache if it is there."""
    kept = cache / f"{path.stem}-{_fingerprint(path)}.ipynb"
    if not kept.exists():
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=RUN_S, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
        cache.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, kept)
    return nbformat.read(kept, as_version=4)


def _fingerprint(path):
    """What the outputs depend on: the notebook and the code."""
    files = sorted(
        file for folder in CODE for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".js", ".css", ".toml", ".yaml")
    )
    found = hashlib.sha256(path.read_bytes())
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


def _links(models):
    """Rows (model, setting, model, setting): what `jslink` has linked, as a dashboard does."""
    ends = [(link["state"]["source"], link["state"]["target"]) for link in models.values() if link["model_name"] == "LinkModel"]
    return [(one.removeprefix(MODEL), name, other.removeprefix(MODEL), named) for (one, name), (other, named) in ends]


def _shown(output, models, links):
    """What the page shows for one output: forms and explorers alive, other widgets by what they have drawn."""
    data = output.get("data", {})
    if QUESTION in data:
        return [_html(forms.form(**data[QUESTION]))]
    if VIEW not in data:
        return [output]
    model = models.get(data[VIEW]["model_id"], {}).get("state", {})
    if "_esm" in model:
        return [_html(mounts.explorer(data[VIEW]["model_id"], model, links, data, output.get("metadata", {})))]
    drawn = [nbformat.from_dict(each) for each in _drawn(data[VIEW]["model_id"], models)]
    return [_html(mounts.NEEDS_KERNEL), *drawn]


def _drawn(name, models):
    """The outputs in a widget and in those inside it."""
    state = models.get(name, {}).get("state", {})
    yield from state.get("outputs", ())
    for child in state.get("children", ()):
        yield from _drawn(child.removeprefix(MODEL), models)


def _html(text):
    return nbformat.v4.new_output("display_data", {"text/html": text})
