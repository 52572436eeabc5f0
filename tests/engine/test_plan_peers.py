"""Which pairs of a suite are measured: those asked for, with the settings of both."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lra.core import catalogue, peers
from lra.core.cells import EfficiencyCell
from lra.core.errors import UsageError
from lra.core.scales import EfficiencyBlock, Pair, Suite, load_suite
from lra.engine.jobs import Job
from lra.engine.plan.describe import Describer
from lra.engine.plan.peers import peer_pairs
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite

BLOCK = EfficiencyBlock(
    scale="mini",
    lengths=(32, 16),
    modes=("train",),
    heads=(2,),
    head_widths=(8,),
    replicates=2,
)
PAIRS = (
    Pair(
        ours="bigbird",
        theirs="peer:hf_bigbird",
        settings={"block": 4},
        their_settings={"block_size": 4},
    ),
    Pair(ours="linear", theirs="peer:linear_attention_transformer"),
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def jobs(cache: str, *mechanisms: str, pairs: tuple[Pair, ...] = PAIRS, **asked: Any) -> list[Job]:
    suite = Suite(name="beside", title="", efficiency=(BLOCK,), pairs=pairs)
    return plan_suite(
        RunSpec(suite=suite, mechanisms=mechanisms, device="cpu", cache=cache, **asked)
    )


def cells(found: list[Job]) -> list[EfficiencyCell]:
    return [job.cell for job in found if isinstance(job.cell, EfficiencyCell)]


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra `peers` is not installed, wherever this runs."""
    real = Describer.describe

    def describe(self: Describer, target: catalogue.Target) -> Any:
        if not target.is_peer:
            return real(self, target)
        described = real(self, catalogue.find("mechanism", "identity"))
        return replace(described, target=target, unavailable="it is not installed")

    monkeypatch.setattr(Describer, "describe", describe)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("asked", [("bigbird",), ("lstm", "peer:hf_bigbird")])
def test_asking_for_one_side_measures_both_beside_floor_and_exact(
    asked: tuple[str, ...], cache: str
) -> None:
    found = jobs(cache, *asked)
    names = ("identity", "sdpa", "bigbird", "peer:hf_bigbird")
    assert Counter(cell.mechanism.name for cell in cells(found)) == dict.fromkeys(names, 4)
    own = [cell.mechanism.config for cell in cells(found) if cell.mechanism.name == "bigbird"]
    assert {(config["block"], config["random"]) for config in own} == {(4, 3)}
    # A round is over before the next begins, and in it all four stand side by side.
    order = [(cell.replicate, cell.length) for cell in cells(found)]
    assert order == [(r, n) for r in (0, 1) for n in (16, 32) for _ in names]


@pytest.mark.usefixtures("nothing_installed")
def test_a_peer_that_is_not_installed_is_a_row_that_says_so(cache: str) -> None:
    found = jobs(cache, "bigbird", "linear")
    gone = {job.mechanism: job.unavailable for job in found}
    assert gone["peer:hf_bigbird"] == "it is not installed"
    assert gone["peer:linear_attention_transformer"] == "it is not installed"
    assert gone["bigbird"] == gone["linear"] == gone["sdpa"] == ""


@pytest.mark.usefixtures("nothing_installed")
def test_what_has_no_pair_is_left_out_and_nothing_at_all_is_one_line(cache: str) -> None:
    found = {cell.mechanism.name for cell in cells(jobs(cache, "all"))}
    assert {"bigbird", "linear"} < found and "lstm" not in found
    with pytest.raises(UsageError, match=r"lstm; .*bigbird, linear") as caught:
        jobs(cache, "lstm")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("nothing_installed")
def test_what_a_person_sets_comes_before_the_pair(cache: str) -> None:
    found = cells(jobs(cache, "bigbird", settings={"block": "8"}))
    assert {c.mechanism.config["block"] for c in found if c.mechanism.name == "bigbird"} == {8}


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        (Pair(ours="bigbrd", theirs="peer:hf_bigbird"), "'bigbird'"),
        (Pair(ours="bigbird", theirs="peer:hf_bigbrd"), "'peer:hf_bigbird'"),
        (Pair(ours="linear", theirs="peer:hf_bigbird"), "linear and peer:hf_bigbird"),
        (Pair(ours="linear", theirs="performer"), "no peer"),
        (
            Pair(ours="bigbird", theirs="peer:hf_bigbird", settings={"blok": 4}),
            "'bigbird'.*'block'",
        ),
    ],
)
@pytest.mark.usefixtures("nothing_installed")
def test_a_wrong_pair_is_one_line(pair: Pair, told: str, cache: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        jobs(cache, "bigbird", "linear", pairs=(pair,))
    assert "\n" not in str(caught.value)


def test_the_shipped_pairs_set_what_makes_both_do_the_same_work(cache: str) -> None:
    suite = load_suite("peers")
    everything = peer_pairs(suite, catalogue.expand("mechanism", ["all"]))
    assert len(everything) == 2 * len(suite.pairs)
    describer = Describer(Path(cache))
    for pair in suite.pairs:
        ours = describer.describe(catalogue.find("mechanism", pair.ours))
        config = ours.configure(pair.settings, pair.ours)
        peer = peers.read(pair.theirs)
        for own, other in peer.matching.items():
            assert config[own] == pair.their_settings[other], f"{pair.ours}: {own}"
        assert {own: config[own] for own in peer.requires} == peer.requires, pair.theirs
    sizes = {
        (n, block.batches, block.heads, block.head_widths)
        for block in suite.efficiency
        for n in block.lengths
    }
    assert {n for n, *_ in sizes} == {2048, 3000, 4096, 8192}
    assert {h * w for _, _, (h,), (w,) in sizes} == {256}
