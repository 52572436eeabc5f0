"""Options of `lra show` reach its cells: settings, sizes, direction, input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lra.core.cells import ShowCell
from lra.core.scales import load_scale
from lra.engine.plan.show import plan_show
from lra.engine.plan.spec import ShowSpec

CAUSAL_ONLY = """
from attention_impls.contract import Attention
from lra.core.cards import AttentionCard, Capabilities

class Late(Attention):
    card = AttentionCard(title="late", paper="none", year=2026, time="O(n)", memory="O(n)",
                         capabilities=Capabilities(causal="strict"))
    def attend(self, q, k, v, context, state=None):
        return v, None
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def _cells(cache: str, *impls: str, **fields: Any) -> list[ShowCell]:
    jobs = plan_show(ShowSpec(mechanisms=impls, cache=cache, **fields))
    assert all(isinstance(job.cell, ShowCell) for job in jobs)
    return [job.cell for job in jobs]  # type: ignore[misc]


def test_settings_are_the_scales_and_then_ones_own(cache: str) -> None:
    picture = load_scale("picture").mechanisms["longformer"]
    (cell,) = _cells(cache, "longformer")
    assert {key: cell.mechanism.config[key] for key in picture} == picture
    assert (cell.length, cell.width, cell.heads, cell.head_width) == (64, 64, 4, 16)
    (cell,) = _cells(cache, "longformer", scale="paper")
    assert cell.mechanism.config["window"] == 512, "the paper's, of which the scale says nothing"
    (cell,) = _cells(cache, "longformer", settings={"window": "6"})
    assert cell.mechanism.config == {**picture, "window": 6, "parity": "none"}


def test_an_input_gives_length_and_width_and_its_hash(cache: str, tmp_path: Path) -> None:
    hashes = []
    for number in (0.0, 1.0):
        np.save(tmp_path / "x.npy", np.full((5, 3), number))
        (job,) = plan_show(
            ShowSpec(mechanisms=("full",), cache=cache, input=str(tmp_path / "x.npy"))
        )
        assert isinstance(job.cell, ShowCell) and job.source == str(tmp_path / "x.npy")
        assert (job.cell.length, job.cell.width) == (5, 3)
        hashes.append(job.cell.input)
    assert len({"", *hashes}) == 3


def test_direction_is_both_ways_where_the_mechanism_can(cache: str, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(CAUSAL_ONLY)
    cells = _cells(cache, "full", str(tmp_path / "late.py"))
    assert [cell.direction for cell in cells] == ["bidirectional", "causal"]
    cells = _cells(cache, "full", "longformer", direction="causal")
    assert [cell.direction for cell in cells] == ["causal", "causal"]
