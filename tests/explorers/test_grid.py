"""Grids: bits as torch stores them, a ring as it runs, matrices as they are cut, and tables of frames."""

import pytest
import torch

import explorers
from explorers import Explorer, Grid, Step
from formulary import formula

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "E4M3": torch.float8_e4m3fn, "E5M2": torch.float8_e5m2}
WHOLE = {4: torch.int32, 2: torch.int16, 1: torch.uint8}
NUMBERS = [0.1, 1, 8, 1 / 3, 448, 240, 1 + 2**-8, 1 + 3 * 2**-8, 6e-8, 1e-8, 2**-10, 0.0123]  # ties, powers and subnormals among them


@pytest.mark.parametrize("number", NUMBERS)
def test_bits_are_those_that_torch_stores(number):
    scene = explorers.bits_explorer(number).scene()
    for cells, note, dtype in zip(scene["cells"], scene["notes"], DTYPES.values(), strict=True):
        stored = torch.tensor(number, dtype=torch.float64).to(dtype)
        bits = "".join(str(mark) for kind, mark, *_ in cells if kind >= 0)
        assert int(bits, 2) == stored.view(WHOLE[stored.element_size()]).item()
        assert note == stored.to(torch.float64).item()


def ring(ranks, rounds):
    """How many contributions each block of each rank holds after so many rounds of a ring all-reduce, sent one by one."""
    held = [[1] * ranks for _ in range(ranks)]
    for step in range(rounds):
        sent = [((rank - step) % ranks, rank) for rank in range(ranks)]
        if step >= ranks - 1:
            sent = [((rank + 1 - (step - ranks + 1)) % ranks, rank) for rank in range(ranks)]
        arriving = [((rank + 1) % ranks, block, held[rank][block]) for block, rank in sent]
        for rank, block, count in arriving:
            held[rank][block] = count if step >= ranks - 1 else held[rank][block] + count
    return held


@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_a_rings_blocks_hold_what_they_have_received(ranks):
    made = explorers.ring_blocks_explorer(ranks)
    for rounds in range(2 * ranks - 1):
        made.round = rounds
        assert [[cell[1] for cell in row] for row in made.scene()["cells"]] == ring(ranks, rounds)
    assert made.scene()["figure"] == ranks**2


def test_a_step_goes_no_further_than_the_picture():
    made = explorers.ring_blocks_explorer(4, round=30)
    assert made.state["round"] == 6
    made.world_size = 8
    assert made.state["round"] == 14


def test_every_rank_has_its_share_of_both_matrices():
    made = explorers.split_explorer(4, rank=2)
    cells = [cell for row in made.scene()["cells"] for cell in row if cell[0] >= 0]
    for matrix in (0, 1):
        owners = [mark for kind, mark, *_ in cells if kind == matrix]
        assert {rank: owners.count(rank) for rank in owners} == dict.fromkeys(range(4), len(owners) / 4)
    assert {mark for _, mark, tone, _ in cells if tone == 0} == {2}
    table = made.table()
    assert table.head == ["squares drawn of", "first matrix, cut by columns", "second matrix, cut by rows"]
    assert table.rows == [[f"rank {rank}", "36", "36"] for rank in range(4)]


def test_tiles_are_done_one_by_one():
    made = explorers.tiles_explorer(tile=0)
    total = len(made.scene()["cells"]) * len(made.scene()["cells"][0])
    for tile in (0, 1, total // 2, total):
        made.tile = tile
        kinds = [cell[0] for row in made.scene()["cells"] for cell in row]
        assert (kinds.count(0), kinds.count(1)) == (max(0, tile - 1), min(1, tile))


def test_frames_are_looked_up_by_the_state():
    frames = [[[0, 0]], [[0, 1]], [[1, 1]]]
    view = Grid(rows=1, columns=2, legend=("free", "used"), cells="places", what="in use", frames=frames, by=["event"], counted="used")
    made = Explorer([], [Step("event", "events", 2)], view, title="a map")
    seen = []
    for made.event in range(3):
        seen.append(made.scene()["figure"])
    assert seen == [0, 1, 2]
    assert made.table().rows == [["1", "0", "2"]]


@pytest.mark.parametrize("segments", [1, 4, 8, 32])
def test_the_mountains_peak_is_the_formulas(segments):
    scene = explorers.mountain_explorer(num_layers=32, num_segments=segments, recompute="segments").scene()
    assert scene["counted"] == pytest.approx(scene["beside"][0][1])
    assert scene["levels"][0][-1][1] == pytest.approx(0, abs=1)


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_whole_weights_are_those_of_the_buffers(buffers):
    scene = explorers.gather_explorer(gather_buffers=buffers).scene()
    assert scene["counted"] == formula("fsdp_gathered_bytes")(gather_buffers=buffers, unit_params="200M", bytes_per_gathered_weight=2)
    assert scene["levels"][0][-1][1] == 0
