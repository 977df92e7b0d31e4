"""Jobs that fail at random moments, simulated with one fixed stream, and an expectation summed over failure times."""

import numpy as np
import pytest
import torch

from formulary import formula

HOUR = 3600.0
RATE, SAVE, RESTART = 1 / (40 * HOUR), 60.0, 600.0
JOB = {"checkpoint_time": SAVE, "failure_rate": RATE, "restart_time": RESTART}


def kept_share(interval, restart=RESTART, restart_fails=True, failures=40_000, rate=RATE, save=SAVE):
    """Share of the time that is training kept, over many failures."""
    gaps = iter(np.random.default_rng(16).exponential(1 / rate, failures))
    clock = kept = down = 0.0
    for gap in gaps:
        if restart_fails and gap < down:
            clock, down = clock + gap, restart
            continue
        alive = gap - down if restart_fails else gap
        clock += gap if restart_fails else gap + down
        kept += interval * (alive // (interval + save))
        down = restart
    return kept / clock


@pytest.mark.witness("goodput", "safe_restart_goodput", "exact_checkpoint_overhead")
@pytest.mark.parametrize("interval", [0.5 * HOUR, 2 * HOUR, 30 * HOUR])
def test_simulated_failures(interval):
    assert formula("goodput")(checkpoint_interval=interval, **JOB) == pytest.approx(kept_share(interval), rel=0.01)
    assert formula("exact_checkpoint_overhead")(checkpoint_interval=interval, **JOB) == pytest.approx(1 - kept_share(interval), abs=0.005)
    safe = formula("safe_restart_goodput")(checkpoint_interval=interval, **JOB)
    assert safe == pytest.approx(kept_share(interval, restart_fails=False), rel=0.01)


@pytest.mark.witness("goodput", "safe_restart_goodput", "exact_checkpoint_overhead")
def test_restarts_longer_than_the_time_between_failures():
    slow = {**JOB, "restart_time": 60 * HOUR, "checkpoint_interval": HOUR}
    assert formula("goodput")(**slow) == pytest.approx(kept_share(HOUR, restart=60 * HOUR), rel=0.05)
    assert formula("exact_checkpoint_overhead")(**slow) == pytest.approx(1 - kept_share(HOUR, restart=60 * HOUR), abs=0.01)
    assert formula("safe_restart_goodput")(**slow) == pytest.approx(kept_share(HOUR, restart=60 * HOUR, restart_fails=False), rel=0.05)


@pytest.mark.witness("checkpoint_overhead", "first_order_goodput")
@pytest.mark.parametrize("interval", [0.5 * HOUR, HOUR, 3 * HOUR])
def test_first_order_where_intervals_are_short(interval):
    lost = 1 - kept_share(interval, failures=200_000)
    assert formula("checkpoint_overhead")(checkpoint_interval=interval, **JOB) == pytest.approx(lost, rel=0.05)
    assert formula("first_order_goodput")(checkpoint_interval=interval, **JOB) == pytest.approx(1 - lost, rel=0.002)


def expected_time(interval, pieces=4000, save=SAVE):
    """Expected time of a stretch and its checkpoint, summed over the moments at which it may fail."""
    stretch = interval + save
    moments = (np.arange(pieces) + 0.5) * stretch / pieces
    fails = RATE * np.exp(-RATE * moments) * stretch / pieces
    down = restart_time()
    through = np.exp(-RATE * stretch)
    return (through * stretch + np.sum(fails * (moments + down))) / through


def restart_time(pieces=4000):
    moments = (np.arange(pieces) + 0.5) * RESTART / pieces
    fails = RATE * np.exp(-RATE * moments) * RESTART / pieces
    through = np.exp(-RATE * RESTART)
    return (through * RESTART + np.sum(fails * moments)) / through


@pytest.mark.witness("segment_time")
@pytest.mark.parametrize("interval", [HOUR, 50 * HOUR])
def test_expected_time_summed_over_failures(interval):
    assert formula("segment_time")(checkpoint_interval=interval, **JOB) == pytest.approx(expected_time(interval), rel=1e-6)


@pytest.mark.witness("checkpoint_interval", "daly_interval", "daly_higher_order_interval", "least_checkpoint_overhead")
def test_best_interval_by_trying():
    tried = np.linspace(0.5 * HOUR, 2.5 * HOUR, 4001)
    best = tried[np.argmax([t / expected_time(t, 400) for t in tried])]
    given = {"checkpoint_time": SAVE, "failure_rate": RATE}
    assert formula("daly_higher_order_interval")(**given) == pytest.approx(best, rel=0.001)
    assert formula("daly_interval")(**given) == pytest.approx(best, rel=0.02)
    assert formula("checkpoint_interval")(**given) == pytest.approx(best, rel=0.02)
    assert formula("checkpoint_interval")(**given) - formula("daly_interval")(**given) == pytest.approx(SAVE)
    lost = min(formula("checkpoint_overhead")(checkpoint_interval=t, **JOB) for t in tried)
    assert formula("least_checkpoint_overhead")(**JOB) == pytest.approx(lost, rel=1e-6)


@pytest.mark.witness("daly_higher_order_interval")
@pytest.mark.parametrize("save", [0.05 / RATE, 0.2 / RATE])
def test_best_interval_when_saving_is_slow(save):
    near = formula("daly_higher_order_interval")(checkpoint_time=save, failure_rate=RATE)
    tried = np.linspace(0.95 * near, 1.05 * near, 2001)
    best = tried[np.argmax([t / expected_time(t, 400, save) for t in tried])]
    assert near == pytest.approx(best, rel=0.002)


@pytest.mark.witness("mtbf", "expected_stops")
def test_failures_of_many_cards():
    cards, rate, days = 20, 1e-6, 40 * 24 * HOUR
    stream, stops = np.random.default_rng(9), []
    for _ in range(400):
        gaps = stream.exponential(1 / rate, (cards, 40)).cumsum(1)
        stops.append((gaps < days).sum())
    assert formula("expected_stops")(num_gpus=cards, gpu_failure_rate=rate, training_time=days) == pytest.approx(np.mean(stops), rel=0.02)
    assert formula("mtbf")(num_gpus=cards, gpu_failure_rate=rate) == pytest.approx(days / np.mean(stops), rel=0.02)


@pytest.mark.witness("failure_rate", "cluster_checkpoint_overhead", "cluster_exact_overhead", "cluster_checkpoint_interval")
def test_intervals_of_many_cards():
    cards, interval = 16, 2 * HOUR
    fails = np.sort(np.random.default_rng(3).exponential(cards / RATE, (cards, 12_000)).cumsum(1), axis=None)
    gaps = np.diff(fails[fails < 10_000 * cards / RATE])  # every card has failed for as long as this
    assert formula("failure_rate")(num_gpus=cards, gpu_failure_rate=RATE / cards) == pytest.approx(1 / gaps.mean(), rel=0.02)
    job = {"num_gpus": cards, "gpu_failure_rate": RATE / cards, "checkpoint_time": SAVE}
    lost = 1 - interval * (gaps // (interval + SAVE)).sum() / gaps.sum()
    assert formula("cluster_exact_overhead")(checkpoint_interval=interval, restart_time=0, **job) == pytest.approx(lost, rel=0.05)
    assert formula("cluster_checkpoint_overhead")(checkpoint_interval=interval, restart_time=0, **job) == pytest.approx(lost, rel=0.05)
    tried = np.linspace(0.5 * HOUR, 2.5 * HOUR, 401)
    best = tried[np.argmax([t / expected_time(t, 400) for t in tried])]
    assert formula("cluster_checkpoint_interval")(**job) == pytest.approx(best, rel=0.03)


@pytest.mark.witness("cluster_checkpoint_overhead")
def test_no_more_than_everything_is_lost():
    job = {"num_gpus": 1, "gpu_failure_rate": RATE, "checkpoint_time": SAVE, "restart_time": 0}
    assert formula("cluster_checkpoint_overhead")(checkpoint_interval=90 * HOUR, **job) == 1


@pytest.mark.witness("checkpoint_bytes", "checkpoint_time")
@pytest.mark.parametrize("saved", ["weights_and_optimizer", "optimizer_only", "everything"])
def test_tensors_of_a_checkpoint(saved):
    count = 640
    optimizer = [torch.zeros(count) for _ in range(3)]
    sixteen_bit = {"weights_and_optimizer": 1, "optimizer_only": 0, "everything": 2}[saved]
    tensors = optimizer + [torch.zeros(count, dtype=torch.bfloat16) for _ in range(sixteen_bit)]
    size = sum(t.nbytes for t in tensors)
    assert formula("checkpoint_bytes").under(saved)(num_params=count) == size
    written = sum(piece.nbytes / 128 for t in tensors for piece in t.split(64))
    assert formula("checkpoint_time").under(saved)(num_params=count, storage_bandwidth=128) == pytest.approx(written)


@pytest.mark.witness("checkpoint_bytes")
def test_what_torch_saves_of_fp32_training():
    layer = torch.nn.Linear(30, 20)
    adam = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 30)).sum().backward()
    adam.step()
    moments = [v for state in adam.state_dict()["state"].values() for k, v in state.items() if k != "step"]
    size = sum(t.nbytes for t in [*layer.state_dict().values(), *moments])
    assert formula("checkpoint_bytes").under("optimizer_only")(num_params=sum(p.numel() for p in layer.parameters())) == size
