"""Numbers of the bank in every usual spelling, and near misses: read as they were meant, and never waved through."""

from pathlib import Path

import pytest
import yaml

from autograder.bank import Bank
from autograder.rubric import Status, check

BANK = Bank()
CASES = yaml.safe_load((Path(__file__).parents[1] / "data" / "amounts.yaml").read_text(encoding="utf-8"))


def texts(kind):
    """(exercise, part, text) for each text of that kind."""
    return [(case["exercise"], case["part"], str(text)) for case in CASES for text in case[kind]]


def marked(name, part, text):
    return check(BANK[name], BANK[name].part(part), text)


def test_there_are_enough_in_both_languages():
    for kind in ("right", "wrong"):
        found = [text for _, _, text in texts(kind)]
        chinese = [text for text in found if any("一" <= character <= "鿿" for character in text)]
        assert len(found) >= 100 and len(chinese) >= 5 and len(found) - len(chinese) >= 50


@pytest.mark.parametrize(("name", "part", "text"), texts("right"), ids=[f"{p}: {t}" for _, p, t in texts("right")])
def test_spellings_of_the_right_amount_pass(name, part, text):
    found = marked(name, part, text)
    assert found.status is Status.RIGHT and found.share == 1, found.said.en


@pytest.mark.parametrize(("name", "part", "text"), texts("wrong"), ids=[f"{p}: {t}" for _, p, t in texts("wrong")])
def test_near_misses_get_nothing(name, part, text):
    found = marked(name, part, text)
    assert found.share == 0 and found.status in (Status.WRONG, Status.UNREAD), found.said.en


@pytest.mark.parametrize(
    ("name", "part", "text", "units"),
    [
        ("E000-LQ02", "ddp_bytes", "24.5", "GB or GiB"),
        ("E000-LQ02", "ddp_bytes", 24.5, "GB or GiB"),
        ("E000-LQ02", "ddp_bytes", "22.8", "GB or GiB"),
        ("E000-LQ02", "ddp_bytes", "24,500", "MB or MiB"),
        ("E000-DS02", "mean_time_between_failures", "40.7", "h"),
        ("E000-LQ02", "ddp_seconds", "490", "ms"),
        ("E003-Q15", "per_token", "391.2", "GFLOP/token"),
    ],
)
def test_a_number_without_its_unit_is_told_so(name, part, text, units):
    hint = marked(name, part, text).hint
    assert hint.en == f"the unit is missing: say {units}" and "缺少单位" in hint.zh
