"""Claims in circulation: all there, each with the verdict expected, found by computing; and the rule that finds it."""

import json
import re
from collections import Counter

import pytest

import psi
from formulary import InputError, UnitError, formula, load_all
from formulary.amounts import AmountError
from formulary.arithmetic import NotArithmetic
from formulary.claims import BASES, VERDICTS, AuditedClaim, Figure, claim, claims, rulings
from formulary.claims.stated import read_stated
from formulary.reckon import Calculation, say
from formulary.units import BYTE, PURE

load_all()
ALL = claims()
IDS = [f"C{source:03d}-{number:03d}" for source, last in ((0, 75), (2, 136), (3, 86), (4, 40)) for number in range(1, last + 1)]
HOLDS = {"true", "true_with_rounding"}


def test_all_claims_are_there():
    assert len(IDS) == 337
    assert sorted(c.id for c in ALL) == IDS


def test_every_ruling_is_drawn_on():
    assert sorted(rulings()) == [f"X{number:02d}" for number in range(1, 53)]
    assert set(rulings()) == {ruling for c in ALL for ruling in c.rulings}
    assert all(text and "{" not in text for text in rulings().values())


@pytest.mark.parametrize("name", IDS)
def test_verdict(name):
    """The computed verdict is the one expected, or the row notes why it is not, and that is never more than a matter of rounding."""
    one = claim(name)
    assert one.ruled in VERDICTS
    assert (one.verdict == one.ruled) != bool(one.differs), f"computed {one.verdict}, expected {one.ruled}: {one.row()}"
    assert not one.differs or {one.verdict, one.ruled} == HOLDS


@pytest.mark.parametrize("name", IDS)
def test_claim_is_whole(name):
    """A sentence with a figure for every blank, a reason, and slips that do give the figure claimed."""
    one = claim(name)
    assert one.says.count("{}") == sum(not figure.of for figure in one.figures)
    assert one.sentence and one.reason
    for text in (one.sentence, one.computed, one.reason):
        assert not set("{}|\n") & set(text)
    for finding in one.findings:
        assert not finding.figure.slip or "comes of" in finding.note, finding
        assert bool(finding.figure.computed) == bool(finding.computed)
    if one.basis in ("demonstrated", "qualitative") and one.verdict != "true":
        assert one.why


@pytest.mark.parametrize("name", IDS)
def test_the_right_number_is_right(name):
    """Whoever states what is computed is told that it is true, and whoever states half as much again that it isn't."""
    for finding in claim(name).findings:
        if finding.computed and not finding.figure.otherwise:
            number, unit = re.fullmatch(r"(-?[\d,.e+-]+)(.*)", finding.computed).groups()
            value = float(number.replace(",", ""))
            assert found(f"{value:g}{unit}", finding.figure.computed, claim(name).given)[0] in HOLDS
            assert found(f"{1.5 * value:g}{unit}", finding.figure.computed, claim(name).given)[0] not in HOLDS


def test_what_must_be_measured_says_what():
    assert {c.id for c in ALL if c.measure} == {c.id for c in ALL if c.verdict == "empirical"}
    assert all(c.basis == "measurement" for c in claims(verdict="empirical"))


AMOUNT = re.compile(r"\d\s?(?:[kMGT]i?B|GB/s|%|x\b|TFLOP|min\b|hours?\b)")


def test_no_amount_is_typed_where_one_is_computed():
    """Reasons compute their numbers; what claims say is said in figures and given values."""
    typed = {c.id: AMOUNT.findall(re.sub(r"{[^}]*}", "", c.why)) for c in ALL}
    # assumptions of the figures, a range that is asked back, and a card's size that is only a name
    assert {name for name, found in typed.items() if found} <= {"C002-060", "C002-062", "C003-042"}


def test_figures_fit_their_sentences():
    """ "about about 5" and its like."""
    bounds = "about|over|under|at least|at most"
    twice = re.compile(rf"\b({bounds}|almost|less than|more than) ({bounds})\b|(\b\w+\b) \3\b")
    assert [c.sentence for c in ALL if twice.search(c.sentence)] == []


def test_speaks_only_of_its_subject():
    words = re.compile(r"\b(seeds?|audit|csv|agent|assistant)\b", re.IGNORECASE)
    assert [c.id for c in ALL if words.search(c.sentence + c.reason)] == []


