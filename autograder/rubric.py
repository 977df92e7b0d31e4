"""An exercise marked: plain answers in, one result per rubric line out, with what was read, what was expected and the hint that fits."""

import contextlib
import logging
import math
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache

from formulary import judge
from formulary.amounts import SCALES, unit_named, write
from formulary.reckon import Amount
from formulary.units import BYTE, PURE

from . import answer as answers_
from . import limits
from .answer import AnswerError, Unread, WrongUnit, is_blank, quote
from .equivalence import equals
from .exercise import LANGUAGES, Text
from .expression import NotFormula
from .reasons import load_rubric, mark_reason
from .symbols import written


class Status(Enum):
    """How an answer, or a whole line, came out. BROKEN is our fault: a person marks it and nobody loses a point."""

    RIGHT = "right"
    PARTLY = "partly right"
    WRONG = "wrong"
    BLANK = "blank"
    UNREAD = "not readable"
    HUMAN = "needs a person"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """What one part's answer came to: its share of the part's credit (0 to 1), and the words for it."""

    part: str
    status: Status
    share: float
    said: Text
    expected: Text | None = None
    hint: Text | None = None
    mistake: str = ""

    def texts(self, reveal):
        """The texts there are, in the order to read them."""
        hint = self.hint and self.hint.map(lambda words: f"→ {words}")
        return [text for text in (self.said, self.expected if reveal else None, hint) if text]


@dataclass(frozen=True)
class LineResult:
    """A rubric line marked. Where `needs_human`, `points` is only our proposal, None if we have none, and `note` says so."""

    line: object
    points: float | None
    status: Status
    findings: tuple = ()
    note: Text | None = None
    shown: dict = field(default_factory=dict, init=False, compare=False, repr=False)  # what `feedback` has made of it

    @property
    def needs_human(self):
        return self.status in (Status.HUMAN, Status.BROKEN)

    def tell(self, language, reveal=True):
        """What there is to say, each a list of lines: the finding with what was expected, then the hint that fits.

        Without `reveal` neither the right answer nor the criterion is told.
        """
        for finding in self.findings:
            yield [text.say((language,)) for text in finding.texts(reveal)]
        if self.note:
            yield [self.note.say((language,))]
        if reveal and self.status is not Status.RIGHT:
            yield [words("criterion", criterion=self.line.criterion).say((language,))]


WORDS = {
    "right": ("{label}: {stated} is right", "{label}：{stated}，正确"),
    "wrong": ("{label}: {stated} is not right", "{label}：{stated}，不对"),
    "read": ("{said} (read as {read})", "{said}（读作 {read}）"),
    "taken": ("{label}: counts as right", "{label}：按正确计分"),
    "expected": ("expected: {expected}", "应为：{expected}"),
    "far": ("expected: {expected}; yours is {ratio} times that", "应为：{expected}；你的是它的 {ratio} 倍"),
    "say_unit": ("the unit is missing: say {units}", "缺少单位：请写明 {units}"),
    "follows": (
        "{label}: {stated} is not the right value, but it follows correctly from your own answer to “{earlier}”: {share} of the credit",
        "{label}：{stated} 不是正确值，但由你自己对“{earlier}”的答案推得正确：得本项的 {share}",
    ),
    "blank": ("{label}: not answered", "{label}：未作答"),
    "unread": ("{label}: {why}", "{label}：{why}"),
    "criterion": ("This line asks for: {criterion}", "本行要求：{criterion}"),
    "against": ("contradicts: {says}, read in “{sentence}”", "与要求相反：{says}；见“{sentence}”"),
    "made": ("counts: {says}, read in “{sentence}”", "算数：{says}；见“{sentence}”"),
    "error": ("an error beside it: {says}, read in “{sentence}”", "附带错误：{says}；见“{sentence}”"),
    "nothing": ("{label}: none of the claims that earn points was recognised", "{label}：没有识别出能得分的论断"),
    "proposal": ("proposed {points} of {most}, to be confirmed by a person", "建议 {points}/{most} 分，由人工确认"),
    "human": ("marked by a person", "由人工评分"),
    "human_blank": ("not answered", "未作答"),
    "broken": ("we could not mark this line; that is our fault, and a person will", "本行自动评分出错，这是我们的问题，将由人工评分"),
}


def words(key, **values):
    """A sentence of the table above in each language; values may be texts, strings or numbers."""
    pick = lambda language: {k: getattr(v, language) if isinstance(v, Text) else v for k, v in values.items()}
    return Text(**{language: WORDS[key][i].format(**pick(language)) for i, language in enumerate(LANGUAGES)})


