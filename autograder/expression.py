"""Formulas as people write them (plain, LaTeX, unicode, full-width) read by a small parser of our own, and their exact values.

Nothing is evaluated as code: a table of characters becomes a table of operations, with bounds on length, nesting and the
size of numbers. `1/2k` may mean a half of k or one over 2k, so such a text has two readings, and each is tried.
"""

import copyreg
import re
import unicodedata
from fractions import Fraction
from functools import partial
from math import isqrt

import mpmath

from . import limits

MP = mpmath.MPContext()
MP.prec = 200


def _again(parts):
    """A number of MP's from what it is made of."""
    return MP.make_mpf(parts)


copyreg.pickle(MP.mpf, lambda number: (_again, (number._mpf_,)))  # a context has a class of its own, which pickle can't name


class NotFormula(ValueError):
    """A text that is no formula we can read; `.why` says so in English and Chinese."""

    def __init__(self, en, zh):
        super().__init__(en)
        self.why = {"en": en, "zh": zh}


class Undefined(ArithmeticError):
    """A formula that has no value at a point: it divides by zero, or takes the root of a negative number."""


# --- from what people write to plain characters ----------------------------------------------------------------------

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
GREEK = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "eta": "η", "lambda": "λ"},
    **{"mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "psi": "ψ", "omega": "ω"},
    **{"ell": "ℓ", "Psi": "Ψ", "Phi": "Φ", "Delta": "Δ", "Gamma": "Γ", "Lambda": "Λ", "Omega": "Ω"},
}
# (pattern, what it stands for), in this order
BEFORE_FOLDING = [
    (r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+", lambda match: f"^({match[0].translate(SUPERSCRIPTS)})"),
    (r"[₀₁₂₃₄₅₆₇₈₉]+", lambda match: "_" + match[0].translate(SUBSCRIPTS)),
    (r"½", "(1/2)"),
    (r"¼", "(1/4)"),
    (r"¾", "(3/4)"),
]
TEX = [
    (r"\\(left|right|bigg?|Bigg?|displaystyle|limits)(?![A-Za-z])", ""),
    (r"\\([,;:!()\[\]]|q?quad(?![A-Za-z])|\s)|[$~&]", " "),
    (r"\\(mathrm|text|mathit|mathbf|operatorname|mathop)(?![A-Za-z])", ""),
    (r"\\[dtc]?frac\s*([A-Za-z0-9])\s*([A-Za-z0-9])(?![A-Za-z])", r"(\1/\2)"),
    (r"\\[dtc]?frac(?![A-Za-z])", "⌸"),
    (r"\\sqrt(?![A-Za-z])", "√"),
    (r"\\(cdot|times|ast|bullet)(?![A-Za-z])", "*"),
    (r"\\div(?![A-Za-z])", "/"),
    (r"\\(lceil|lfloor)(?![A-Za-z])", lambda match: f" {match[1][1:]}("),
    (r"\\r(ceil|floor)(?![A-Za-z])", ")"),
    (r"\\approx(?![A-Za-z])", "≈"),
    (r"\\(equiv|triangleq)(?![A-Za-z])", "="),
    (r"\\([{}%_])", r"\1"),
    (r"\\([A-Za-z]+)", r"\1 "),
]
PLAIN = [
    (r"⌈", " ceil("),
    (r"⌊", " floor("),
    (r"[⌉⌋]", ")"),
    (r"[×·•∙⋅∗✕⨯]", "*"),
    (r"[÷∕⁄]", "/"),
    (r"[−–—‐‑]", "-"),
    (r"\*\*", "^"),
    (r"(?<![A-Za-z_])(" + "|".join(GREEK) + r")(?![A-Za-z])", lambda match: GREEK[match[1]]),
    (r"\blog\s*_?\s*[({]?2[)}]?", "log2"),
    (r"_\s*\{\s*([\w,\s]*?)\s*\}", lambda match: "_" + re.sub(r"[\s,]", "", match[1])),
    (r"[{\[【]", "("),
    (r"[}\]】]", ")"),
]
ENDINGS = [  # units, and whose they are: a formula is asked for, and its unit with it
    r"\s*(/|每|per)\s*(张)?\s*(GPU|card|rank|卡|step)s?\s*$",
    r"(?<=[\s\d)\w])\s*\(?(bytes?|字节|FLOPs?|tokens?|seconds?|elements?|slots?|steps?|rounds?|units?|个?参数|个?元素|个?时隙|步|轮|秒|个)\)?\s*$",
    r"[\s.。;；,，、]+$",
]


def plain(text):
    """`text` in plain characters, without a unit at its end. Raises NotFormula if it is too long."""
    return " ".join(_replaced(characters(text), [(ending, "") for ending in ENDINGS]).split())


def characters(text):
    """`text` in the plain characters that the tokens below know, on one line. Raises NotFormula if it is too long."""
    if len(text) > limits.FORMULA:
        raise NotFormula(f"a formula of more than {limits.FORMULA:,} characters", f"公式超过 {limits.FORMULA:,} 个字符")
    text = visible(unicodedata.normalize("NFKC", _replaced(text, BEFORE_FOLDING)))
    return " ".join(_replaced(_replaced(text, TEX), PLAIN).split())


def visible(text):
    """`text` without marks that have no width, and with a blank for each control character."""
    return text if text.isprintable() else "".join(VISIBLE.get(unicodedata.category(c), c) for c in text)


VISIBLE = {"Cf": "", "Cc": " ", "Cn": " ", "Co": " ", "Cs": " "}


def _replaced(text, table):
    for pattern, stands_for in table:
        text = re.sub(pattern, stands_for, text)
    return text


def sides(text):
    """The sides of `bubble = idle / total = (P-1)/(M+P-1)`, without what stands behind an ≈, which is a number."""
    text = re.sub(r"^\s*≈", "", plain(text)).partition("≈")[0]
    return [side.strip() for side in re.split(r":?=+", text) if side.strip()]


# --- from characters to a tree ---------------------------------------------------------------------------------------

FUNCTIONS = {"sqrt": 1, "max": None, "min": None, "ceil": 1, "ceiling": 1, "floor": 1, "log2": 1}
TOKEN = re.compile(r"(?P<num>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<word>[^\W\d_][\w']*)|(?P<op>[-+*/^(),%√⌸])|(?P<space>\s+)")


def tokens(text, letters):
    """(kind, text) for each token of a plain text; a run of letters such as `sbh` falls into the `letters` there are."""
    known = {letter.replace("_", ""): letter for letter in letters} | {letter: letter for letter in letters}
    found, place = [], 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if not match:
            raise NotFormula(f"the character {text[place]!r} has no place in a formula", f"公式里不能有字符 {text[place]!r}")
        place = match.end()
        if match.lastgroup == "word":
            found += _names(match[0], known, text[place:].lstrip().startswith("("))
        elif match.lastgroup != "space":
            found.append((match.lastgroup, match[0]))
        if len(found) > limits.FORMULA_TOKENS:
            raise NotFormula(f"a formula of more than {limits.FORMULA_TOKENS} parts", f"公式超过 {limits.FORMULA_TOKENS} 项")
    return found


def _names(word, known, before_bracket):
    """The tokens of a word: a function before its bracket, or letters, of which the longest that fits is taken each time."""
    found, rest, longest = [], word, max(map(len, known), default=0)
    while rest:
        if before_bracket and rest.lower() in FUNCTIONS:
            return [*found, ("function", rest.lower())]
        head = next((rest[:length] for length in range(longest, 0, -1) if rest[:length] in known), None)
        if head is None:
            raise NotFormula(f"{word[:30]!r} holds no letter of this exercise", f"{word[:30]!r} 不是本题的字母")
        found.append(("name", known[head]))
        rest = rest[len(head) :]
    return found


BINDING = {"+": 10, "-": 10, "*": 20, "/": 20, "^": 41, "%": 50}
SIGN, TIGHT, ROOT = 25, 30, 45


class Parser:
    """Reads tokens by how strongly each operation binds. `tight`: a product without a sign binds more than a division."""

    def __init__(self, found, tight):
        self.tokens, self.at, self.depth, self.tight = [*found, ("end", "")], 0, 0, tight

    def tree(self):
        tree = self._operand(0)
        if self._next()[0] != "end":
            raise self._stray()
        return tree

    def _next(self):
        return self.tokens[self.at]

    def _take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, sign):
        if self._next() != ("op", sign):
            raise self._stray()
        self.at += 1

    def _stray(self):
        _, text = self._next()
        if not text:
            return NotFormula("the formula ends too early", "公式不完整")
        return NotFormula(f"{text[:30]!r} stands where it makes no sense", f"{text[:30]} 的位置不对")

    def _operand(self, least):
        self.depth += 1
        if self.depth > limits.FORMULA_DEPTH:
            raise NotFormula("brackets nested too deeply", "括号嵌套太深")
        left = self._first(least)
        while (step := self._step(left)) and step[0] > least:
            left = step[1]()
        self.depth -= 1
        return left

    def _step(self, left):
        """(how strongly what comes next binds, what reads it), or None where the operand ends."""
        kind, text = self._next()
        if text in BINDING and kind == "op":
            return BINDING[text], partial(self._operation, left, text)
        if kind in ("name", "function") or text in ("(", "√", "⌸"):
            return (TIGHT if self.tight else BINDING["*"]), partial(self._product, left)
        return None

    def _operation(self, left, sign):
        self._take()
        if sign == "%":
            return ("/", left, ("num", Fraction(100)))
        return (sign, left, self._operand(BINDING[sign] - (sign == "^")))

    def _product(self, left):
        return ("*", left, self._operand(TIGHT if self.tight else BINDING["*"]))

    def _first(self, least):
        kind, text = self._take()
        if kind == "num":
            return ("num", _number(text))
        if kind == "name":
            return ("name", text)
        if kind == "function":
            return ("call", text, self._arguments(text))
        if text in FIRST and kind == "op":
            return FIRST[text](self, least)
        self.at -= 1
        raise self._stray()

    def _group(self):
        tree = self._operand(0)
        self._expect(")")
        return tree

    def _negative(self, least):
        return ("-", ("num", Fraction(0)), self._operand(max(SIGN, least)))

    def _fraction(self):
        self._expect("(")
        above = self._group()
        self._expect("(")
        return ("/", above, self._group())

    def _arguments(self, name):
        self._expect("(")
        found = [self._operand(0)]
        while self._next() == ("op", ","):
            self._take()
            found.append(self._operand(0))
        self._expect(")")
        if FUNCTIONS[name] not in (None, len(found)):
            raise NotFormula(f"{name} takes one argument", f"{name} 只有一个参数")
        return tuple(found)


