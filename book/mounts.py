"""An explorer as a part of a page: its state and its module, mounted by site.js; its picture for readers without scripts."""

import html
import json

KEEP_OUT = ("layout", "tooltip", "tabbable", "_dom_classes")
NEEDS_KERNEL = (
    '<p class="psi-needs-kernel">This widget computes in Python: it moves when the chapter is opened in Jupyter. What it drew:</p>'
)
MOUNT = """<div class="psi-mount" data-title="{title}"><script type="application/json">{state}</script>
<noscript><img alt="{alt}" src="data:image/png;base64,{picture}"></noscript></div>"""


def explorer(state, data, metadata):
    """The HTML of an explorer with that widget state; `data` and `metadata` are its output's, with the picture and what it shows."""
    kept = {name: value for name, value in state.items() if name not in KEEP_OUT and not str(value).startswith("IPY_MODEL_")}
    alt = metadata.get("image/png", {}).get("alt", "")
    parts = {"title": state["spec"]["title"], "alt": alt, "picture": data.get("image/png", "").replace("\n", "")}
    return MOUNT.format(state=dumps(kept), **{name: html.escape(text, quote=True) for name, text in parts.items()})


def dumps(value):
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/")
