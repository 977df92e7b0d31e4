"""Submissions as they come: read whatever can be read of a notebook file, and find in it the cells that were handed out.

Nothing that a file says about itself is believed but which cell an answer belongs to. What is damaged is put right where
the answer is unambiguous, and that is said; an answer that can't be told is lost, and a person looks for it.
"""

import contextlib
import itertools
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from . import limits
from .exercise import Text

REPAIRS = {
    "encoding": ("the file was not in UTF-8 and was read as {how}", "文件不是 UTF-8 编码，已按 {how} 读取"),
    "bom": ("a byte order mark in front was left out", "去掉了文件开头的字节顺序标记"),
    "line_ends": ("Windows line ends were made ordinary", "Windows 换行符已改为普通换行符"),
    "json": ("the file is damaged: {count} cells could still be read", "文件已损坏：仍读出了 {count} 个单元格"),
    "version": ("the notebook is not of version 4 and was converted", "笔记本不是第 4 版格式，已转换"),
    "no_cell": ("{count} things between the cells are no cells and were left out", "有 {count} 处内容不是单元格，已略去"),
    "outputs": ("{mib} MiB of printed output were left out", "略去了 {mib} MiB 的输出"),
    "kernel": ("another kernel was set; it does not matter here", "设置了其他内核，对评分没有影响"),
    "renamed": ("the file is called {name} and was taken for {wanted}", "文件名为 {name}，已当作 {wanted}"),
    "retyped": ("{names}: the type of the cell was put back", "{names}：单元格类型已恢复"),
    "copies": ("{names}: of several copies the one with an answer was taken", "{names}：有多份副本，取了有答案的那一份"),
    "found": ("{names}: the cell had lost its label and was known by its place", "{names}：单元格丢失了标签，已按位置认出"),
    "missing": ("{count} cells that hold no answers were missing and were put back", "缺少 {count} 个不含答案的单元格，已补回"),
    "order": ("the cells were in another order, which does not matter", "单元格顺序有变，对评分没有影响"),
    "time": ("timestamp.txt holds no time, so nothing says when this was handed in", "timestamp.txt 中没有可读的时间，提交时间不明"),
}
LOST = {
    "gone": ("its answer cell is not in the notebook any more", "笔记本里已没有这道题的答案单元格"),
    "copies": ("there are several answer cells for it, which differ", "这道题有多个内容不同的答案单元格"),
}
UNREADABLE = {
    "link": ("{name} is a link, and links are not followed", "{name} 是链接，不予跟随"),
    "no_file": ("{name} is not an ordinary file", "{name} 不是普通文件"),
    "denied": ("{name} can't be opened: {error}", "{name} 无法打开：{error}"),
    "large": ("the file has {mib} MiB; at most {most} are read", "文件有 {mib} MiB，最多读取 {most}"),
    "many_values": ("the file holds more than {most} values", "文件中的值多于 {most} 个"),
    "many_cells": ("the file holds more than {most} cells", "文件中的单元格多于 {most} 个"),
    "no_notebook": ("the file is no notebook, and no cell could be found in it", "文件不是笔记本，找不到任何单元格"),
    "none": ("no notebook {wanted} was handed in", "没有提交笔记本 {wanted}"),
    "several": ("none of the notebooks handed in is called {wanted}: {names}", "提交的笔记本中没有名为 {wanted} 的：{names}"),
}


def said(table, key, **values):
    """A sentence of a table above, in each language."""
    en, zh = table[key]
    return Text(en=en.format(**values), zh=zh.format(**values))


class Unreadable(Exception):
    """A submission that can't be read; `.why` says so in each language."""

    def __init__(self, key, **values):
        self.why = said(UNREADABLE, key, **values)
        super().__init__(self.why.en)


@dataclass(frozen=True)
class Cell:
    """A cell of a submission. `claims` is the grade id it says it has."""

    cell_type: str
    source: str
    id: str = ""
    claims: str = ""


@dataclass(frozen=True)
class Found:
    """The cells of a submission, and what had to be done to read them."""

    cells: tuple
    repairs: tuple = ()


