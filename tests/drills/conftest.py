"""Numbers that are drawn anew whenever a card is asked, and here the same in every run."""

import random

import pytest


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    stream = random.Random(16)
    monkeypatch.setattr("secrets.token_hex", lambda size: stream.randbytes(size).hex())
    monkeypatch.setattr("random.SystemRandom", lambda: stream)