def mark(exercise, answers):
    """One LineResult per rubric line, from answers by part name (missing ones count as blank)."""
    return [_kept(exercise, _mark_safely(exercise, line, answers)) for line in exercise.rubric]


def _kept(exercise, result):
    """The result, or an equal one of another learner's, whose feedback is made; a line read in free text comes out as no other does."""
    if result.line.marked_by == "claims":
        return result
    key = result.line.name, result.points, result.status, result.findings, result.note
    keep = exercise.results.setdefault if len(exercise.results) < limits.RESULTS else exercise.results.get
    return keep(key, result)


def _mark_safely(exercise, line, answers):
    try:
        return MARKERS[line.marked_by](exercise, line, answers)
    except Exception:  # a fault of ours must not cost this learner, or the rest of the class, a mark
        logging.getLogger(__name__).exception("%s, line %s could not be marked", exercise.id, line.name)
        return LineResult(line, None, Status.BROKEN, note=words("broken"))


# --- lines with a key ------------------------------------------------------------------------------------------------


def _parts(exercise, line, answers):
    return [(exercise.part(name), answers.get(name)) for name in line.parts]


def _by_key(exercise, line, answers):
    findings = tuple(
        _carry_forward(exercise, part, check(exercise, part, value), answers, line.carry) for part, value in _parts(exercise, line, answers)
    )
    share = sum(finding.share for finding in findings) / len(findings)
    if line.credit == "all":
        share = min(finding.share for finding in findings)
    points = round(share * line.points, 4)
    if any(finding.status is Status.UNREAD for finding in findings):
        return _proposal(line, points, findings)
    return LineResult(line, points, _status(findings, share), findings)


def _proposal(line, points, findings):
    """A line that waits for a person, with the points we would give."""
    note = words("proposal", points=f"{points:.3g}", most=f"{line.points:g}")
    return LineResult(line, points, Status.HUMAN, tuple(findings), note)


def _status(findings, share):
    if share >= 1:
        return Status.RIGHT
    return Status.PARTLY if share > 0 else findings[0].status if len({f.status for f in findings}) == 1 else Status.WRONG


def check(exercise, part, value):
    """The Finding on one part's answer; a short answer that many give is looked at once, if the part is as the exercise has it."""
    given = part.name, type(value), value
    if not _is_kept(value) or part is not exercise.part(part.name):
        return _check(exercise, part, value)
    if given not in exercise.findings:
        if len(exercise.findings) >= limits.FINDINGS:
            return _check(exercise, part, value)
        exercise.findings[given] = _check(exercise, part, value)
    return exercise.findings[given]


def _is_kept(value):
    return isinstance(value, bool | float) or (isinstance(value, str) and len(value) <= limits.SHORT)


def _check(exercise, part, value):
    if is_blank(value):
        return Finding(part.name, Status.BLANK, 0, words("blank", label=part.label), _expected(exercise, part))
    if isinstance(value, Unread):
        return _unread(part, value.why)
    try:
        return COMPARE[part.type](exercise, part, value)
    except WrongUnit as error:
        return _wrong(exercise, part, words("unread", label=part.label, why=error.why))
    except AnswerError as error:
        return _unread(part, error.why)


def _carry_forward(exercise, part, finding, answers, carry):
    """The finding, or a better one where a wrong number follows from the learner's own earlier answers."""
    if part.type != "number" or finding.status not in (Status.WRONG, Status.PARTLY) or finding.share >= carry:
        return finding
    stated = _stated(exercise, [part.name, *exercise.sources(part).values()], answers)
    own, wrong = stated.pop(part.name, None), [name for name, amount in stated.items() if not _is_right(exercise, name, amount)]
    carried = exercise.carried(part, {name: stated[name] for name in wrong})
    if own is None or not carried or not carried.value or not judge(own.value, carried.value, within=part.within).passed:
        return finding
    earlier = Text(**{language: ", ".join(getattr(exercise.part(name).label, language) for name in wrong) for language in LANGUAGES})
    shown = _shown(answers[part.name], write(own.value, own.unit, 4, part.scale))
    said = words("follows", label=part.label, stated=shown, earlier=earlier, share=f"{carry:.0%}")
    return replace(finding, status=Status.PARTLY, share=carry, said=said, hint=None, mistake="")


