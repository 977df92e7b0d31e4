"""A small rubric of its own, so that the engine is tested apart from the exercises."""

import pytest

from autograder.reasons import load_rubric

WORDS = """
things:
  card: card; gpu; 卡
  weights: weights; 权重
  grads: gradients; 梯度
  whole: a full copy; 完整副本
predicates:
  keep: keep*; hold*; 保存; 留着
  shrink: shrink*; shrank; 变小; 缩小
  unchanged: unchanged; stays the same; 不变
opposites:
  - [shrink, unchanged]
"""

RUBRIC = """
exercise: TOY
statements: {en: ["The weights of each card shrink when cards are added to the job."], zh: ["加卡之后每张卡的权重都会变小。"]}
lines:
  - id: TOY.reason
    points: 2
    criterion: {en: Each card keeps the weights., zh: 每张卡都保存权重。}
    model_answers: {en: Each card keeps the weights in full., zh: 每张卡都保存完整的权重。}
    earns:
      - {id: keeps, worth: 2, en: a card keeps the weights, zh: 卡保存权重, any: [card & keep & weights]}
      - {id: constant, worth: 1, en: the weights do not shrink, zh: 权重不变小, any: [weights & !shrink|unchanged]}
    contradicts:
      - {id: shrinks, en: the weights shrink, zh: 权重变小, any: [{all: weights & shrink, within: 1}]}
    side_errors:
      - {id: grads, en: gradients shrink, zh: 梯度变小, any: [{all: grads & shrink, within: 1}]}
"""


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rubrics")
    (folder / "vocabulary.yaml").write_text(WORDS, encoding="utf-8")
    (folder / "TOY.yaml").write_text(RUBRIC, encoding="utf-8")
    return load_rubric("TOY", folder)