# --- asking for claims ---------------------------------------------------------------------------------------------------


def test_claims_by_what_they_are():
    assert {c.chapter for c in claims(chapter=1)} == {1}
    assert {c.verdict for c in claims(verdict="unit_slip")} == {"unit_slip"}
    assert all("X12" in c.rulings for c in claims(ruling="X12"))
    assert sum(len(claims(basis=basis)) for basis in BASES) == len(ALL)
    assert ALL.counts() == {v: Counter(c.verdict for c in ALL)[v] for v in VERDICTS}
    for asked in ({"verdict": "wrnog"}, {"ruling": "X99"}, {"basis": "guess"}):
        with pytest.raises(InputError, match="no claim has"):
            claims(**asked)
    with pytest.raises(InputError, match="did you mean C000-010"):
        claim("C000-0100")


def test_a_table_shows_itself():
    chosen = claims(chapter=1, verdict="wrong")
    header, rule, *rows = chosen._repr_markdown_().splitlines()
    assert header.count("|") == rule.count("|") == 5
    assert len(rows) == len(chosen) > 0
    assert all(row.count("|") == 5 and "wrong" in row for row in rows)


def test_a_long_table_shows_what_is_chosen_and_folds_the_rest_away():
    wrong = claims(chapter=7, verdict="wrong")
    shown, folded = wrong.first("C004-016", "C002-050")._repr_markdown_().split("<details>")
    rows = lambda text: [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows(shown)] == [claim(name).sentence for name in ("C004-016", "C002-050")]
    assert len(rows(shown)) + len(rows(folded)) == len(wrong) and f"{len(wrong) - 2} more" in folded
    with pytest.raises(InputError, match="C004-016"):
        wrong.first("C004-0166")


# --- the rule ------------------------------------------------------------------------------------------------------------

SEVEN = {"num_params": "7B", "world_size": 8, "accumulation_steps": 1}


def found(claimed, computed, given=SEVEN, **more):
    one = AuditedClaim("", 1, "{}", "true", figures=(Figure(claimed, computed, **more),), given=given)
    return one.verdict, one.reason


@pytest.mark.parametrize(
    ("claimed", "computed", "verdict"),
    [
        ("112 GB", "state_bytes()", "true"),
        ("112 GB", "state_bytes.fp32_adam()", "true"),
        ("104.3 GiB", "state_bytes()", "true"),
        ("104.3 GB", "state_bytes()", "unit_slip"),
        ("109 GB", "state_bytes.mixed_adam()", "true_with_rounding"),
        ("100 GB", "state_bytes.mixed_adam()", "wrong"),
        ("about 100 GB", "state_bytes()", "true_with_rounding"),
        ("about 90 GB", "state_bytes.mixed_adam()", "wrong"),
        ("84 GB", "state_bytes()", "convention"),
        ("84 GB", "state_bytes.mixed_adam()", "wrong"),
        ("over 100 GB", "state_bytes()", "true"),
        ("over 112 GB", "state_bytes()", "wrong"),
        ("at least 112 GB", "state_bytes()", "true"),
        ("under 112 GB", "state_bytes()", "wrong"),
        ("at most 112 GB", "state_bytes()", "true"),
        ("100-120 GB", "state_bytes()", "true"),
        ("100-110 GB", "state_bytes.mixed_adam()", "wrong"),
        ("3/4", "optimizer_share()", "true"),
        ("75%", "optimizer_share()", "true"),
        ("1x", "zero_reduce_bytes(stage=2) / zero_traffic_bytes(stage=2)", "wrong"),
        ("62.8 GB", "zero_state_bytes(stage=2) + '34 GiB'", "true"),
    ],
)
def test_rule(claimed, computed, verdict):
    assert found(claimed, computed)[0] == verdict


def test_a_sum_of_gb_and_gib_is_a_unit_slip():
    shape = {**SEVEN, "hidden_size": 4096, "num_layers": 32, "seq_length": 2048, "micro_batch": 4}
    assert found("60.25 GB", "zero_state_bytes(stage=2) + linear_activation_bytes()", shape)[0] == "unit_slip"


