"""`psi formula`: list the formulas, show one, evaluate one."""

import argparse
import json
import sys
import textwrap

from . import amounts, formula, load_all
from .quantity import InputError
from .units import BYTE, UnitError, spell, without_units


def main(argv):
    """Run `psi formula …`; returns the exit status: 0, or 2 with one line on stderr when the request makes no sense."""
    options = _parser().parse_args(argv[1:])
    try:
        said = options.run(options)
    except (InputError, UnitError, amounts.AmountError) as error:
        print(f"psi formula: {error}", file=sys.stderr)
        return 2
    print(json.dumps(said, ensure_ascii=False, indent=2) if options.json else options.write(said))
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="psi formula", description="The book's formulas.")
    verbs = parser.add_subparsers(required=True, metavar="list|show|eval")
    _verb(verbs, "list", "name every formula", _list, _write_list)
    show = _verb(verbs, "show", "one formula, its inputs, source, derivation and conventions", _show, _write_show)
    show.add_argument("name")
    evaluate = _verb(
        verbs, "eval", "a formula's value, as in: eval zero_state_bytes num_params=7B world_size=8 stage=1", _eval, _write_eval
    )
    evaluate.add_argument("name")
    evaluate.add_argument("values", nargs="*", metavar="input=value", help="such as num_params=7B or memory_capacity=80GiB")
    evaluate.add_argument("--convention", action="append", default=[], metavar="NAME", help="count as this convention does (see show)")
    return parser


def _verb(verbs, name, help_, run, write):
    verb = verbs.add_parser(name, help=help_, description=help_)
    verb.add_argument("--json", action="store_true", help="print figures as JSON")
    verb.set_defaults(run=run, write=write)
    return verb


# --- list ------------------------------------------------------------------------------------------------------------


def _list(_):
    return [{"name": f.name, "unit": spell(f.unit), "chapter": f.chapter, "meaning": f.quantity.meaning} for f in load_all().values()]


def _write_list(rows):
    wide = max(len(row["name"]) for row in rows)
    return "\n".join(f"{r['name']:<{wide}}  ch {r['chapter']:<3} {r['unit']:<14} {r['meaning']}" for r in rows)


# --- show ------------------------------------------------------------------------------------------------------------


def _show(options):
    it = formula(options.name)
    return {
        "name": it.name,
        "meaning": it.quantity.meaning,
        "unit": spell(it.unit),
        "expression": str(it.expr),
        "latex": it.latex,
        "cases": _cases(it),
        "inputs": [_input(q, it.defaults) for q in it.inputs.values()],
        "assumptions": list(it.assumptions),
        "conventions": [{"name": a.name, "meaning": a.meaning, "who": a.who} for c in it.conventions for a in c.alternatives],
        "derivation": [{"because": s.because, "expression": str(s.expr)} for s in it.derivation.steps] if it.derivation else [],
        "empirical": it.empirical,
        "source": it.source,
    }


def _cases(it):
    """What the formula reads like for each value of an input that has few, by the book's conventions; nothing for other formulas."""
    chooser = next((q for q in it.inputs.values() if q.choices and q.name not in it.defaults), None)
    if chooser is None:
        return {}
    usual = it.by_convention()
    return {f"{chooser.name}={value}": str(without_units(usual.given(**{chooser.name: value}).expr)) for value in chooser.choices}


def _input(quantity, defaults):
    unit, default = spell(quantity.unit), defaults.get(quantity.name)
    return {"name": quantity.name, "unit": unit, "meaning": quantity.meaning, "default": default}


def _write_show(it):
    forms = [f"{it['name']} = {expr}, with {case}" for case, expr in it["cases"].items()] or [f"{it['name']} = {it['expression']}"]
    lines = [f"{it['name']}: {it['meaning']}, in {it['unit']}", "", *(_wrapped(form, "  ") for form in forms), "", "inputs"]
    lines += [f"  {i['name']:<22} {i['unit']:<14} {i['meaning']}{_default(i)}" for i in it["inputs"]]
    lines += _section("assumptions", it["assumptions"])
    lines += _section("derivation", [f"{s['because']}:\n{_wrapped(s['expression'], '      ')}" for s in it["derivation"]])
    lines += _section("fitted, not derived", [it["empirical"]] if it["empirical"] else [])
    lines += _section("conventions", [f"{c['name']:<22} {c['meaning']} ({c['who']})" for c in it["conventions"]])
    return "\n".join([*lines, *_section("source", [it["source"]])])


def _wrapped(text, indent):
    return textwrap.fill(text, 110, initial_indent=indent, subsequent_indent=indent + "    ", break_long_words=False)


def _default(row):
    return "" if row["default"] is None else f" [{row['default']} unless given]"


def _section(title, rows):
    return ["", title, *(f"  {row}" for row in rows)] if rows else []


# --- eval ------------------------------------------------------------------------------------------------------------


def _eval(options):
    it, values = formula(options.name), dict(_pair(text) for text in options.values)
    for alternative in [it.alternative(name) for name in options.convention]:
        it = alternative.formula or it
        values = {**{k: v for k, v in alternative.values.items() if k in it.inputs}, **values}
    value, comparison = it(**values), it.compare(*options.convention, **values)
    return {
        "name": it.name,
        "value": value,
        "unit": spell(it.unit),
        "amount": _both(value, it.unit),
        "inputs": it.accept(values),
        "worked": it.worked_text(**values),
        "source": it.source,
        "conventions": [_counted(row, comparison) for row in comparison.rows],
    }


def _pair(text):
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise InputError(f"{text!r} is not input=value; write for example num_params=7B")
    return name.strip(), value.strip()


def _both(value, unit):
    """Bytes in GB and in GiB, since both are met; everything else once."""
    text = amounts.write(value, unit, 6)
    return f"{text} = {amounts.write(value, BYTE, 6, 'GiB')}" if unit == BYTE and abs(value) >= 10**8 else text


def _counted(row, comparison):
    amount = _both(row.value, row.unit) if row.value is not None else row.why_not
    one = row.alternative
    chosen = one.name in comparison.chosen
    return {"convention": row.convention, "name": one.name, "amount": amount, "meaning": one.meaning, "who": one.who, "chosen": chosen}


def _write_eval(said):
    rows = said["conventions"]
    wide = max((len(row["name"]) for row in rows), default=0)
    far = max((len(row["amount"]) for row in rows), default=0)
    lines = [f"{said['name']} = {said['amount']}", f"  {said['worked']}", *_section("source", [said["source"]])]
    shown = [f"{'*' if r['chosen'] else ' '} {r['name']:<{wide}}  {r['amount']:<{far}}  {r['meaning']} ({r['who']})" for r in rows]
    return "\n".join(lines + _section("conventions (* is the one used)", shown))
