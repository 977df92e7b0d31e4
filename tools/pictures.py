"""The small pictures of the contents page, as SVG text. Where a formula exists, the picture is drawn from its values.

The colours are mid-tones that stand out from a white page and from a dark one alike, since an image cannot know the theme.
"""

import math

import numpy as np

from formulary.amounts import BINARY, DECIMAL
from formulary.memory import RECIPE, STATE_LEDGER, ZERO_LEDGER

WIDTH, HEIGHT, MARGIN = 240, 120, 10
GREY = "#808080"
COLORS = ("#3b7dd8", "#2f9a5f", "#d97a1a", "#9a66d6", "#d05a7e")
FAINT = 0.5  # how strongly a planned chapter's picture is drawn


def picture(name, planned=False):
    """The picture called `name` as an SVG document; faint if its chapter is `planned`. Raises KeyError."""
    shapes = "".join(PICTURES[name]())
    group = f'<g opacity="{FAINT}">{shapes}</g>' if planned else shapes
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{group}</svg>\n'


# --- shapes ------------------------------------------------------------------------------------------------------------


def rect(x, y, width, height, color, opacity=1.0):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="1.5" fill="{color}" fill-opacity="{opacity:g}"/>'


def curve(points, color=GREY, width=2):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width:g}" stroke-linejoin="round"/>'


def dot(x, y, radius, color):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{color}"/>'


def word(x, y, text):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-family="sans-serif" font-size="13" fill="{GREY}">{text}</text>'


def arrow(x0, y0, x1, y1, color=GREY):
    angle = math.atan2(y1 - y0, x1 - x0)
    head = [(x1 - 7 * math.cos(angle + turn), y1 - 7 * math.sin(angle + turn)) for turn in (0.5, -0.5)]
    return curve([(x0, y0), (x1, y1)], color) + curve([head[0], (x1, y1), head[1]], color)


def stacked_bars(rows):
    """Bars side by side, each a list of values stacked from the ground; the tallest fills the picture."""
    step = (WIDTH - 2 * MARGIN) / len(rows)
    scale = (HEIGHT - 2 * MARGIN) / max(map(sum, rows))
    for column, values in enumerate(rows):
        top = HEIGHT - MARGIN
        for value, color in zip(values, COLORS, strict=True):
            top -= value * scale
            yield rect(MARGIN + step * column + step / 6, top, step * 2 / 3, value * scale, color)


def lanes(rows):
    """A Gantt chart: each lane a list of (start, length, colour), time filling the picture."""
    end = max(start + length for row in rows for start, length, _ in row)
    scale, step = (WIDTH - 2 * MARGIN) / end, (HEIGHT - 2 * MARGIN) / len(rows)
    for lane, row in enumerate(rows):
        for start, length, color in row:
            yield rect(MARGIN + start * scale + 0.5, MARGIN + lane * step + 2, length * scale - 1, step - 4, color)


def table(rows, columns, color):
    """A grid of cells; `color(row, column)` says which colour and opacity each has."""
    size = min((WIDTH - 2 * MARGIN) / columns, (HEIGHT - 2 * MARGIN) / rows)
    left, top = (WIDTH - size * columns) / 2, (HEIGHT - size * rows) / 2
    for row in range(rows):
        for column in range(columns):
            yield rect(left + column * size + 1, top + row * size + 1, size - 2, size - 2, *color(row, column))


# --- pictures ----------------------------------------------------------------------------------------------------------


def units():
    sizes = (("GB", DECIMAL["G"]), ("GiB", BINARY["Gi"]))
    longest = max(size for _, size in sizes)
    for row, (name, size) in enumerate(sizes):
        yield word(MARGIN, 46 + 42 * row, name)
        yield rect(50, 30 + 42 * row, (WIDTH - 50 - MARGIN) * size / longest, 24, COLORS[row])


def ledger():
    recipes = ("mixed_adam", "fp32_adam", "mixed_adam_both_grads", "mixed_adam_8bit")
    return stacked_bars([list(STATE_LEDGER(num_params=1, **RECIPE[name].values).values()) for name in recipes])


def formats():
    layouts = [(1, np.finfo(kind).nexp, np.finfo(kind).nmant) for kind in (np.float64, np.float32, np.float16)]
    cell = (WIDTH - 2 * MARGIN) / max(map(sum, layouts))
    for row, fields in enumerate(layouts):
        colors = [color for count, color in zip(fields, COLORS, strict=False) for _ in range(count)]
        yield from (rect(MARGIN + bit * cell, 16 + 32 * row, cell * 0.8, 22, color) for bit, color in enumerate(colors))