def test_another_count_makes_it_a_convention():
    gradients = {"the gradients alone": "zero_reduce_bytes(stage=2)"}
    verdict, reason = found("12.25 GB", "zero_traffic_bytes.zero_paper(stage=2)", otherwise=gradients)
    assert verdict == "convention" and "the gradients alone" in reason
    verdict, reason = found("24.5 GB", "zero_traffic_bytes.zero_paper(stage=2)", otherwise=gradients)
    assert verdict == "convention" and "12.25 GB" in reason
    assert found("24.5 GB", "zero_traffic_bytes.zero_paper(stage=2)", otherwise={"as much": "ddp_gradient_bytes()"})[0] == "true"


def test_a_convention_is_named():
    verdict, reason = found("84 GB", "state_bytes()")
    assert verdict == "convention" and "no_master_adam" in reason


def test_a_slip_is_named_only_if_it_gives_the_figure():
    doubled = {"counting the weights twice": "2 * weight_bytes()"}
    assert "counting the weights twice" in found("28 GB", "weight_bytes.mixed_adam()", slip=doubled)[1]
    assert "counting" not in found("42 GB", "weight_bytes.mixed_adam()", slip=doubled)[1]


def test_the_worst_figure_decides():
    figures = (Figure("112 GB", "state_bytes()"), Figure("15 GB", "weight_bytes.mixed_adam()"))
    assert AuditedClaim("", 1, "{} {}", "true", figures=figures, given=SEVEN).verdict == "wrong"


@pytest.mark.parametrize("text", ["", "GB", "many", "1/", "about", "12 GB or so", "-5 GB"])
def test_no_number_is_stated(text):
    with pytest.raises((AmountError, UnitError)):
        read_stated(text, BYTE)


def test_a_claim_in_another_unit_is_no_claim():
    with pytest.raises(UnitError, match="pure number"):
        read_stated("12 GB", PURE)


# --- calculations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("no_such_formula()", InputError),
        ("state_bytes.no_such_recipe()", InputError),
        ("state_bytes(7)", NotArithmetic),
        ("state_bytes(num_prams=7)", NotArithmetic),
        ("state_bytes(num_params='7GB')", InputError),
        ("doubling_growth(score_share=weight_bytes())", UnitError),
        ("state_bytes() + 1", UnitError),
        ("state_bytes() + '1 s'", UnitError),
        ("'1 furlong'", AmountError),
        ("__import__('os')", NotArithmetic),
        ("().__class__", NotArithmetic),
        ("[1][0]", NotArithmetic),
        ("9**9**9", NotArithmetic),
        ("1/0", NotArithmetic),
    ],
)
def test_what_is_no_calculation(text, error):
    with pytest.raises(error):
        Calculation(text, SEVEN).amount()


def test_calculation_agrees_with_the_formula():
    expected = formula("zero_state_bytes")(num_params=7e9, world_size=8, stage=2)
    assert Calculation("zero_state_bytes(stage=2)", SEVEN).amount().value == expected
    assert Calculation("2 * zero_state_bytes(stage=1 + 1) / world_size", SEVEN).amount().value == 2 * expected / 8
    assert say("{zero_state_bytes(stage=2):GB} of {num_params:B}", SEVEN) == "26.25 GB of 7B"


# --- psi claims ----------------------------------------------------------------------------------------------------------


def test_cli_counts(capsys):
    assert psi.main(["claims", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["summary"]["total"] == len(said["claims"]) == len(ALL)
    for column in ("verdict", "basis", "chapter"):
        counts = Counter(str(row[column]) for row in said["claims"])
        assert {k: v for k, v in said["summary"][f"by_{column}"].items() if v} == counts


def test_cli_shows(capsys):
    assert psi.main(["claims", "show", "C000-010"]) == 0
    said = capsys.readouterr().out
    assert claim("C000-010").sentence in said and claim("C000-010").reason in said
    assert psi.main(["claims", "--chapter", "1", "--verdict", "wrong"]) == 0
    assert f"{len(claims(1, 'wrong'))} claims" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["show", "C000-0100"], "did you mean C000-010"),
        (["show"], "show C000-010"),
        (["list"], "show C000-010"),
        (["--verdict", "wrnog"], "did you mean wrong"),
        (["--ruling", "X99"], "no claim has 'X99'"),
    ],
    ids=str,
)
def test_cli_errors_are_one_line_that_helps(capsys, argv, says):
    assert psi.main(["claims", *argv]) == 2
    assert says in capsys.readouterr().err.splitlines()[0]
