"""Badges name the copy they are made for."""

import pytest

from tools.badges import badges


@pytest.mark.parametrize("remote", ["git@github.com:some/book.git", "https://github.com/some/book", "ssh://git@github.com/some/book.git"])
def test_badges_name_the_copy(remote):
    binder, colab = badges(remote, "main", "chapters/01_memory.ipynb")
    assert "/gh/some/book/main?urlpath=lab/tree/contents.md" in binder
    assert "/github/some/book/blob/main/chapters/01_memory.ipynb" in colab


@pytest.mark.parametrize("remote", ["", "/home/me/book", "https://example.org/some/book.git"])
def test_other_places_have_no_badges(remote):
    with pytest.raises(ValueError, match=r"need one on github\.com"):
        badges(remote, "main", "x.ipynb")
