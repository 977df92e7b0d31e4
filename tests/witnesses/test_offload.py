"""Offload as a log of copies, and copies as pieces on two one-way lanes."""

import pytest
import torch

from formulary import formula


def copies(params, ranks, micro_batches, last_width=2):
    """(bytes down, bytes up) of one rank's optimizer step, following DeepSpeed's order of copies."""
    shard = torch.empty(params // ranks, dtype=torch.bfloat16, device="meta")
    wide = torch.empty(params // ranks, dtype=torch.float32 if last_width == 4 else torch.bfloat16, device="meta")
    down, up, alone = [], [], micro_batches == 1
    for index in range(micro_batches):
        if not alone:
            up += [shard] if index else []  # the sum so far comes back to be added to
            down += [shard]
        if index == micro_batches - 1:
            down += [wide]  # into Adam's buffer
    up += [shard]  # the updated weights
    return sum(t.nbytes for t in down), sum(t.nbytes for t in up)


@pytest.mark.witness("offload_down_bytes", "offload_up_bytes", "offload_down_bytes_widened")
@pytest.mark.parametrize("ranks", [1, 8])
@pytest.mark.parametrize("micro_batches", [1, 2, 16])
def test_copies_of_a_step(ranks, micro_batches):
    given = {"num_params": 8000, "world_size": ranks, "accumulation_steps": micro_batches}
    down, up = copies(8000, ranks, micro_batches)
    assert formula("offload_down_bytes")(**given) == down
    assert formula("offload_up_bytes")(num_params=8000, world_size=ranks, accumulation_steps=micro_batches) == up
    assert formula("offload_down_bytes_widened")(**given) == copies(8000, ranks, micro_batches, last_width=4)[0]


def lanes(down, up, rate, duplex):
    """When the last piece arrives, pieces of one byte each way."""
    clock = 0.0
    while down > 0 or up > 0:
        clock += 1 / rate
        waits = down > 0 and not duplex
        down, up = down - 1, up if waits else up - 1
    return clock


@pytest.mark.witness("offload_time", "duplex_offload_time")
@pytest.mark.parametrize("down, up", [(40, 20), (7, 31), (5, 5)])
def test_pieces_on_two_lanes(down, up):
    given = {"offload_down_bytes": down, "offload_up_bytes": up, "host_bandwidth": 8}
    assert formula("offload_time")(**given) == pytest.approx(lanes(down, up, 8, duplex=False))
    assert formula("duplex_offload_time")(**given) == pytest.approx(lanes(down, up, 8, duplex=True))


@pytest.mark.witness("copies_time", "duplex_copies_time")
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_copies_on_two_lanes(micro_batches):
    down, up = copies(80, 2, micro_batches)
    given = {"num_params": 80, "world_size": 2, "accumulation_steps": micro_batches, "host_bandwidth": 8}
    assert formula("copies_time")(**given) == pytest.approx(lanes(down, up, 8, duplex=False))
    assert formula("duplex_copies_time")(**given) == pytest.approx(lanes(down, up, 8, duplex=True))


def assembly_line(layers, stations):
    """When the last layer leaves the last station; a station takes one layer at a time, in order."""
    free = [0.0] * len(stations)
    for _ in range(layers):
        ready = 0.0
        for station, duration in enumerate(stations):
            free[station] = ready = max(ready, free[station]) + duration
    return free[-1]


@pytest.mark.witness("offload_step_time", "layer_backward_time", "layer_down_time", "layer_adam_time", "layer_up_time")
@pytest.mark.parametrize("backward, adam, rate", [(4.0, 0.5, 64), (0.5, 4.0, 64), (0.5, 0.5, 8)])
def test_layers_through_four_stations(backward, adam, rate):
    layers, weights = 5, torch.empty(200, dtype=torch.bfloat16)
    link = weights.chunk(layers)[0].nbytes / rate
    stations = [backward / layers, link, adam / layers, link]
    given = {"num_layers": layers, "num_params": weights.numel(), "world_size": 1, "host_bandwidth": rate}
    times = {"backward_time": backward, "host_adam_time": adam, "forward_time": 1.5}
    assert formula("offload_step_time")(**given, **times) == pytest.approx(1.5 + assembly_line(layers, stations))
    names = ("layer_backward_time", "layer_down_time", "layer_adam_time", "layer_up_time")
    made = [formula(name) for name in names]
    found = [each(**{name: value for name, value in (given | times).items() if name in each.inputs}) for each in made]
    assert found == pytest.approx(stations)


@pytest.mark.witness("host_state_bytes", "nvme_time")
def test_states_on_host_and_drive():
    params, rate = 1000, 64
    optimizer = [torch.zeros(params, dtype=torch.float32) for _ in range(3)]
    gradient = torch.zeros(params, dtype=torch.bfloat16)
    assert formula("host_state_bytes")(num_params=params) == sum(t.nbytes for t in [*optimizer, gradient])
    clock = sum(piece.nbytes / rate for tensor in optimizer for piece in tensor.split(100) for _ in ("read", "write"))
    assert formula("nvme_time")(num_params=params, storage_bandwidth=rate) == pytest.approx(clock)


@pytest.mark.witness("pcie_bandwidth")
def test_frames_on_a_link():
    lanes_, transfers = 16, 1300
    bits = sum(128 for _lane in range(lanes_) for _frame in range(transfers // 130))
    assert formula("pcie_bandwidth")(num_lanes=lanes_, transfers_per_s=transfers) == pytest.approx(bits / 8)


@pytest.mark.witness("throughput_loss")
@pytest.mark.parametrize("growth", [1, 1.3, 1.7])
def test_steps_done_in_a_day(growth):
    before, after = (int(10**9 / duration) for duration in (1.0, growth))
    assert formula("throughput_loss")(step_time_growth=growth) == pytest.approx((before - after) / before, abs=1e-8)


@pytest.mark.witness("exposed_offload_time", "hiding_bandwidth")
def test_layers_copied_while_later_ones_compute():
    layers, size, each = 50, 100, 0.5
    for rate in (150, 200, 400):
        compute = network = 0.0
        for _ in range(layers):
            compute += each
            network = max(network, compute - each) + size / rate
        waited = formula("exposed_offload_time")(moved_bytes=layers * size, host_bandwidth=rate, forward_time=layers * each)
        assert waited == pytest.approx(max(0, network - compute), abs=2 * each)
    assert formula("hiding_bandwidth")(moved_bytes=layers * size, forward_time=layers * each) == pytest.approx(size / each)
