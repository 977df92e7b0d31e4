"""An explorer as a part of a page: its state and its module, mounted by site.js; its picture for readers without scripts."""

import html
import json

KEEP_OUT = ("layout", "tooltip", "tabbable", "_dom_classes")
NEEDS_KERNEL = (
    '<p class="psi-needs-kernel">This widget computes in Python: it moves when the chapter is opened in Jupyter. What it drew:</p>'
)
MOUNT = """<div class="psi-mount" data-title="{title}" data-model="{model}" data-links="{links}">
<script type="application/json">{state}</script>
<noscript><img alt="{alt}" src="data:image/png;base64,{picture}"></noscript></div>"""


def explorer(model, state, links, data, metadata):
    """The HTML of the explorer `model` with that widget state; `data` and `metadata` are its output's, with the picture and what it shows.

    links: rows (model, setting, model, setting) of the whole page; an explorer passes on what the first two columns name as its own.
    """
    kept = {name: value for name, value in state.items() if name not in KEEP_OUT and not str(value).startswith("IPY_MODEL_")}
    alt = metadata.get("image/png", {}).get("alt", "")
    both_ways = [*links, *((other, named, one, name) for one, name, other, named in links)]
    own = json.dumps([rest for one, *rest in both_ways if one == model])
    picture = data.get("image/png", "").replace("\n", "")
    parts = {"title": state["spec"]["title"], "model": model, "links": own, "alt": alt, "picture": picture}
    return MOUNT.format(state=dumps(kept), **{name: html.escape(text, quote=True) for name, text in parts.items()})


def dumps(value):
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/")