def _stated(exercise, names, answers):
    """What the learner stated for the number parts `names`, as Amounts; nothing for what can't be read, is blank or zero."""
    found = {}
    for name in names:
        part, expected = exercise.part(name), exercise.expected(exercise.part(name))
        with contextlib.suppress(AnswerError):
            if not is_blank(answers.get(name)) and (value := _amount(part, answers[name], expected)[0]):
                found[name] = Amount(value, expected.unit)
    return found


def _is_right(exercise, name, amount):
    part = exercise.part(name)
    return judge(amount.value, exercise.expected(part).value, within=part.within).passed


def _unread(part, why):
    return Finding(part.name, Status.UNREAD, 0, words("unread", label=part.label, why=why))


def _expected(exercise, part, key="expected", **more):
    return words(key, expected=write_answer(exercise, part, exercise.expected(part)), **more)


def write_answer(exercise, part, value):
    """An answer in words: True, "A, C", or an amount with its unit."""
    if part.type == "number":
        return write(value.value, value.unit, 6, part.scale)
    if part.type == "expression":
        return written(value.expr, exercise.alphabet(part))
    return ", ".join(sorted(value)) if part.type == "choice" else value if isinstance(value, Text) else str(value)


def _compare_verdict(exercise, part, value):
    return _compared(exercise, part, answers_.verdict(value))


def _compare_choice(exercise, part, value):
    stated = answers_.choice(value, [option.key for option in part.options])
    found = _compared(exercise, part, stated)
    return replace(found, **_chosen(stated, exercise.expected(part))) if exercise.several(part) else found


def _chosen(stated, right):
    """The share of the credit for options chosen: each right one adds a share, each wrong one takes one away, never below 0."""
    share = max(0, len(stated & right) - len(stated - right)) / len(right)
    return {"share": share, "status": Status.RIGHT if stated == right else Status.PARTLY if share else Status.WRONG}


def _compared(exercise, part, stated):
    shown = write_answer(exercise, part, stated)
    if stated == exercise.expected(part):
        return Finding(part.name, Status.RIGHT, 1, words("right", label=part.label, stated=shown))
    met = next((m for m in part.mistakes if exercise.mistaken(part, m) == stated), None)
    return _wrong(exercise, part, words("wrong", label=part.label, stated=shown), met)


def _compare_number(exercise, part, value):
    expected = exercise.expected(part)
    stated, alone = _amount(part, value, expected)
    known = {m.name: m for m in part.mistakes}
    wrong = {name: exercise.mistaken(part, m).value for name, m in known.items()}
    verdict = judge(stated, expected.value, within=part.within, unit=expected.unit, mistakes=wrong, ranks=exercise.ranks)
    shown = _shown(value, write(stated, expected.unit, 4, part.scale), alone)
    slip = verdict.slip and Text(en=verdict.slip.en, zh=verdict.slip.zh)
    if verdict.passed:
        return Finding(part.name, Status.RIGHT, 1, words("right", label=part.label, stated=shown), hint=slip)
    if alone and not verdict.mistake and (missing := _missing_unit(stated, expected, part.within, wrong)):
        return _wrong(exercise, part, words("wrong", label=part.label, stated=f"{stated:.4g}"), slip=missing)
    met = known.get(verdict.mistake)
    said = words("taken" if met and met.credit == 1 else "wrong", label=part.label, stated=shown)
    return _wrong(exercise, part, said, met, slip, verdict.ratio)


def _amount(part, value, expected):
    """(what is stated, in base units, and whether its unit is missing); a number alone may be in the unit that the label says."""
    stated, alone = answers_.amount(value, expected.unit, part.bound)
    if alone and part.alone and not judge(stated, expected.value, within=part.within).passed:
        return float(stated * unit_named(part.alone, expected.unit)[0]), False
    return stated, alone and expected.unit != PURE


def _shown(value, read, alone=False):
    """An amount as the learner wrote it; also as it was `read`, where the unit is missing or several numbers stand there."""
    if not isinstance(value, str):
        return read
    said = quote(value, 60)
    clear = not alone and len(re.findall(r"\d[\d.,]*", said)) == 1
    return said if clear or read.replace(" ", "") in said.replace(" ", "") else words("read", said=said, read=read)


def _missing_unit(stated, expected, within, wrong):
    """The hint that a number stands alone which would be right, or one known to be `wrong`, with a unit behind it; else None."""
    for units in _units_beside(expected.unit):
        verdicts = (judge(stated * size, expected.value, within=within, mistakes=wrong) for size in units.values())
        if any(verdict.passed or verdict.mistake for verdict in verdicts):
            return words("say_unit", units=Text(en=" or ".join(units), zh=" 或 ".join(units)))
    return None