@dataclass(frozen=True)
class Settled:
    """`places`: in notebook order, (name or None, cell). `lost`: why an answer is, by name of its cell."""

    places: tuple
    lost: dict = field(default_factory=dict)
    repairs: tuple = ()


# --- the file --------------------------------------------------------------------------------------------------------


def find(folder, name, papers=()):
    """(path, repairs) of the notebook `name` in a student's folder, which none of the other `papers` is. Raises Unreadable."""
    wanted = folder / f"{name}.ipynb"
    if os.path.lexists(wanted):
        return wanted, ()
    try:
        there = sorted(path for path in folder.iterdir() if _may_be(path.name.lower(), name, papers))
    except OSError as error:
        raise Unreadable("denied", name=_name(folder), error=error.strerror) from None
    if len(there) > 1:
        raise Unreadable("several", wanted=wanted.name, names=", ".join(_name(path) for path in there[:5]))
    if not there:
        raise Unreadable("none", wanted=wanted.name)
    return there[0], (said(REPAIRS, "renamed", name=_name(there[0]), wanted=wanted.name),)


def _may_be(file, name, papers):
    """Whether a file of that name may be the notebook `name`: if it is called after any of the `papers`, then after this one."""
    called = max((paper for paper in papers if paper.lower() in file), key=len, default=name)
    return called == name and ".ipynb" in file and not file.startswith(".")


def _name(path):
    """A file's name as it can be shown."""
    return re.sub(r"[^\w .()-]", "?", path.name)[:60]


def load(path):
    """The bytes of a submitted file. Raises Unreadable for a link, anything but a file, and what is too large."""
    try:
        if path.is_symlink():
            raise Unreadable("link", name=_name(path))
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise Unreadable("denied", name=_name(path), error=error.strerror) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("no_file", name=_name(path))
        if status.st_size > limits.NOTEBOOK:
            raise Unreadable("large", mib=status.st_size >> 20, most=limits.NOTEBOOK >> 20)
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read(limits.NOTEBOOK)
    finally:
        os.close(handle)


def beside(folder):
    """(path, bytes) of the files handed in beside notebooks, as many as we take; links and what is no file are left out."""
    left = limits.BESIDE
    for path, status in itertools.islice(_files(folder), limits.BESIDE_FILES):
        if status.st_size <= left:
            with contextlib.suppress(Unreadable):
                data = load(path)
                left -= len(data)
                yield path.relative_to(folder), data


def listed(folder):
    """Name, size and time of each of these files, which change when any of them does."""
    found = itertools.islice(_files(folder), limits.BESIDE_FILES)
    return [[str(path.relative_to(folder)), status.st_size, status.st_mtime_ns] for path, status in found]


def _files(folder):
    """(path, status) of the files in a folder and in the folders of it, in order, but for notebooks, time stamps, hidden ones and links."""
    deepest = len(folder.parts) + limits.BESIDE_DEPTH
    for top, folders, names in itertools.islice(os.walk(folder), limits.BESIDE_FOLDERS):
        folders[:] = sorted(filter(_is_extra, folders)) if len(Path(top).parts) < deepest else []
        found = ((path, _status(path)) for path in (Path(top, name) for name in sorted(filter(_is_extra, names))))
        yield from ((path, status) for path, status in found if status and stat.S_ISREG(status.st_mode))


def _status(path):
    with contextlib.suppress(OSError):  # in a folder that we may not enter, longer than a path can be, or gone by now
        return path.lstat()


def _is_extra(name):
    return not name.startswith(".") and ".ipynb" not in name.lower() and name.lower() != "timestamp.txt"


