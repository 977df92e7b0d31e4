"""The first lab, run for real: what the ranks hold is what the formulas say, to the byte."""

import html
import json

import pytest

from formulary import InputError, Outcome
from formulary.memory import ZERO_LEDGER
from labs import load
from labs.measurement import Measurement, MeasurementError
from labs.report import Report, ranks_in_short

MODEL_STATES = load("model_states")


@pytest.fixture(scope="module", params=[2, 4])
def report(request):
    found = MODEL_STATES.run(request.param, launcher="fork", timeout=300)
    assert found.measurement, found.failure
    return found


@pytest.mark.parametrize("variant", ["ddp", "zero1", "fsdp2"])
def test_every_byte_is_as_predicted(report, variant):
    lines = [x for x in report.lines if x.variant == variant]
    assert {x.rank for x in lines} == set(range(report.conditions["world_size"]))
    assert [x.measured for x in lines] == [x.predicted for x in lines]
    assert all(x.measured > 0 for x in lines if x.part == "weights")


def test_every_number_that_was_measured_is_predicted(report):
    assert set(report.measurement.numbers) - {p.key for p in report.predictions} == {f"{v}/last loss" for v in ("ddp", "zero1", "fsdp2")}


def test_the_variants_train_alike(report):
    losses = [report.measurement.numbers[f"{variant}/last loss"] for variant in ("ddp", "zero1", "fsdp2")]
    assert losses == pytest.approx(losses[:1] * 3, rel=1e-4)


def test_paper_and_library_differ_by_what_is_named(report):
    """The paper's figures are those of the ledger, and the named changes lead from there to the prediction."""
    num_params, world_size = report.lines[0].predicted, report.conditions["world_size"]
    for stage, variant in ((0, "ddp"), (1, "zero1"), (3, "fsdp2")):
        for x in (x for x in report.totals if x.variant == variant):
            assert x.paper == pytest.approx(ZERO_LEDGER.total(num_params=num_params, world_size=world_size, stage=stage))
            assert x.paper + sum(x.changes.values()) == pytest.approx(x.predicted)
    assert all(x.changes for x in report.lines if x.paper != x.predicted)
    assert set(report.differences) >= {"precision", "whole tensors", "step counters"}


def test_rows_that_do_not_divide(report):
    """The vocabulary divides by 2 and not by 4."""
    assert ("rows rounded up" in report.differences) == ("padding" in report.differences) == (report.conditions["world_size"] == 4)


def test_it_reads_as_a_table(report):
    assert report.outcome is Outcome.PASSED
    for text in (str(report), report._repr_html_(), report._repr_markdown_()):
        assert "zero1:\N{NO-BREAK SPACE}total" in text and "not measured" not in text
        assert all(why in html.unescape(text) for why in report.differences.values())


def test_its_picture_has_a_pair_of_bars_for_each_rank(report):
    figure = report.figure()
    parts = {x.part for x in report.lines if x.rank is not None}
    assert len(figure.axes[0].patches) == 2 * len(parts) * len(report.totals)
    assert "<svg" in figure._repr_svg_()


def test_a_saved_measurement_gives_the_same_report(report, tmp_path):
    again = MODEL_STATES.report(Measurement.load(report.measurement.save(tmp_path)))
    assert again.as_json()["lines"] == report.as_json()["lines"]
    assert set(json.loads(next(tmp_path.iterdir()).read_text())) == {
        *("lab", "taken", "seconds", "machine", "versions", "commit", "conditions", "numbers")
    }


def test_a_guess_is_judged(report):
    x = next(x for x in report.totals if x.variant == "zero1" and x.rank == 0)
    assert report.guesses({"zero1": x.measured}).verdicts["zero1"].passed
    on_paper = report.guesses({"zero1": f"{x.paper} B", "ddp": None}).verdicts
    assert list(on_paper) == ["zero1"] and not on_paper["zero1"].passed
    assert "the figure on paper" in on_paper["zero1"].reason and "precision" in on_paper["zero1"].reason
    assert report.guesses({"zero1": x.measured, "ddp": 1, "zero1/0/weights": None}).points == 1
    line = next(x for x in report.lines if x.part == "gradients")
    assert report.guesses({line.key: line.measured}).points == 1
    with pytest.raises(InputError, match="did you mean fsdp2"):
        report.guesses({"fsdp": 1})


