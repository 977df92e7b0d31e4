"""Clusters simulated piece by piece: slices of the gradient sent while backward runs."""

import pytest

from formulary import formula

WORK, PEAK, REACHED, LINK, SENT = 6e15, 2e14, 0.5, 4e10, 2e10
MACHINE = {"peak_flop_per_s": PEAK, "kernel_efficiency": REACHED}
PIECES = 1000


def timeline(cards, overlap_from=1 / 3):
    """(end of computation, end of communication) of a step whose gradients are ready piece by piece."""
    compute = network = 0.0
    for piece in range(PIECES):
        compute += WORK / PIECES / cards / (PEAK * REACHED)
        if piece >= overlap_from * PIECES:
            network = max(network, compute) + SENT / LINK / (PIECES * (1 - overlap_from))
    return compute, network


def cards_where(holds):
    """The largest number of cards for which `holds`, by trying them in turn."""
    cards = 1
    while holds(cards + 1):
        cards += 1
    return cards


@pytest.mark.witness("compute_time", "comm_time", "step_time", "serial_step_time")
@pytest.mark.parametrize("cards", [1, 100, 500])
def test_a_step_of_many_pieces(cards):
    compute, network = timeline(cards, overlap_from=0)
    times = {
        "compute_time": formula("compute_time")(step_flop=WORK, num_gpus=cards, **MACHINE),
        "comm_time": formula("comm_time")(comm_bytes=SENT, bandwidth=LINK),
    }
    assert times["compute_time"] == pytest.approx(compute)
    assert times["comm_time"] == pytest.approx(sum(SENT / LINK / PIECES for _ in range(PIECES)))
    assert formula("step_time")(**times) == pytest.approx(max(compute, network), rel=2 / PIECES)
    waiting = compute + SENT / LINK
    assert formula("serial_step_time")(**times) == pytest.approx(waiting)


@pytest.mark.witness("critical_gpus")
def test_cards_at_which_the_network_is_as_slow():
    found = cards_where(lambda cards: timeline(cards, overlap_from=0)[0] >= SENT / LINK)
    assert formula("critical_gpus")(step_flop=WORK, comm_bytes=SENT, bandwidth=LINK, **MACHINE) == pytest.approx(found, abs=1)


@pytest.mark.witness("hiding_gpus")
def test_cards_up_to_which_backward_hides_everything():
    def hidden(cards):
        compute, network = timeline(cards)
        return network <= compute + 2 * SENT / LINK / PIECES

    expected = formula("hiding_gpus")(step_flop=WORK, comm_bytes=SENT, bandwidth=LINK, **MACHINE)
    assert hidden(int(0.99 * expected)) and not hidden(int(1.02 * expected) + 1)


@pytest.mark.witness("hiding_tokens")
@pytest.mark.parametrize("params", [10**8, 7 * 10**9])
def test_tokens_that_hide_the_gradients(params):
    tokens = formula("hiding_tokens")(bytes_per_grad=2, bandwidth=LINK, **MACHINE)
    backward = sum(4 * params / (PEAK * REACHED) for _ in range(round(tokens)))
    ring = sum(2 * params / LINK for _direction in ("reduce", "gather"))
    assert backward == pytest.approx(ring, rel=1 / tokens)


@pytest.mark.witness("scaling_efficiency", "exposed_scaling_efficiency", "weak_scaling_efficiency", "exposed_growth")
@pytest.mark.parametrize("cards", [2, 64])
def test_efficiency_of_work_shared_out(cards):
    alone, exposed, items = 4.0, 0.05, 640
    shared = sum(alone / items for _ in range(items // cards)) + exposed
    useful = alone / sum(shared for _ in range(cards))
    given = {"num_gpus": cards, "one_gpu_step_time": alone}
    assert formula("scaling_efficiency")(step_time=shared, **given) == pytest.approx(useful)
    assert formula("exposed_scaling_efficiency")(exposed_comm_time=exposed, **given) == pytest.approx(useful)
    one, many = items / alone, cards * items / (alone + exposed)
    weak = formula("weak_scaling_efficiency")(tokens_per_s=many, one_gpu_tokens_per_s=one, num_gpus=cards)
    assert weak == pytest.approx(alone / (alone + exposed))
    grown = formula("exposed_growth")(exposed_comm_time=exposed, scaling_efficiency=0.5, **given)
    assert alone / (cards * (alone / cards + grown * exposed)) == pytest.approx(0.5)


@pytest.mark.witness("machine_balance")
def test_work_that_keeps_units_and_memory_busy():
    balance = formula("machine_balance")(peak_flop_per_s=PEAK, bandwidth=LINK)
    moved = 10**6
    assert moved / LINK == pytest.approx(moved * balance / PEAK)