@cache
def _units_beside(unit):
    """The units that a number may be in instead of `unit` itself, {name: size}, those of one prefix together."""
    names = [name for name, size in SCALES.get(unit, ()) if size != 1]
    alike = ([name, name.replace("k", "K").replace("B", "iB")] if BYTE in unit.free_symbols else [name] for name in names)
    return [{name: float(unit_named(name, unit)[0]) for name in names} for names in alike]


def _compare_expression(exercise, part, value):
    """Every side of what was written must equal the key, or all of them the same known mistake."""
    letters = exercise.alphabet(part)
    stated, shown = answers_.formula(value, letters), quote(str(value), 120)
    try:
        if all(equals(trees, letters, exercise.expected(part)) for trees in stated):
            return Finding(part.name, Status.RIGHT, 1, words("right", label=part.label, stated=shown))
        met = next((m for m in part.mistakes if equals(stated[-1], letters, exercise.mistaken(part, m))), None)
    except NotFormula as error:
        raise AnswerError(**error.why) from None
    return _wrong(exercise, part, words("wrong", label=part.label, stated=shown), met)


def _wrong(exercise, part, said, met=None, slip=None, ratio=math.nan):
    hint = met.hint if met else slip
    share = met.credit if met else 0
    status = Status.PARTLY if share else Status.WRONG
    expected = _expected(exercise, part) if math.isnan(ratio) else _expected(exercise, part, "far", ratio=f"{float(f'{ratio:.3g}'):,.15g}")
    return Finding(part.name, status, share, said, expected, hint, met.name if met else "")


COMPARE = {"verdict": _compare_verdict, "choice": _compare_choice, "number": _compare_number, "expression": _compare_expression}


# --- lines read in free text, and lines for a person -----------------------------------------------------------------


def _by_claims(exercise, line, answers):
    parts = _parts(exercise, line, answers)
    texts = [_reason_text(part, value) for part, value in parts]
    lost = [text for text in texts if isinstance(text, Finding)]
    if lost:
        return _proposal(line, 0, lost)
    text = "\n".join(texts)
    if is_blank(text):
        blank = tuple(Finding(part.name, Status.BLANK, 0, words("blank", label=part.label)) for part, _ in parts)
        return LineResult(line, 0, Status.BLANK, blank)
    points, sure, findings = _by_rubric(exercise, line, text)
    findings = tuple(findings) or (_nothing(parts[0][0]),)
    if not sure:
        return _proposal(line, points, findings)
    return LineResult(line, points, _status_of(points, line), findings)


def _status_of(points, line):
    return Status.RIGHT if points == line.points else Status.PARTLY if points else Status.WRONG


def _by_rubric(exercise, line, text):
    """(points, whether that is sure, findings) by the exercise's rubric of reasons."""
    mark = mark_reason(text, load_rubric(exercise.id).of_line(line.name), line.points)
    findings = [_matched(match) for match in mark.matches if match.role in MATCHED]
    if mark.why:
        findings.append(Finding("", Status.PARTLY, 0, Text(**mark.why)))
    return mark.points, not mark.needs_human, findings


MATCHED = {"earned": (Status.RIGHT, "made"), "contradicted": (Status.WRONG, "against"), "side error": (Status.WRONG, "error")}


def _matched(match):
    status, key = MATCHED[match.role]
    return Finding("", status, 0, words(key, says=Text(en=match.why, zh=match.why_zh or match.why), sentence=quote(match.span, 120)))


def _reason_text(part, value):
    """The text of a reason, or the Finding that it can't be read."""
    if isinstance(value, Unread):
        return _unread(part, value.why)
    try:
        return "" if is_blank(value) else answers_.reason(value)
    except AnswerError as error:
        return _unread(part, error.why)


def _nothing(part):
    return Finding(part.name, Status.WRONG, 0, words("nothing", label=part.label))


def _by_human(exercise, line, answers):
    parts = _parts(exercise, line, answers)
    if all(is_blank(value) for _, value in parts):
        return LineResult(line, 0, Status.BLANK, note=words("human_blank"))
    unread = tuple(text for text in (_reason_text(p, v) for p, v in parts if p.type == "reason") if isinstance(text, Finding))
    return LineResult(line, None, Status.HUMAN, unread, words("human"))


MARKERS = {"key": _by_key, "claims": _by_claims, "human": _by_human}