def mountain():
    heights = [*range(1, 9), *range(8, 0, -1)]
    step = (WIDTH - 2 * MARGIN) / len(heights)
    for column, height in enumerate(heights):
        tall = (HEIGHT - 2 * MARGIN) * height / max(heights)
        yield rect(MARGIN + column * step + 1, HEIGHT - MARGIN - tall, step - 2, tall, COLORS[0 if column < 8 else 2])


def tiles():
    return table(6, 6, lambda row, column: (COLORS[0], 1.0 if row == 2 and column == 3 else 0.5 if row == 2 or column == 3 else 0.2))


def ring():
    spots = [(WIDTH / 2 + 90 * math.cos(turn), HEIGHT / 2 + 42 * math.sin(turn)) for turn in np.linspace(0, 2 * math.pi, 8, endpoint=False)]
    for index, (x, y) in enumerate(spots):
        to_x, to_y = spots[(index + 1) % len(spots)]
        yield arrow(x + 0.3 * (to_x - x), y + 0.3 * (to_y - y), x + 0.72 * (to_x - x), y + 0.72 * (to_y - y))
        yield dot(x, y, 9, COLORS[index % len(COLORS)])


def overlap():
    backward = [(step, 1, COLORS[0]) for step in range(6)]
    messages = [(step + 1, 0.8, COLORS[2]) for step in range(6)]
    return lanes([backward, messages])


def zero():
    return stacked_bars([list(ZERO_LEDGER(num_params=1, world_size=8, stage=stage).values()) for stage in range(4)])


def offload():
    yield rect(20, 25, 70, 70, COLORS[0])
    yield rect(150, 15, 70, 90, COLORS[1], 0.8)
    yield arrow(98, 48, 142, 48)
    yield arrow(142, 74, 98, 74)


def split():
    yield from (rect(20 + 18 * column, 20, 16, 80, COLORS[column]) for column in range(4))
    yield from (rect(130, 20 + 20.5 * row, 90, 18, COLORS[row]) for row in range(4))
    yield word(104, 65, "×")


def pipeline():
    stages, micro_batches = 4, 6
    turn = stages + micro_batches - 1
    forward = [[(stage + batch, 1, COLORS[0]) for batch in range(micro_batches)] for stage in range(stages)]
    backward = [[(turn + stages - 1 - stage + batch, 1, COLORS[2]) for batch in range(micro_batches)] for stage in range(stages)]
    return lanes([there + back for there, back in zip(forward, backward, strict=True)])


def cube():
    for layer in range(3):
        for row in range(3):
            for column in range(4):
                yield rect(88 - 24 * layer + 34 * column, 8 + 14 * layer + 25 * row, 30, 21, COLORS[layer], 0.85)


def adapter():
    yield rect(20, 15, 90, 90, GREY, 0.5)
    yield word(120, 65, "+")
    yield rect(142, 15, 12, 90, COLORS[0])
    yield rect(160, 15, 60, 12, COLORS[2])


def roofline():
    yield curve([(MARGIN, HEIGHT - MARGIN), (105, 30), (WIDTH - MARGIN, 30)], COLORS[0], 3)
    yield from (dot(x, y, 5, COLORS[2]) for x, y in ((50, 88), (90, 58), (140, 48), (200, 36)))


def blocks():
    kept = ((0, 3), (4, 1), (7, 2), (10, 1), (13, 1))
    held = {start + offset for start, length in kept for offset in range(length)}
    return table(4, 8, lambda row, column: (COLORS[1], 1.0 if (row * 8 + column) % 15 in held else 0.2))


def interval():
    x = np.linspace(0.25, 4, 60)
    cost = x + 1 / x
    yield curve([(MARGIN + 55 * a, HEIGHT + 15 - 28 * b) for a, b in zip(x, cost, strict=True)], COLORS[0], 3)
    best = int(np.argmin(cost))
    yield dot(MARGIN + 55 * x[best], HEIGHT + 15 - 28 * cost[best], 6, COLORS[2])


def plan():
    yield from (rect(20, 20 + 30 * row, 20, 20, COLORS[row]) for row in range(3))
    yield from (rect(52, 26 + 30 * row, length, 8, GREY, 0.7) for row, length in enumerate((165, 120, 145)))


def errata():
    yield curve([(24, 62), (48, 88), (92, 30)], COLORS[1], 7)
    yield curve([(150, 32), (206, 88)], COLORS[4], 7)
    yield curve([(206, 32), (150, 88)], COLORS[4], 7)


PICTURES = {
    draw.__name__: draw
    for draw in (
        *(units, ledger, formats, mountain, tiles, ring, overlap, zero, offload),
        *(split, pipeline, cube, adapter, roofline, blocks, interval, plan, errata),
    )
}
