"""The explorers' colours can be told apart by everyone and seen on every page."""

from itertools import combinations

import numpy as np
import pytest

from explorers.palette import BAD, GOOD, PALETTE

PAGES = {"light": "#ffffff", "dark": "#111111"}
# Machado, Oliveira and Fernandes, 2009: how full protanopes, deuteranopes and tritanopes see linear RGB
SIGHT = {
    "full": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
DISTINCT = 15  # in CIELAB; 2 is just noticed side by side
WHITE = XYZ @ np.ones(3)


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG 2 contrast ratio."""
    high, low = sorted((XYZ[1] @ linear(colour) + 0.05 for colour in (one, other)), reverse=True)
    return high / low


def lab(rgb):
    x, y, z = np.cbrt(XYZ @ np.clip(rgb, 0, 1) / WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("colour", sorted({*PALETTE, GOOD, BAD}))
def test_a_shape_stands_out_from_the_page(colour, page):
    assert contrast(colour, PAGES[page]) >= 3  # WCAG 1.4.11 for graphics


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_are_told_apart(sight):
    seen = {colour: lab(SIGHT[sight] @ linear(colour)) for colour in PALETTE}
    near = [(a, b) for a, b in [*combinations(PALETTE, 2)] if np.linalg.norm(seen[a] - seen[b]) < DISTINCT]
    assert near == []
    assert np.linalg.norm(lab(SIGHT[sight] @ linear(GOOD)) - lab(SIGHT[sight] @ linear(BAD))) > DISTINCT