FIRST = {
    "(": lambda parser, least: parser._group(),
    "-": Parser._negative,
    "+": lambda parser, least: parser._operand(max(SIGN, least)),
    "√": lambda parser, least: ("call", "sqrt", (parser._operand(ROOT),)),
    "⌸": lambda parser, least: parser._fraction(),
}


def _number(text):
    digits, _, exponent = text.lower().partition("e")
    if len(digits) > 60 or len(exponent) > 4 or abs(int(exponent or 0)) > 300:
        raise NotFormula("a number with too many digits", "数字位数太多")
    return Fraction(text)


def readings(text, letters):
    """The trees that a plain text may mean: one, or two where a product without a sign follows a division."""
    found = tokens(text, letters)
    trees = [Parser(found, tight).tree() for tight in (False, True)]
    return trees[:1] if trees[0] == trees[1] else trees


def names_in(tree):
    """The letters of a tree, in no order."""
    if tree[0] == "name":
        return {tree[1]}
    parts = tree[2] if tree[0] == "call" else tree[1:]
    return set() if tree[0] == "num" else set().union(*map(names_in, parts))


# --- from a tree to a number -----------------------------------------------------------------------------------------


def value(tree, names):
    """The value of a tree, exact (a Fraction) unless it takes roots or logarithms, with `names` for its letters.

    Raises Undefined where there is none, NotFormula where a number outgrows its bounds.
    """
    kind = tree[0]
    if kind == "num":
        return tree[1]
    if kind == "name":
        return names[tree[1]]
    if kind == "call":
        return _bounded(CALLS[tree[1]](*(value(part, names) for part in tree[2])))
    return _bounded(OPERATIONS[kind](*_alike(*(value(part, names) for part in tree[1:]))))