def test_an_explanation_earns_a_point_for_each_difference_it_names(report):
    some = report.explained("Whole tensors are dealt out, and the PRECISION is another.")
    assert some.points == 2 and report.explained("no idea").points == 0
    assert report.explained(", ".join(report.differences)).points == len(report.differences)
    assert all(why in some._repr_markdown_() for why in report.differences.values())


def test_through_torchrun():
    found = MODEL_STATES.run(2, launcher="torchrun", timeout=300, variants="fsdp2", vocab_size=37)
    assert found.outcome is Outcome.PASSED, found.reason
    assert {"rows rounded up", "padding"} <= set(found.differences)


def test_one_process_shares_with_nobody():
    found = MODEL_STATES.run(1, launcher="fork", timeout=300)
    assert found.outcome is Outcome.PASSED, found.reason
    assert len({x.measured for x in found.totals}) == 1


def test_a_byte_off_is_a_failure(report):
    numbers = dict(report.measurement.numbers)
    numbers["zero1/0/weights"] += 1
    wrong = Measurement(**{**vars(report.measurement), "numbers": numbers})
    found = MODEL_STATES.report(wrong)
    assert found.outcome is Outcome.FAILED
    assert "1 of" in found.reason and "zero1/0/weights" in found.reason


def test_what_a_machine_cannot_measure_is_no_failure_and_no_success(report):
    numbers = report.measurement.numbers | {"zero1/0/weights": "no scales at hand"}
    found = MODEL_STATES.report(Measurement(**{**vars(report.measurement), "numbers": numbers}))
    assert found.outcome is Outcome.PASSED
    assert (
        f"{len(found.lines) - 1} of {len(found.lines) - 1} predictions" in found.reason
        and "1 could not be measured here: no scales at hand" in found.reason
    )
    (row,) = [row for row in found.rows() if row[0].endswith("zero1:\N{NO-BREAK SPACE}weights") and row[1].startswith("0")]
    assert "not measured" in row and "no scales at hand" in row


def test_a_broken_run_is_a_broken_verdict():
    conditions = MODEL_STATES.under(2)
    found = Report(MODEL_STATES, conditions, MODEL_STATES.predictions(2), None, "rank 1 was killed")
    assert found.outcome is Outcome.BROKEN and found.reason == "rank 1 was killed"
    for text in (str(found), found._repr_html_(), found._repr_markdown_()):
        assert "not measured" in text and "rank 1 was killed" in text
    assert found.figure().axes


@pytest.mark.parametrize(
    "given, said",
    [
        ({"vocab": 3}, "did you mean vocab_size"),
        ({"vocab_size": "many"}, "must be like 502"),
        ({"vocab_size": 0}, "at least 1"),
        ({"variants": "fsdp"}, "did you mean fsdp2"),
    ],
)
def test_conditions_that_make_no_sense(given, said):
    with pytest.raises(InputError, match=said):
        MODEL_STATES.predictions(2, **given)


@pytest.mark.parametrize("text, said", [("{}", "lacks"), ("nonsense", "no measurement"), ("[]", "lacks")])
def test_a_file_that_is_no_measurement(tmp_path, text, said):
    file = tmp_path / "some.json"
    file.write_text(text)
    with pytest.raises(MeasurementError, match=said):
        Measurement.load(file)


@pytest.mark.parametrize(("ranks", "said"), [([None], ""), ([2], "2"), ([0, 1, 2], "0–2"), ([0, 1, 3, 5, 6], "0–1, 3, 5–6")])
def test_ranks_in_short(ranks, said):
    assert ranks_in_short(ranks) == said
