"""The contents page is what its table and the files present say, and every link on it leads somewhere."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
import yaml

from tools import contents
from tools.pictures import PICTURES, picture

ROOT = contents.ROOT
TABLE = yaml.safe_load((ROOT / "chapters/contents.yaml").read_text())
CHAPTERS = [chapter for part in TABLE["parts"] for chapter in part["chapters"]]


def test_built_is_source():
    assert list(contents.stale()) == []


def test_every_chapter_is_there_once():
    assert [chapter["number"] for chapter in CHAPTERS] == list(range(18))
    assert sorted(chapter["picture"] for chapter in CHAPTERS) == sorted(PICTURES)


def test_every_chapter_written_is_linked():
    page = (ROOT / "contents.md").read_text()
    written = [path.relative_to(ROOT).with_suffix(".ipynb").as_posix() for path in ROOT.glob("chapters/[0-9][0-9]_*.py")]
    assert written == [path for path in written if f'href="{path}"' in page]
    assert page.count("(planned)") == len(CHAPTERS) - len(written)


def test_links_lead_somewhere():
    page = (ROOT / "contents.md").read_text()
    links = [first or second for first, second in re.findall(r'(?:src|href)="([^"]+)"|\]\(([^)]+)\)', page)]
    # a learner's copies are put there by `make course`
    assert [link for link in links if not (ROOT / link).exists() and not link.startswith("assignments")] == []
    assert len(links) >= len(CHAPTERS)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_stay_in_their_frame(name):
    drawing = ElementTree.fromstring(picture(name))
    width, height = map(float, drawing.attrib["viewBox"].split()[2:])
    boxes = [shape.attrib for shape in drawing.iter("{http://www.w3.org/2000/svg}rect")]
    assert all(float(b["x"]) >= 0 and float(b["x"]) + float(b["width"]) <= width for b in boxes)
    assert all(float(b["y"]) >= 0 and float(b["y"]) + float(b["height"]) <= height for b in boxes)
    assert len(list(drawing)) > 1


def test_a_chapter_appears_once_it_is_written(tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/contents.yaml").write_text((ROOT / "chapters/contents.yaml").read_text())
    planned = contents.build(tmp_path)
    (tmp_path / "chapters/07_zero.py").write_text("# %% [markdown]\n# # ZeRO\n")
    written = contents.build(tmp_path)
    assert 'href="chapters/07_zero.ipynb"' not in planned["contents.md"]
    assert 'href="chapters/07_zero.ipynb"' in written["contents.md"]
    changed = [path for path in planned if planned[path] != written[path]]
    assert changed == ["contents.md", "chapters/pictures/zero.svg"]


def test_labs_are_listed_by_their_titles(tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "labs/notebooks").mkdir(parents=True)
    (tmp_path / "chapters/contents.yaml").write_text((ROOT / "chapters/contents.yaml").read_text())
    (tmp_path / "labs/notebooks/states.py").write_text("# %% [markdown]\n# # Model states\n")
    assert "- [Model states](labs/notebooks/states.ipynb)" in contents.build(tmp_path)["contents.md"]
