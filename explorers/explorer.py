"""An explorer: formulas, controls and a view, as one Jupyter widget that is live with and without a kernel.

The front end computes with JavaScript generated from the formulas; Python computes the same from the same expressions.
Every control and every result is a synced trait, so `observe`, `jslink` and assignment work on all of them.
"""

import io
import math

import anywidget
import traitlets

from formulary import Formula, InputError, Ledger, look_up, nearest
from formulary.quantity import GLOSSARY

from . import frontend
from .control import Setting, Step
from .palette import BAD, GOOD, PALETTE
from .plan import compiled
from .table import Table


class Explorer(anywidget.AnyWidget):
    """`subject` (a Ledger, a Formula or several) under `controls`, drawn by `view`.

    presets: label to {name: values}, such as Bundles of facts; choosing one moves the controls it has values for.
    fixed: values of inputs that no control moves. made_by: the call that makes this explorer, for `share`.
    Raises InputError if an input of a formula is moved by no control and fixed nowhere.
    """

    def __init__(self, subject, controls, view, *, title, presets=None, fixed=None, made_by="explorer.set"):
        self.controls = {control.name: control for control in controls}
        self.formulas = _formulas(subject, view)
        self.view, self.title, self.made_by, self.presets = view, title, made_by, dict(presets or {})
        self.fixed = {**{k: v for f in self.formulas.values() for k, v in f.defaults.items()}, **(fixed or {})}
        self._declare()
        super().__init__()
        self._check_inputs()
        self._settle()
        self.observe(self._settle, names=list(self.controls))

    def _declare(self):
        taken = [name for name in (*self.controls, *self.formulas) if hasattr(self, name)]
        if taken:
            raise InputError(f"{taken[0]!r} is a name every widget already uses; it cannot be a control or a result")
        self.add_traits(
            _esm=traitlets.Unicode(frontend.module(self._written(), self.view.kind, self._units(), self._expressions())).tag(sync=True),
            _css=traitlets.Unicode(frontend.static("explorer.css")).tag(sync=True),
            spec=traitlets.Dict(self._spec()).tag(sync=True),
            **{name: Setting(control).tag(sync=True) for name, control in self.controls.items()},
            **{name: traitlets.Float(None, allow_none=True).tag(sync=True) for name in self.results},
        )

    def _written(self):
        """Every formula the front end evaluates; a view may have `inner` ones, at values that only it knows."""
        return {**self.formulas, **{formula.name: formula for formula in getattr(self.view, "inner", ())}}

    def _units(self):
        """The units of everything the front end writes or reads."""
        shown = {formula.unit for formula in self.formulas.values()}
        moved = {name for control in self.controls.values() for name in control.gives(control.settle(control.start))}
        drawn = set(getattr(self.view, "units", ()))
        return sorted(shown | drawn | {look_up(name).unit for name in moved if name in GLOSSARY}, key=str)

    def _expressions(self):
        """What views and controls are written in, by key, for the front end."""
        parts = (self.view, *self.controls.values())
        return {key: expr for part in parts for key, expr in getattr(part, "expressions", {}).items()}

    def _spec(self):
        return {
            "title": self.title,
            "controls": [control.spec() for control in self.controls.values()],
            "results": self.results,
            "fixed": self.fixed,
            "presets": [{"label": label, "options": self._options(bundles)} for label, bundles in self.presets.items()],
            "view": {**self.view.spec(), "palette": PALETTE},
            "colours": {"blue": PALETTE[0], "green": GOOD, "red": BAD},
        }

    def _options(self, bundles):
        known = lambda values: {name: self.controls[name].settle(values[name]) for name in values if name in self.controls}
        return [{"label": name, "sets": known(values)} for name, values in bundles.items()]

    def _check_inputs(self):
        for formula in self.formulas.values():
            missing = [name for name in formula.inputs if name not in self.state]
            if missing:
                raise InputError(f"explorer {self.title!r}: {formula.name} needs {missing[0]}; add a control for it or fix it")

    # --- the numbers -------------------------------------------------------------------------------------------

    @property
    def settings(self):
        """What the controls stand at, by name."""
        return {name: getattr(self, name) for name in self.controls}

    @property
    def state(self):
        """The value of every quantity that a control or the explorer fixes, by name."""
        given = [control.gives(getattr(self, name)) for name, control in self.controls.items()]
        state = {**self.fixed, **{name: value for values in given for name, value in values.items()}}
        return state | {name: min(state[name], compiled(most)(state)) for name, most in self._ends.items()}

    @property
    def _ends(self):
        """How far each control goes whose end moves with the others, by name."""
        controls = self.controls.values()
        return {control.name: expr for control in controls if isinstance(control, Step) for expr in control.expressions.values()}

    @property
    def results(self):
        """The names of the formulas whose results are traits: all but those whose result a control moves."""
        return [name for name in self.formulas if name not in self.controls]

    @property
    def values(self):
        """The result of every formula, by name; None where it has no finite value."""
        return {name: getattr(self, name) for name in self.results}

    def evaluate(self, name, **given):
        """Formula `name` at the present state, some quantities replaced by `given`; nan where it has no finite value."""
        formula, values = self.formulas[name], {**self.state, **given}
        try:
            return formula(**{k: values[k] for k in formula.inputs})
        except InputError:
            return math.nan

    def _settle(self, change=None):
        """Bring the results up to date. The front end computes them too: what differs in the last digit only is left alone."""
        with self.hold_sync():
            for name in self.results:
                new, old = self.evaluate(name), getattr(self, name)
                new = float(new) if math.isfinite(new) else None
                if new is None or old is None or not math.isclose(new, old):
                    setattr(self, name, new)

    def set(self, **settings):
        """Move several controls at once: `explorer.set(num_params="13B", stage=3)`; a Bundle of facts may be unpacked into it."""
        unknown = [name for name in settings if name not in self.controls]
        if unknown:
            raise InputError(f"no control {unknown[0]!r}{nearest(unknown[0], self.controls)} (there are {', '.join(self.controls)})")
        with self.hold_trait_notifications():
            for name, value in settings.items():
                setattr(self, name, value)

    # --- without a front end -----------------------------------------------------------------------------------

    def scene(self):
        """What the view shows at the present state, as plain numbers and texts."""
        return self.view.scene(self.state, self.evaluate)

    def figure(self, width=7.2, height=3.6):
        """The picture as a matplotlib Figure of `width` x `height` inches, for print."""
        from matplotlib.figure import Figure  # here, since it takes longer to import than all the rest

        figure = Figure(figsize=(width, height), layout="constrained")
        self.view.draw(figure.add_subplot(), self.scene())
        return figure

    def table(self):
        """The numbers behind the picture, as a Table that shows itself."""
        return Table(self.title, *self.view.table(self.scene()))

    def share(self):
        """One line of code that makes this explorer as it stands."""
        return f"{self.made_by}({', '.join(f'{name}={value!r}' for name, value in self.settings.items())})"

    def _repr_mimebundle_(self, **kwargs):
        """The widget, with its picture and table beside it for readers whose page shows no widgets."""
        data, metadata = super()._repr_mimebundle_(**kwargs)
        picture = io.BytesIO()
        self.figure().savefig(picture, format="png", dpi=110)
        return (
            {**data, "image/png": picture.getvalue(), "text/plain": str(self.table())},
            {**metadata, "image/png": {"alt": f"{self.title}. {self.view.sentence(self.scene())}"}},
        )


def _formulas(subject, view):
    """Every formula the explorer evaluates, by name: the subject's own and those the view asks for."""
    if isinstance(subject, Ledger):
        subject = [*subject.parts.values(), subject.total]
    elif isinstance(subject, Formula):
        subject = [subject]
    return {formula.name: formula for formula in (*subject, *view.formulas)}
