"""An explorer's front end in a real browser, with no Jupyter and no kernel behind it."""

import random

import pytest

from explorers import (
    EXPLORERS,
    Choice,
    bits_explorer,
    gather_explorer,
    memory_explorer,
    pipeline_explorer,
    ring_blocks_explorer,
    sharding_explorer,
)
from formulary.hardware import GPUS
from formulary.memory import RECIPE, ZERO_STATE
from formulary.models import MODEL_PARAMS
from formulary.shapes import MODELS

SLIDERS = "input[type=range]"
FIGURES = ".psi-report > :not(.psi-aloud)"  # what is read aloud follows a while after them


@pytest.fixture
def explorer():
    presets = {"model": {"small": {"num_params": "1B"}, "large": {"num_params": "70B", "world_size": 64}}}
    return memory_explorer(num_params="7B", world_size=8, stage=1, memory_capacity="80GB", presets=presets)


def get(page, name):
    return page.evaluate("(name) => shown.model.get(name)", name)


def headline(page):
    return page.locator(".psi-headline").text_content()


def expected(page):
    """What Python says at the settings the page stands at."""
    given = {name: get(page, name) for name in ("num_params", "world_size", "stage")}
    return ZERO_STATE(**given, **RECIPE[get(page, "recipe")].values)


def test_a_key_on_a_slider_moves_setting_figures_and_picture(bare, explorer):
    page = bare(explorer)
    before, picture = headline(page), page.locator("svg").inner_html()
    page.get_by_role("slider", name="Parameters").press("ArrowRight")
    assert get(page, "num_params") == 7.5e9
    assert get(page, "zero_state_bytes") == pytest.approx(expected(page))
    assert (before, headline(page)) == ("38.5 GB", "41.25 GB")
    assert page.locator("svg").inner_html() != picture


def test_it_is_live_when_no_kernel_takes_its_changes(bare, explorer):
    page = bare(explorer, orphan=True)
    page.get_by_role("slider", name="GPUs").press("End")
    assert get(page, "world_size") == 1024
    assert get(page, "zero_state_bytes") == pytest.approx(expected(page))


def test_every_slider_can_be_walked_to_both_ends(bare, explorer):
    page = bare(explorer)
    for slider in page.locator(SLIDERS).all():
        name = slider.get_attribute("data-name")
        stops = explorer.controls[name].stops
        slider.press("Home")
        assert get(page, name) == stops[0]
        slider.press("ArrowRight")
        assert get(page, name) == stops[1]
        slider.press("End")
        assert get(page, name) == stops[-1]


def test_typed_amounts_are_taken_and_nonsense_is_refused_in_words(bare, explorer):
    page = bare(explorer)
    box = page.get_by_label("Parameters, typed")
    box.fill("175B")
    box.press("Enter")
    assert get(page, "num_params") == 175e9
    box.fill("many")
    box.press("Tab")
    assert box.get_attribute("aria-invalid") == "true"
    assert "cannot stand here; write an amount such as 100M or 200B" in page.get_by_role("alert").first.text_content()
    assert get(page, "num_params") == 175e9
    box.fill("7")
    box.press("Enter")
    assert (box.get_attribute("aria-invalid"), get(page, "num_params")) == ("false", 7)
    box.press("ArrowUp")
    assert get(page, "num_params") == 10**8
    page.get_by_label("Memory of a card, typed").fill("80 GiB")
    page.get_by_label("Memory of a card, typed").press("Enter")
    assert get(page, "memory_capacity") == 80 * 2**30


def test_a_recipe_changes_all_its_sizes(bare, explorer):
    page = bare(explorer)
    page.get_by_label("Recipe").select_option(label="mixed adam 8bit")
    assert get(page, "recipe") == "mixed_adam_8bit"
    assert get(page, "zero_state_bytes") == pytest.approx(expected(page))


