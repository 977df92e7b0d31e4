"""No world number outside facts, no formula outside formulary; and the finder of such strays finds planted ones."""

import pytest

from tools import stray_numbers
from tools.stray_numbers import in_engine, in_formulary, in_javascript, in_lesson


def found(check, source):
    return [text for _, text, _ in check(source)]


def test_project_has_no_strays():
    assert [str(stray) for stray in stray_numbers.strays()] == []


def test_every_allowance_is_used():
    assert stray_numbers.unused_allowances() == []


@pytest.mark.parametrize("number", ["312e12", "1000", "4_096", "5e-6", "2**30", "10**9", "1 << 30", "1e0"])
def test_fact_sized_numbers_in_code(number):
    for check in (in_formulary, in_engine, in_lesson):
        assert number in found(check, f"peak = {number}\n")


@pytest.mark.parametrize(
    "code", ["width = 640", "ratio = 0.5", "x = 999", "flag = True", "power = x**2", "text = '2020'", "n = 10**digits"]
)
def test_small_numbers_are_left_alone(code):
    assert found(in_engine, code) == []


@pytest.mark.parametrize("text", ["80GiB", "989 TFLOP/s", "50 GB/s", "67.5 min"])
def test_amounts_as_text(text):
    assert found(in_engine, f"card = {text!r}\n") == [text]
    assert len(found(in_lesson, f"# %%\nledger.at(memory_capacity={text!r})\n")) == 1


@pytest.mark.parametrize("text", ["7B", "12", "GB", "step 3", "mixed_adam_8bit", "{state_bytes:GiB}"])
def test_counts_and_words_are_no_facts(text):
    assert found(in_lesson, f"# %%\nshow({text!r})\n") == []


@pytest.mark.parametrize(
    "code",
    [
        "16 * num_params",
        "num_params / world_size",
        "self.num_params // 2",
        "values['num_params'] * size",
        "2 * (num_params + 1)",
        "world_size**2",
        "num_params *= 16",
    ],
)
def test_formulas_in_the_engine(code):
    assert len(found(in_engine, code)) == 1


@pytest.mark.parametrize(
    "code", ["height * share", "left + width / 2", "2 * len(values['num_params'])", "stage + 1", "'-' * 20", "[row] * world_size"]
)
def test_layout_is_no_formula(code):
    assert found(in_engine, code) == []


@pytest.mark.parametrize("code", ["const s = 16 * num_params;", "v.num_params / v.world_size", "return num_params * 2", "a / v.world_size"])
def test_formulas_in_javascript(code):
    assert len(found(in_javascript, code)) == 1


@pytest.mark.parametrize("number", ["80000", "1e9", "3.5e-6"])
def test_fact_sized_numbers_in_javascript(number):
    assert found(in_javascript, f"const size = {number};") == [number]


@pytest.mark.parametrize("code", ["const x = width * 0.5; // num_params", 'fill("#123456")', "inputs.num_params.value", "rows[12] * 100"])
def test_drawing_in_javascript_is_left_alone(code):
    assert found(in_javascript, code) == []


@pytest.mark.parametrize(
    "prose",
    [
        "It takes 112 GB.",
        "an 80GiB card",
        "a 7B model",
        "7 billion",
        "400 Gb/s",
        "about 20 days",
        "16 bytes each",
        "on 64 GPUs",
        "30 % more",
        "$16\\Psi$",
        "16Ψ",
        "2x faster",
        "$2 \\times$ that",
        "after 5 minutes",
    ],
)
def test_numbers_in_prose(prose):
    source = f"# %% [markdown]\n# # Title\n\n# %% [markdown]\n# {prose}\n"
    assert len(found(in_lesson, source)) == 1


@pytest.mark.parametrize(
    "prose",
    ["ZeRO-3 shards the weights.", "Chapter 7, section 2", "16-bit weights, fp32 and bf16", "Rajbhandari et al., 2020", "step 3", "$k^2$"],
)
def test_names_and_years_in_prose_are_left_alone(prose):
    assert found(in_lesson, f"# %% [markdown]\n# {prose}\n") == []


def test_only_the_first_cell_says_how_many_minutes_it_takes():
    assert found(in_lesson, "# %% [markdown]\n# This takes about 40 minutes.\n") == []
    assert found(in_lesson, "# %% [markdown]\n# Title\n\n# %% [markdown]\n# This takes about 40 minutes.\n") == ["40 minutes"]


def test_numbers_in_sentences_of_code():
    assert found(in_lesson, "# %%\nClaim('a node holds 640 GB')\n") == ["640 GB"]
    assert found(in_lesson, "# %%\nClaim('a node holds {state_bytes}')\n") == []


@pytest.mark.parametrize("code", ["16 * psi", "total / ranks", "measured - predicted", "2 ** n", "7 % k"])
def test_arithmetic_in_lessons(code):
    assert found(in_lesson, f"# %%\n{code}\n") == [code]


@pytest.mark.parametrize("code", ["def f(x): return x", "g = lambda x: x", "class A: pass"])
def test_definitions_in_lessons(code):
    assert len(found(in_lesson, f"# %%\n{code}\n")) == 1
    assert found(in_lesson, f'# %% tags=["definition"]\n{code}\n') == []


@pytest.mark.parametrize(
    ("code", "strays"), [("x = query @ key / scale", 0), ("x = 16 * num_params", 1), ("x = layer - num_params / 2", 1)]
)
def test_what_a_definition_may_calculate_with(code, strays):
    assert len(found(in_lesson, f'# %% tags=["definition"]\n{code}\n')) == strays


def test_a_stray_names_its_place():
    stray = stray_numbers.Stray("chapters/01_memory.py", 7, "80 GB", stray_numbers.TYPED)
    assert str(stray).startswith("chapters/01_memory.py:7: 80 GB: ")