def read(data):
    """The Found of a notebook's bytes. Raises Unreadable, and nothing else."""
    text, repairs = _decoded(data)
    if _values(text) > limits.VALUES and _values(STRING.sub("", text)) > limits.VALUES:
        raise Unreadable("many_values", most=f"{limits.VALUES:,}")
    try:
        notebook = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        notebook = {"cells": _salvaged(text), "nbformat": 4}
        repairs.append(said(REPAIRS, "json", count=len(notebook["cells"])))
    raw = _raw_cells(notebook)
    if not raw:
        raise Unreadable("no_notebook")
    if len(raw) > limits.CELLS:
        raise Unreadable("many_cells", most=f"{limits.CELLS:,}")
    if notebook.get("nbformat") != 4:
        repairs.append(said(REPAIRS, "version"))
    cells = [_cell(entry) for entry in raw if isinstance(entry, dict)]
    repairs += [said(REPAIRS, "no_cell", count=len(raw) - len(cells))] * (len(cells) < len(raw))
    repairs += [said(REPAIRS, "kernel")] * _other_kernel(notebook)
    repairs += [said(REPAIRS, "outputs", mib=len(data) >> 20)] * (len(data) > limits.LARGE)
    repairs += [said(REPAIRS, "line_ends")] * any("\r" in cell.source for cell in cells)
    return Found(tuple(_with_line_ends(cell) for cell in cells), tuple(repairs))


STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def _values(text):
    """How many values a JSON text holds at most, each of which takes up memory once it is read."""
    return sum(map(text.count, "[{,"))


MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def _decoded(data):
    """(text, repairs): UTF-8 as it should be, else what the first bytes or the whole file say."""
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace"), [said(REPAIRS, "bom")]
    try:
        return data.decode(), []
    except UnicodeDecodeError:
        pass
    mended = data.decode(errors="replace")
    foreign = sum(byte > 127 for byte in data)
    if 4 * mended.count("�") < foreign:  # a few bytes are broken; in another encoding nearly all would be
        return mended, [said(REPAIRS, "encoding", how="UTF-8")]
    return data.decode("gb18030", "replace"), [said(REPAIRS, "encoding", how="GB 18030")]


def _salvaged(text):
    """Every cell that can be read by itself, of a file that can't be read as a whole."""
    text = text[: limits.SALVAGE]
    start = re.search(r'"(?:cells|worksheets)"\s*:\s*\[', text)
    place, found, decoder, left = (start.end() if start else 0), [], json.JSONDecoder(strict=False), limits.SALVAGE_WORK
    for _ in range(limits.SALVAGE_TRIES):
        place = text.find("{", place)
        if place < 0 or left < 0:
            break
        began = place
        place, reached = _read_on(text, place, decoder, found)
        left -= reached - began
    return found


def _read_on(text, place, decoder, found):
    """Read cells one after the other from `place`; where to go on after the first that can't be read, and how far that was read."""
    while True:
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            return place + 1, getattr(error, "pos", place)
        if isinstance(value, dict) and "cell_type" in value:
            found.append(value)
        gap = re.compile(r"[\s,]*").match(text, place).end()
        if gap >= len(text) or text[gap] != "{":
            return gap, gap
        place = gap


def _raw_cells(notebook):
    """The list of cells, also of a notebook of version 3."""
    if not isinstance(notebook, dict):
        return []
    if isinstance(cells := notebook.get("cells"), list):
        return cells
    sheets = notebook.get("worksheets")
    return [cell for sheet in (sheets if isinstance(sheets, list) else []) if isinstance(sheet, dict) for cell in _list(sheet.get("cells"))]


def _list(value):
    return value if isinstance(value, list) else []


def _cell(entry):
    metadata = entry.get("metadata")
    about = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    claims = about.get("grade_id") if isinstance(about, dict) else None
    source = entry.get("source", entry.get("input", ""))
    source = "".join(map(str, source)) if isinstance(source, list) else source if isinstance(source, str) else ""
    return Cell(
        "code" if entry.get("cell_type") == "code" else "markdown",
        source.encode(errors="replace").decode(),  # half a letter can't be written again
        *(value if isinstance(value, str) else "" for value in (entry.get("id"), claims)),
    )


def _with_line_ends(cell):
    if "\r" not in cell.source:
        return cell
    return Cell(cell.cell_type, cell.source.replace("\r\n", "\n").replace("\r", "\n"), cell.id, cell.claims)


def _other_kernel(notebook):
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    language = kernel.get("language") if isinstance(kernel, dict) else None
    return isinstance(language, str) and language.lower() != "python"


# --- which cell is which ---------------------------------------------------------------------------------------------


