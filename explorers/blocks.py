"""Grids of who holds what: the blocks of a ring all-reduce round by round, matrices cut among ranks, tiles of attention."""

import sympy as sp

from formulary import glossary as g
from formulary.attention import FLASH_ACCESSES, SRAM_ELEMENTS
from formulary.hardware import GPUS
from formulary.shapes import MODELS
from formulary.tensor_parallel import TP_MLP

from .control import Slider, Step
from .explorer import Explorer
from .grid import COLUMN, NOTHING, ROW, Grid

LARGEST_RING = 16
GPT = MODELS["GPT-3"]
LONGEST = GPT["num_positions"]
ON_CHIP = SRAM_ELEMENTS(**GPUS["A100 80GB"].only(SRAM_ELEMENTS))
_k, _t = g.world_size, g.tensor_parallel
_round = sp.Symbol("round", integer=True, nonnegative=True)
# In every round rank i receives from its left neighbour. A block that has come d ranks far holds d + 1 contributions; once it has
# been through all ranks it is complete, and travels once more round the ring.
_behind = sp.Mod(ROW - COLUMN, _k)  # ranks since the one that sent block `column` first
_since_whole = sp.Mod(ROW - COLUMN + 1, _k)  # ranks since the one that had it complete
_whole = _since_whole <= _round - (_k - 1)
_arrived = sp.And(_behind >= 1, _behind <= _round)


def ring_blocks_explorer(world_size=4, round=0):
    """A ring all-reduce round by round: how many ranks' contributions each block of each rank holds."""
    moved = sp.Piecewise(
        (1, sp.And(_round > 0, _round < _k, sp.Eq(_behind, _round))),
        (1, sp.And(_round >= _k, sp.Eq(_since_whole, _round - (_k - 1)))),
        (0, True),
    )
    view = Grid(
        rows=_k,
        columns=_k,
        legend=("its own contribution only", "a partial sum", "the complete sum"),
        cells="blocks",
        what="blocks are complete; outlined ones arrived in this round",
        cell=sp.Piecewise((2, _whole), (1, _arrived), (0, True)),
        mark=sp.Piecewise((_k, _whole), (_behind + 1, _arrived), (1, True)),
        outline=moved,
        row_label="rank {}",
        column_label="block {}",
        counted="the complete sum",
    )
    controls = [
        Slider("world_size", world_size, "ranks", span=(2, LARGEST_RING)),
        Step("round", "rounds done", 2 * (_k - 1), round, span=2 * (LARGEST_RING - 1), pace=700),
    ]
    return Explorer([], controls, view, title="A ring, block by block", made_by="explorers.ring_blocks_explorer")


THIN, LONG = 6, 24  # the drawn shape of an MLP's matrices, which have four times as many columns as rows or the other way round
_first = COLUMN < LONG
_second = COLUMN > LONG
_shown = sp.Symbol("rank", integer=True, nonnegative=True)


def _piece(place):
    """The rank whose piece of a matrix a row or column is in."""
    return sp.floor(place * _t / LONG)


def split_explorer(tensor_parallel=2, hidden_size=GPT["hidden_size"], ffn_size=GPT["ffn_size"], rank=0):
    """An MLP's two matrices cut among ranks, the first by columns and the second by rows: no rank needs another's piece between them."""
    mine = sp.Or(sp.And(_first, sp.Eq(_piece(COLUMN), _shown)), sp.And(_second, sp.Eq(_piece(ROW), _shown)))
    in_first, in_second = sp.And(_first, ROW < THIN), sp.And(_second, COLUMN <= LONG + THIN)
    view = Grid(
        rows=LONG,
        columns=LONG + 1 + THIN,
        legend=("first matrix, cut by columns", "second matrix, cut by rows"),
        cells="squares drawn",
        what="parameters of the MLP on each rank; the pieces of the rank shown stand out",
        cell=sp.Piecewise((0, in_first), (1, in_second), (NOTHING, True)),
        tone=sp.Piecewise((0, mine), (1, True)),
        mark=sp.Piecewise((_piece(COLUMN), _first), (_piece(ROW), True)),
        mark_label="rank {}",
        row_label="",
        headline=TP_MLP,
    )
    controls = [
        Slider("tensor_parallel", tensor_parallel, "tensor-parallel ranks", scale="doubling", span=(1, 12)),
        Step("rank", "rank shown", _t - 1, rank, span=11, pace=900),
        Slider("hidden_size", hidden_size, "width of the model", scale="doubling"),
        Slider("ffn_size", ffn_size, "width between the matrices", scale="doubling"),
    ]
    return Explorer([TP_MLP], controls, view, title="A layer cut in two ways", made_by="explorers.split_explorer")


_s, _d, _M = g.seq_length, g.head_dim, g.sram_elements
# As FlashAttention cuts: blocks of keys as long as a quarter of the on-chip memory holds rows, blocks of queries no longer than that.
_key_rows = sp.ceiling(_M / (4 * _d))
_query_rows = sp.Min(_d, _key_rows)
_tiles = (sp.ceiling(_s / _query_rows), sp.ceiling(_s / _key_rows))
_tile = sp.Symbol("tile", integer=True, nonnegative=True)
_turn = COLUMN * _tiles[0] + ROW  # keys in the outer loop, queries in the inner one
MOST_TILES = 3000


def tiles_explorer(seq_length=LONGEST, head_dim=64, sram_elements=ON_CHIP, tile=0):
    """The score matrix in tiles, one at a time on chip: what tiled attention moves, whatever the order."""
    view = Grid(
        rows=_tiles[0],
        columns=_tiles[1],
        legend=("computed and forgotten", "on chip", "still to come"),
        cells="tiles",
        what="elements moved to and from memory in all; the score matrix itself never is",
        cell=sp.Piecewise((0, _turn < _tile - 1), (1, sp.Eq(_turn, _tile - 1)), (2, True)),
        outline=sp.Piecewise((1, sp.Eq(_turn, _tile - 1)), (0, True)),
        row_label="queries {}",
        column_label="keys {}",
        headline=FLASH_ACCESSES,
    )
    controls = [
        Slider("seq_length", seq_length, "sequence length", scale="doubling", span=(512, LONGEST)),
        Slider("head_dim", head_dim, "width of a head", scale="doubling", span=(32, 128)),
        Slider("sram_elements", sram_elements, "elements that fit on chip", scale="doubling", span=(ON_CHIP / 4, ON_CHIP * 2)),
        Step("tile", "tiles begun", _tiles[0] * _tiles[1], tile, span=MOST_TILES, pace=60),
    ]
    return Explorer([FLASH_ACCESSES], controls, view, title="Attention in tiles", made_by="explorers.tiles_explorer")
