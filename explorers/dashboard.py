"""Several explorers as one sheet: what they share moves together, and all they stand at is one plan, as JSON."""

import json
from itertools import combinations

import traitlets
from ipywidgets import jslink

from formulary.amounts import write


class Dashboard:
    """`explorers` (name to Explorer) shown one under the other; controls of one name move together, also without a kernel."""

    def __init__(self, explorers):
        self.explorers = dict(explorers)
        self._links = [link for pair in combinations(self.explorers.values(), 2) for link in _links(*pair)]

    def _ipython_display_(self):
        from IPython.display import display  # here, since nothing else in this package needs IPython

        display(*self.explorers.values())

    def plan(self, **words):
        """Settings, figures in base units and a sentence of every explorer, by its name, and what you say in `words` beside them."""
        return {**{name: _stands(explorer) for name, explorer in self.explorers.items()}, **words}

    def export(self, **words):
        """The same as JSON text, to hand in."""
        return json.dumps(self.plan(**words), indent=2, ensure_ascii=False)


def _links(one, other):
    """Both kinds of link: the kernel's, so that Python sees the change, and the page's, which works without."""
    for name in one.controls.keys() & other.controls.keys():
        yield traitlets.link((one, name), (other, name))
        yield jslink((one, name), (other, name))


def _stands(explorer):
    """What one explorer says as it stands."""
    shown = {name: value for name, value in explorer.values.items() if value is not None}
    told = {name: write(value, explorer.formulas[name].unit) for name, value in shown.items()}
    return {"settings": explorer.settings, "figures": shown, "told": told, "says": explorer.view.sentence(explorer.scene())}