def settle(found, handed_out):
    """The Settled of the cells `found`, by the cells that were handed out (with name, cell_type, source and solution)."""
    originals = {cell.name: cell for cell in handed_out}
    claimed = _claimed(found.cells, originals)
    placed = _placed(found.cells, originals, claimed)
    chosen, lost, doubled = {}, {}, []
    for name, copies in (claimed | placed).items():
        own = _differing(copies, originals[name])
        if originals[name].solution and len(own) > 1:
            lost[name] = said(LOST, "copies")
        doubled += [name] * (len(copies) > 1 and name not in lost)
        chosen[name] = (own or copies)[-1]
    for name, cell in originals.items():
        if cell.solution and name not in chosen:
            lost[name] = said(LOST, "gone")
    places = _in_order(found.cells, originals, chosen)
    return Settled(places, lost, (*found.repairs, *_told(found.cells, originals, chosen, doubled, list(placed))))


def _claimed(cells, originals):
    """Indices of the cells that say which they are, by name."""
    copies = {}
    for index, cell in enumerate(cells):
        if cell.claims in originals:
            copies.setdefault(cell.claims, []).append((index, cell))
    return copies


def _differing(copies, original):
    """One of each of the copies in which something else stands than was handed out."""
    own = {cell.source.strip(): (index, cell) for index, cell in copies if cell.source.strip() != original.source.strip()}
    return list(own.values())


def _placed(cells, originals, claimed):
    """Answer cells that lost their label: known by the id they were given, or alone between the cells around them."""
    free = {index for index, cell in enumerate(cells) if cell.claims not in originals}
    where = {name: copies[0][0] for name, copies in claimed.items() if len(copies) == 1}
    names, found = list(originals), {}
    for place, name in enumerate(names):
        if name in claimed or not originals[name].solution:
            continue
        same = [index for index in free if cells[index].id == name]
        near = [index for index in _between(names, place, where, free) if _assigns(cells[index].source, originals[name].source)]
        candidates = same if len(same) == 1 else near
        if len(candidates) == 1:
            found[name] = [(candidates[0], cells[candidates[0]])]
            free.discard(candidates[0])
    return found


def _between(names, place, where, free):
    """The free cells between the neighbours of a cell, where both are still there and in order."""
    before, after = (where.get(names[i]) if 0 <= i < len(names) else None for i in (place - 1, place + 1))
    if before is None or after is None or before > after:
        return []
    return [index for index in range(before + 1, after) if index in free]


def _assigns(source, stub):
    """Whether a source assigns what the stub of an answer cell does."""
    return bool(assigned(stub) & assigned(source))


def assigned(source):
    """The names that are assigned at the left margin, also where the source is no Python."""
    return frozenset(re.findall(r"^([A-Za-z_]\w*)[ \t]*[=＝](?!=)", source, re.MULTILINE))


def _in_order(cells, originals, chosen):
    """(name or None, cell) of every cell, the missing ones put back behind the one that went before them."""
    names = {index: name for name, (index, _) in chosen.items()}
    places = [(names.get(index), cell) for index, cell in enumerate(cells)]
    before = None
    for name in originals:
        if name not in chosen:
            at = next((i + 1 for i, (there, _) in enumerate(places) if there == before), 0) if before else 0
            places.insert(at, (name, None))
        before = name
    return tuple(places)


def _told(cells, originals, chosen, doubled, placed):
    """What was put right, one sentence for each kind."""
    retyped = [name for name, (_, cell) in chosen.items() if cell.cell_type != originals[name].cell_type]
    missing = [name for name, cell in originals.items() if name not in chosen and not cell.solution]
    order = [chosen[name][0] for name in originals if name in chosen]
    for key, names in {"retyped": retyped, "copies": doubled, "found": placed}.items():
        if names:
            yield said(REPAIRS, key, names=", ".join(names[:5]) + (" …" if len(names) > 5 else ""))
    if missing:
        yield said(REPAIRS, "missing", count=len(missing))
    if any(one > other for one, other in itertools.pairwise(order)):
        yield said(REPAIRS, "order")
