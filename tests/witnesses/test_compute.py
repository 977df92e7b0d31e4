"""Work counted product by product in real torch models; throughput and bills by what was published about real runs."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from formulary import formula
from formulary.compute import STEP_LEDGER
from tests.witnesses.blocks import TinyGPT

LAYERS, WIDTH, HEADS, VOCAB, BATCH, LENGTH = 3, 32, 4, 100, 2, 24
TOKENS = BATCH * LENGTH
SHAPE = {"global_batch": BATCH, "num_layers": LAYERS, "hidden_size": WIDTH, "seq_length": LENGTH, "vocab_size": VOCAB}
SCORES = {"num_layers": LAYERS, "num_heads": HEADS, "head_dim": WIDTH // HEADS, "seq_length": LENGTH}


def counted(run):
    """FLOP of everything `run` does, by operator."""
    with FlopCounterMode(display=False) as counter:
        run()
    return {str(operator): count for operator, count in counter.get_flop_counts()["Global"].items()}


def gpt(rebuild=()):
    return TinyGPT(LAYERS, WIDTH, HEADS, VOCAB, rebuild=rebuild)


def batch():
    return torch.zeros(BATCH, LENGTH, dtype=torch.int64)


def step(model):
    return sum(counted(lambda: model(batch()).sum().backward()).values())


@pytest.mark.witness("step_flop", "flop_per_token_without_embedding")
def test_a_whole_step():
    model = gpt()
    params = sum(p.numel() for p in model.parameters())
    assert formula("step_flop")(**SHAPE) == step(model)
    per_token = formula("flop_per_token_without_embedding")(num_params=params, hidden_size=WIDTH, vocab_size=VOCAB, **SCORES)
    assert per_token == step(model) / TOKENS


@pytest.mark.witness("recomputed_step_flop")
def test_a_step_with_every_layer_rebuilt():
    assert formula("recomputed_step_flop")(**SHAPE) == pytest.approx(step(gpt(rebuild=range(LAYERS))), rel=1e-12)


@pytest.mark.witness("part_flop")
def test_parts_of_a_step():
    forward = counted(lambda: gpt()(batch()))
    parts = STEP_LEDGER(**SHAPE)
    assert parts["scores"] + parts["weighted values"] == 3 * forward["aten.bmm"]
    assert sum(v for k, v in parts.items() if k not in ("scores", "weighted values")) == pytest.approx(3 * forward["aten.mm"])
    one_layer = gpt().blocks[0]
    x = torch.randn(BATCH, LENGTH, WIDTH)
    mlp = sum(counted(lambda: one_layer._mlp(x)).values())
    assert parts["MLP"] == 3 * LAYERS * mlp
    assert parts["queries, keys, values"] == 3 * parts["output projection"] == 9 * LAYERS * sum(counted(lambda: one_layer.out(x)).values())
    assert parts["logits"] == 3 * sum(counted(lambda: gpt().head(x)).values())


@pytest.mark.witness("attention_flop_per_token")
@pytest.mark.parametrize("share", [1, 0.5])
def test_scores_alone(share):
    products = counted(lambda: gpt()(batch()).sum().backward())["aten.bmm"]
    assert formula("attention_flop_per_token")(causal_share=share, **SCORES) == share * products / TOKENS


@pytest.mark.witness("flop_per_token", "forward_flop_per_token", "flop_per_token_with_attention")
def test_six_for_a_parameter():
    layers = torch.nn.Sequential(*(torch.nn.Linear(i, o, bias=False) for i, o in ((16, 64), (64, 32))))
    params = sum(p.numel() for p in layers.parameters())
    x = torch.randn(7, 16, requires_grad=True)
    forward, whole = (sum(counted(run).values()) / 7 for run in (lambda: layers(x), lambda: layers(x).sum().backward()))
    assert formula("forward_flop_per_token")(num_params=params) == forward
    assert formula("flop_per_token")(num_params=params) == whole
    products = counted(lambda: gpt()(batch()).sum().backward())["aten.bmm"] / TOKENS
    assert formula("flop_per_token_with_attention")(num_params=params, **SCORES) == whole + products


@pytest.mark.witness("mfu_of_parameters", "mfu_with_scores", "hfu_with_scores")
def test_one_rate_counted_in_two_ways():
    layers = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2)))
    params, x = sum(p.numel() for p in layers.parameters()), torch.randn(TOKENS, WIDTH, requires_grad=True)
    matrices = sum(counted(lambda: layers(x).sum().backward()).values())
    products = counted(lambda: gpt()(batch()).sum().backward())["aten.bmm"]
    ticks = 3 * (matrices + products)  # a machine of one FLOP a tick takes three times as long as it had to
    run = {"num_params": params, "num_gpus": 1, "peak_flop_per_s": 1, "tokens_per_s": TOKENS / ticks}
    assert formula("mfu_of_parameters")(**run) == pytest.approx(matrices / ticks)
    assert formula("mfu_with_scores")(**run, **SCORES) == pytest.approx(1 / 3)
    again = sum(counted(lambda: layers(x)).values()) + products / 3
    assert formula("hfu_with_scores")(recomputed_share=1, **run, **SCORES) == pytest.approx((matrices + products + again) / ticks)


@pytest.mark.witness("hfu", "mfu_from_efficiency")
@pytest.mark.parametrize("rebuilt", [0, 1, 3])
def test_work_of_the_hardware_over_work_of_the_model(rebuilt):
    model_work, all_work = step(gpt()), step(gpt(rebuild=range(rebuilt)))
    forward = sum(counted(lambda: gpt()(batch())).values())
    repeated = (all_work - model_work) / forward
    peak = 2 * all_work  # a machine that could have done twice as much in the same time
    assert formula("hfu")(mfu=model_work / peak, recomputed_share=repeated) == pytest.approx(all_work / peak, rel=1e-12)
    assert formula("mfu_from_efficiency")(kernel_efficiency=all_work / peak, recomputed_share=repeated) == pytest.approx(model_work / peak)


@pytest.mark.witness("tokens_per_step", "tokens_per_s", "tokens_per_s_at_mfu", "mfu", "training_time", "training_time_at_rate")
def test_a_run_on_a_simulated_cluster():
    """Cards that finish one FLOP a tick: the clock is advanced batch by batch, nothing is divided by a rate."""
    model, peak, cards, steps = gpt(), 5e5, 4, 10
    work = step(model)
    clock = tokens = done = 0.0
    for _ in range(steps):
        tokens += batch().numel()
        done += work
        clock += work / peak / cards / 0.25  # the kernels reach a quarter of the peak
    rate = formula("tokens_per_s")(global_batch=BATCH, seq_length=LENGTH, step_time=clock / steps)
    assert formula("tokens_per_step")(global_batch=BATCH, seq_length=LENGTH) == tokens / steps
    assert rate == pytest.approx(tokens / clock)
    machine = {"num_gpus": cards, "peak_flop_per_s": peak, "flop_per_token": work / TOKENS}
    assert formula("mfu")(tokens_per_s=rate, **machine) == pytest.approx(0.25)
    assert formula("tokens_per_s_at_mfu")(mfu=0.25, **machine) == pytest.approx(rate)
    assert formula("mfu").under("sparse")(tokens_per_s=rate, **machine) == pytest.approx(0.125)
    assert formula("training_time")(num_tokens=tokens, mfu=0.25, **machine) == pytest.approx(clock)
    assert formula("training_time_at_rate")(num_tokens=tokens, tokens_per_s=rate) == pytest.approx(clock)


@pytest.mark.witness("gpu_time", "training_dollars", "training_energy")
def test_bill_added_up_hour_by_hour():
    hours, cards = 30, 8
    card_hours = [(hour, card) for hour in range(hours) for card in range(cards)]
    given = {"training_time": "30 h", "num_gpus": cards}
    assert formula("gpu_time")(**given) == 3600 * len(card_hours)
    assert formula("training_dollars")(gpu_price="2 $/h", **given) == pytest.approx(sum(2 for _ in card_hours))
    joules = sum(700 * 3600 * 1.2 for _ in card_hours)
    assert formula("training_energy")(gpu_power="700 W", power_overhead=1.2, **given) == pytest.approx(joules)