def _alike(*numbers):
    """Numbers of one sort: exact, or all with 200 bits."""
    return numbers if all(isinstance(n, Fraction) for n in numbers) else tuple(map(irrational, numbers))


def irrational(number):
    return MP.mpf(number.numerator) / number.denominator if isinstance(number, Fraction) else number


def _divide(above, below):
    if below == 0:
        raise Undefined("division by zero")
    return above / below


def _power(base, exponent):
    if abs(exponent) > limits.FORMULA_EXPONENT:
        raise _too_large()
    if base == 0 and exponent < 0:
        raise Undefined("division by zero")
    if exponent == int(exponent) and isinstance(base, Fraction):
        if abs(exponent) * max(base.numerator.bit_length(), base.denominator.bit_length()) > limits.FORMULA_BITS:
            raise _too_large()
        return base ** int(exponent)
    if base < 0:
        raise Undefined("root of a negative number")
    return irrational(base) ** irrational(exponent)


def _root(number):
    if number < 0:
        raise Undefined("root of a negative number")
    if isinstance(number, Fraction):
        above, below = isqrt(number.numerator), isqrt(number.denominator)
        if above * above == number.numerator and below * below == number.denominator:
            return Fraction(above, below)
    return MP.sqrt(irrational(number))


def _logarithm(number):
    if number <= 0:
        raise Undefined("logarithm of a number that is not positive")
    return MP.log(irrational(number), 2)


def _whole(up, number):
    if isinstance(number, Fraction):
        return Fraction(-((-number) // 1) if up else number // 1)
    return MP.ceil(number) if up else MP.floor(number)


OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "^": _power,
}
CALLS = {
    "sqrt": _root,
    "log2": _logarithm,
    "ceil": partial(_whole, True),
    "ceiling": partial(_whole, True),
    "floor": partial(_whole, False),
    "max": lambda *numbers: max(numbers, key=irrational),
    "min": lambda *numbers: min(numbers, key=irrational),
}


def _too_large():
    return NotFormula("a number in it grows too large", "其中的数太大")


def _bounded(number):
    if isinstance(number, Fraction):
        if max(number.numerator.bit_length(), number.denominator.bit_length()) > limits.FORMULA_BITS:
            raise _too_large()
    elif number and abs(MP.mag(number)) > limits.FORMULA_MAGNITUDE:
        raise _too_large()
    return number
