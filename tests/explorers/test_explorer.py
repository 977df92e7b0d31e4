"""An explorer without a front end: its traits, its numbers, its print."""

import io
import json
from types import SimpleNamespace

import pytest
import traitlets
from matplotlib import pyplot
from PIL import Image

import explorers
from explorers import Choice, Curve, Explorer, Slider, StackedBar
from formulary import InputError, amounts, formula
from formulary.facts import Bundle
from formulary.memory import RECIPE, STATE, STATE_LEDGER, ZERO_HEADROOM, ZERO_LEDGER, ZERO_STATE


@pytest.fixture
def explorer():
    return explorers.memory_explorer(num_params="7B", world_size=8, stage=1, memory_capacity="80GB")


def test_results_are_the_ledgers(explorer):
    given = {"num_params": 7 * 10**9, "world_size": 8, "stage": 1, **RECIPE.default.values}
    parts = ZERO_LEDGER(**given)
    assert explorer.values == pytest.approx(
        {part.name: parts[label] for label, part in ZERO_LEDGER.parts.items()}
        | {"zero_state_bytes": ZERO_STATE(**given), "zero_headroom_bytes": ZERO_HEADROOM(**given, memory_capacity=80 * 10**9)}
    )


def test_assignment_moves_the_results_and_is_observed(explorer):
    seen, expected = {}, ZERO_STATE(num_params="7B", world_size=8, stage=3)
    explorer.observe(lambda change: seen.update({change.name: (change.new, explorer.zero_state_bytes)}), ["stage", "zero_state_bytes"])
    explorer.stage = 3
    assert seen == {"stage": (3, expected), "zero_state_bytes": (expected, expected)}  # a listener finds the results up to date


def test_texts_are_read_and_counts_between_whole_numbers_rounded(explorer):
    explorer.num_params = "13B"
    explorer.world_size = 15.6
    assert (explorer.num_params, explorer.world_size) == (13 * 10**9, 16)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("stage", 4, "must be one of 0, 1, 2, 3"),
        ("world_size", 0, "at least 1"),
        ("num_params", "7 GB", "num_params"),
        ("num_params", None, "must be a number"),
        ("recipe", "mixed_adm", "did you mean"),
    ],
)
def test_a_wrong_value_is_refused_and_changes_nothing(explorer, name, value, message):
    before = explorer.settings
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(explorer, name, value)
    assert explorer.settings == before


def test_an_unknown_control_is_named_with_its_neighbour(explorer):
    with pytest.raises(InputError, match="world_size"):
        explorer.set(worldsize=4)


def test_a_recipe_fixes_all_five_sizes(explorer):
    explorer.recipe = "fp32_adam"
    sizes = RECIPE["fp32_adam"].values
    assert {name: explorer.state[name] for name in sizes} == dict(sizes)


def test_share_makes_the_same_explorer(explorer):
    explorer.set(num_params="13B", recipe="mixed_adam_8bit", stage=2, world_size=64)
    again = eval(explorer.share(), {"explorers": explorers})
    assert (again.settings, again.values) == (explorer.settings, explorer.values)


def test_a_bundle_of_facts_moves_the_controls_it_knows(explorer):
    bundle = Bundle("a model", "a paper", "2024-01-01", num_params="70B", num_layers=80)
    made = explorers.memory_explorer(presets={"model": {"big": bundle}})
    assert made.spec["presets"] == [{"label": "model", "options": [{"label": "big", "sets": {"num_params": 70 * 10**9}}]}]
    explorer.set(**bundle.only(STATE))
    assert explorer.num_params == 70 * 10**9


def test_an_input_that_nothing_fixes_is_an_error():
    with pytest.raises(InputError, match="zero_state_bytes needs num_params"):
        _zero_curve([Slider("world_size", 8), Choice("stage", 0)])
    made = _zero_curve([Slider("world_size", 8), Choice("stage", 0)], fixed={"num_params": 10**9})
    assert made.zero_state_bytes == ZERO_STATE(num_params="1B", world_size=8, stage=0)


def _zero_curve(controls, fixed=None):
    return Explorer(ZERO_STATE, controls, Curve({"states": ZERO_STATE}, controls[0], "states"), title="states", fixed=fixed)


def test_a_name_that_widgets_use_is_refused():
    with pytest.raises(InputError, match="'layout' is a name every widget already uses"):
        Explorer(STATE, [SimpleNamespace(name="layout")], Curve({"states": STATE}, Slider("num_params"), "states"), title="states")


def test_a_formula_without_a_finite_value_gives_none():
    bubble = formula("optimizer_share")
    zero = dict.fromkeys(bubble.inputs, 0)
    controls = [Slider(name, value) for name, value in zero.items()]
    made = Explorer(bubble, controls, Curve({"share": bubble}, controls[0], "share"), title="share")
    assert made.optimizer_share is None
    made.bytes_per_weight = 2
    assert made.optimizer_share == 0