def test_a_preset_moves_several_controls_and_yields_to_the_readers_own(bare, explorer):
    page = bare(explorer)
    preset = page.get_by_label("Model")
    shown = lambda: preset.locator("option:checked").text_content()
    assert shown() == "your own"
    preset.select_option(label="large")
    assert (get(page, "num_params"), get(page, "world_size"), shown()) == (70e9, 64, "large")
    assert page.get_by_label("GPUs, typed").input_value() == "64"
    page.get_by_role("slider", name="GPUs").press("ArrowRight")
    assert shown() == "your own"


def test_of_presets_that_agree_the_chosen_one_is_shown(bare):
    page = bare(memory_explorer())
    card = page.get_by_label("Card", exact=True)
    card.select_option(label="H100 PCIe")
    assert get(page, "memory_capacity") == GPUS["H100 PCIe"]["memory_capacity"]
    assert card.locator("option:checked").text_content() == "H100 PCIe"
    page.get_by_label("Model", exact=True).select_option(label="Llama 2 7B")
    assert get(page, "num_params") == MODEL_PARAMS(**MODELS["Llama 2 7B"].only(MODEL_PARAMS))


def test_the_lamp_says_in_words_what_fits(bare, explorer):
    page = bare(explorer)
    assert page.locator(".psi-lamp").text_content() == "fits, 41.5 GB left"
    page.get_by_label("ZeRO stage").select_option(value="0")
    assert page.locator(".psi-lamp").text_content() == "does not fit, 32 GB too much"
    page.wait_for_function("() => document.querySelector('output').textContent.includes('it does not fit in 80 GB')")


def test_a_value_set_from_outside_is_shown(bare, explorer):
    page = bare(explorer)
    page.evaluate("shown.model.set('num_params', 13000000000)")
    assert page.get_by_label("Parameters, typed").input_value() == "13B"
    assert page.get_by_role("slider", name="Parameters").get_attribute("aria-valuetext") == "13B"
    assert headline(page) == "71.5 GB"


def test_a_change_is_saved_once_with_its_results_and_no_change_is_not_saved(bare, explorer):
    page = bare(explorer)
    before = page.evaluate("shown.model.saves")
    page.get_by_role("slider", name="Parameters").press("ArrowRight")
    assert page.evaluate("shown.model.saves") - before == 1
    page.evaluate("shown.model.set('num_params', shown.model.get('num_params'))")
    assert page.evaluate("shown.model.saves") - before == 1


def test_keys_stay_inside_but_saving_is_the_notebooks(bare, explorer):
    page = bare(explorer)
    page.evaluate("window.leaked = []; document.addEventListener('keydown', (event) => leaked.push(event.key))")
    slider = page.get_by_role("slider", name="Parameters")
    for key in ("d", "d", "x", "ArrowUp", "Enter"):
        slider.press(key)
    slider.press("Control+s")
    assert page.evaluate("leaked") == ["Control", "s"] or page.evaluate("leaked") == ["s"]


def test_elements_are_kept_from_one_picture_to_the_next(bare, explorer):
    page = bare(explorer)
    page.evaluate("window.bars = [...document.querySelectorAll('svg rect')]")
    page.get_by_role("slider", name="Parameters").press("ArrowRight")
    assert page.evaluate("bars.every((bar, i) => bar === document.querySelectorAll('svg rect')[i])")


def settings_of(explorer):
    """Settings to look at: as it is made, each control alone at each end, then random ones, always the same."""
    draw, stops = random.Random(16), {}
    for name, control in explorer.controls.items():
        stops[name] = [row[0] for row in control.options] if isinstance(control, Choice) else control.stops
    ends = [{**explorer.settings, name: row[i]} for name, row in stops.items() for i in (0, -1)]
    return [explorer.settings, *ends, *({name: draw.choice(row) for name, row in stops.items()} for _ in range(4))]


# For each of the settings: the texts that leave the picture, cover another or are struck through by a level line.
COLLIDING = """async (many) => {
  const svg = document.querySelector("#place svg"), found = [];
  const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
  const meet = (a, b) => shared(a, b, "left", "right") > 0.5 && shared(a, b, "top", "bottom") > 2.5;
  const inside = (r, frame) => shared(r, frame, "left", "right") > r.width - 0.5 && shared(r, frame, "top", "bottom") > r.height - 0.5;
  const strikes = (line, r) => line.height === 0 && line.top > r.top + 3 && line.top < r.bottom - 3 && shared(line, r, "left", "right") > 0;
  for (const settings of many) {
    for (const [name, value] of Object.entries(settings)) shown.model.set(name, value);
    await new Promise((done) => setTimeout(done));
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    const lines = [...svg.querySelectorAll("line.psi-limit")].map((line) => line.getBoundingClientRect());
    texts.forEach(([text, r], i) => {
      if (!inside(r, frame)) found.push([text, "outside", settings]);
      if (lines.some((line) => strikes(line, r))) found.push([text, "struck through", settings]);
      for (const [other, q] of texts.slice(0, i)) if (meet(r, q)) found.push([text, other, settings]);
    });
  }
  return found;
}"""


def test_every_explorers_first_slider_moves_it_and_no_label_covers_another(bare, open_page):
    page, still, colliding = open_page(375), [], {}
    seen = lambda: (page.locator(FIGURES).all_text_contents(), page.locator("svg").inner_html())
    for name, make in EXPLORERS.items():
        explorer = make()
        bare(explorer, page=page)
        before, slider = seen(), page.locator(SLIDERS).first
        slider.press("ArrowRight")
        if seen() == before:
            slider.press("ArrowLeft")  # it stood at its end
        still += [name] if any(now == then for now, then in zip(seen(), before, strict=True)) else []
        colliding[name] = page.evaluate(COLLIDING, settings_of(explorer))
    assert still == []
    assert {name: found for name, found in colliding.items() if found} == {}


def test_a_player_plays_to_the_end_and_starts_again(bare, open_page):
    """The page's clock stands still but for the steps it is told to run."""
    player, page = ring_blocks_explorer(3, round=3), open_page()
    page.clock.install(time=0)
    page.clock.pause_at(1)
    run = lambda steps: page.clock.run_for(steps * player.controls["round"].pace)
    bare(player, page=page)
    page.get_by_role("button", name="play").click()
    run(1)
    assert (get(page, "round"), headline(page)) == (4, "9")
    page.get_by_role("button", name="play").click()
    run(1)
    page.get_by_role("button", name="pause").click()
    run(3)
    assert page.get_by_role("slider", name="Rounds done").get_attribute("aria-valuetext") == "1 of 4"


@pytest.mark.parametrize(
    ("make", "width", "theme"), [(pipeline_explorer, 1000, "dark"), (gather_explorer, 375, "light"), (bits_explorer, 375, "dark")]
)
def test_timelines_and_grids_are_accessible(bare, accessibility, make, width, theme, tmp_path):
    page = bare(make(), width=width, theme=theme)
    page.screenshot(path=tmp_path / "shown.png", full_page=True)
    assert accessibility(page, "#place") == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"


def test_closing_lets_go_of_the_model(bare, explorer):
    page = bare(explorer)
    page.evaluate("shown.close()")
    assert page.evaluate("Object.values(shown.model.listeners).flat().length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1000, 375])
@pytest.mark.parametrize("make", [memory_explorer, sharding_explorer])
def test_accessible_at_every_width_in_every_theme(bare, accessibility, make, width, theme, tmp_path):
    page = bare(make(), width=width, theme=theme)
    page.screenshot(path=tmp_path / f"{make.__name__}_{width}_{theme}.png", full_page=True)
    assert accessibility(page, "#place") == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    for control in page.locator("#place input, #place select").all():
        assert control.evaluate("(e) => e.ariaLabel || e.labels[0].textContent")
    assert page.locator("svg[role=img] > title").text_content() and page.locator("svg[role=img] > desc").text_content()


def test_a_curves_marker_follows_its_slider(bare):
    page = bare(sharding_explorer(num_params="7B", world_size=8, stage=3, memory_capacity="80GB"))
    where = lambda: float(page.locator("circle").last.get_attribute("cx"))
    before = where()
    assert headline(page) == "14 GB"
    page.get_by_role("slider", name="GPUs").press("End")
    assert where() > before
    assert headline(page) == "109.4 MB"