def test_figures_leave_the_callers_pyplot_alone(explorer):
    before = pyplot.get_fignums()
    figure = explorer.figure()
    assert pyplot.get_fignums() == before
    axes = figure.axes[0]
    heights = {round(sum(bar.get_height() for bar in bars)) for bars in zip(*_stacks(axes), strict=True)}
    assert heights == {round(column["total"]) for column in explorer.scene()["columns"]}


def _stacks(axes):
    return [container for container in axes.containers if len(container) > 1]


def test_a_curves_figure_has_a_line_a_case():
    made = explorers.sharding_explorer(world_size=8, stage=3)
    lines = {line.get_label(): line for line in made.figure().axes[0].lines}
    assert lines["ZeRO-3"].get_ydata()[0] == ZERO_STATE(num_params="7B", world_size=1, stage=3)
    assert lines["ZeRO-3"].get_linewidth() > lines["ZeRO-2"].get_linewidth()


def test_the_table_is_the_ledger_for_every_stage(explorer):
    table = explorer.table()
    totals = [amounts.write(ZERO_STATE(num_params="7B", world_size=8, stage=stage), ZERO_STATE.unit) for stage in range(4)]
    assert ["total", *totals] in table.rows
    assert table.rows[-1] == ["fits in 80 GB", "no", "yes", "yes", "yes"]
    for text in (str(table), table._repr_markdown_(), table._repr_html_()):
        assert all(total in text for total in totals)


def test_a_page_without_widgets_gets_the_picture_and_the_numbers(explorer):
    data, metadata = explorer._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.model_id
    assert Image.open(io.BytesIO(data["image/png"])).size[0] > 500
    assert data["text/plain"] == str(explorer.table())
    assert explorer.view.sentence(explorer.scene()) in metadata["image/png"]["alt"]


def test_the_sentence_says_whether_it_fits(explorer):
    assert "38.5 GB (35.86 GiB); it fits in 80 GB with 41.5 GB left" in explorer.view.sentence(explorer.scene())
    explorer.stage = 0
    assert "it does not fit in 80 GB: 32 GB too much" in explorer.view.sentence(explorer.scene())


@pytest.mark.parametrize(
    ("slider", "has"),
    [
        (Slider("world_size", 1, scale="doubling"), [1, 2, 3, 4, 6, 8, 12, 16, 512, 1024]),
        (Slider("num_params", "7B"), [10**8, 10**9, 7 * 10**9, 2 * 10**11]),
        (Slider("num_layers", 1, scale="linear", span=(1, 4)), [1, 2, 3, 4]),
    ],
)
def test_stops_ascend_from_end_to_end_and_are_distinct(slider, has):
    stops = slider.stops
    assert stops == sorted(set(stops)) and set(has) <= set(stops)
    assert (stops[0], stops[-1]) == (has[0], has[-1])


def test_what_the_front_end_is_told_is_json():
    told = explorers.activation_explorer().spec
    room = next(control for control in told["controls"] if control["name"] == "zero_headroom_bytes")
    assert (room["least"], room["most"]) == (None, None)
    json.dumps(told, allow_nan=False)


def test_an_unknown_scale_is_an_error():
    with pytest.raises(InputError, match="must be one of linear, log, doubling"):
        _ = Slider("num_params", 1, scale="cubic").stops


def test_a_ledger_of_one_replica_can_be_explored_too():
    controls = [Slider("num_params", "1B"), Choice(RECIPE), Slider("world_size", 1), Choice("stage", 0), Slider("memory_capacity", "24GB")]
    view = StackedBar(STATE_LEDGER, "stage", {0: "replica"}, "memory_capacity", ZERO_HEADROOM, "states")
    made = Explorer(STATE_LEDGER, controls, view, title="replica")
    assert made.state_bytes == STATE(num_params="1B")


def test_a_curve_marks_its_optimum():
    overhead, best = formula("checkpoint_overhead"), formula("checkpoint_interval")
    given = {"checkpoint_time": 30, "failure_rate": 1e-5, "restart_time": 0}
    every = Slider("checkpoint_interval", "2 h", scale="log")
    view = Curve({"lost": overhead}, every, "share of time lost", marks={"best": best}, log=(True, True), scale="%")
    made = Explorer(overhead, [every], view, title="how often", fixed=given)
    assert "checkpoint_interval" not in made.results  # a control has that name
    (mark,) = made.scene()["marks"]
    assert mark["at"] == best(**{name: given[name] for name in best.inputs})
    assert mark["value"] == min(overhead(**given, checkpoint_interval=mark["at"] * by) for by in (0.9, 1, 1.1))
    assert f"best ({every.title}: {amounts.write(mark['at'], best.unit)})." in view.sentence(made.scene())
    assert made.table().rows[1][1] == amounts.write(mark["value"], scale="%")
