from __future__ import annotations

import resource
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

import msgspec
import pytest
import torch

from lra.core.errors import LraError
from lra.core.records import CurvePoint
from lra.training import checkpoint, loop
from lra.training.checkpoint import Best, Generators, TrainingState


class Kept:
    """The parts of a checkpoint: a model after a step, its optimiser, and where it stands."""

    def __init__(self, toy: ModuleType, path: Path) -> None:
        self.toy, self.path, self.model = toy, path, toy.model()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=0.1, fused=True)
        self.model(torch.ones(2, 5, dtype=torch.uint8)).logits_LC.sum().backward()
        self.optimiser.step()
        point = CurvePoint(
            step=7, seconds=1.5, train_loss=0.1, validation_loss=0.3, validation_accuracy=1 / 3,
            learning_rate=1e-3,
        )  # fmt: skip
        weights = {name: value + 1 for name, value in self.model.state_dict().items()}
        loss_sum, best = torch.tensor(0.1, dtype=torch.float64), Best(7, 1 / 3, 0.3, weights)
        self.state = TrainingState(loss_sum, 9, 2.5, [point], best)

    def save(self) -> None:
        now = Generators([torch.get_rng_state()], [])
        checkpoint.save(self.path, "run", self.state, self.model, self.optimiser, now)

    def load(self, run: str = "run") -> TrainingState | None:
        return checkpoint.load(self.path, run, self.model, self.optimiser, self.toy.CPU)

    def read_step(self) -> int:
        found = self.load()
        assert found is not None
        return found.step


@pytest.fixture
def kept(toy: ModuleType, tmp_path: Path) -> Kept:
    return Kept(toy, tmp_path / "deep" / "a.pt")


def test_everything_comes_back(toy: ModuleType, kept: Kept) -> None:
    torch.manual_seed(5)
    torch.rand(3)
    kept.save()
    drawn = torch.rand(4)

    fresh = toy.model(dropout=0.3)
    fresh_optimiser = torch.optim.AdamW(fresh.parameters(), lr=0.5, fused=True)
    found = checkpoint.load(kept.path, "run", fresh, fresh_optimiser, toy.CPU)

    assert torch.equal(torch.rand(4), drawn)
    assert found is not None
    assert (found.step, found.seconds, found.curve) == (9, 2.5, kept.state.curve)
    assert torch.equal(found.loss_sum, kept.state.loss_sum)
    assert found.loss_sum.dtype == torch.float64
    assert (found.best.step, found.best.accuracy, found.best.loss) == (7, 1 / 3, 0.3)
    for name, value in kept.model.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value)
        assert torch.equal(found.best.weights[name], value + 1)
    saved, loaded = kept.optimiser.state_dict(), fresh_optimiser.state_dict()
    assert saved["param_groups"] == loaded["param_groups"]
    for index, state in saved["state"].items():
        assert all(torch.equal(state[key], loaded["state"][index][key]) for key in state)


@pytest.mark.parametrize("more", [{}, {"stacked": 3}], ids=["no checksum", "more"])
def test_a_checkpoint_of_an_earlier_version_is_read(kept: Kept, more: dict[str, int]) -> None:
    kept.save()
    content = torch.load(kept.path, weights_only=True)
    del content["sealed"]
    torch.save({**content, **more}, kept.path)
    assert kept.read_step() == 9


def test_weights_and_seal_that_both_changed_are_damage(kept: Kept) -> None:
    kept.save()
    whole = bytearray(kept.path.read_bytes())
    weight = next(iter(kept.model.state_dict().values())).numpy().tobytes()
    for place in (whole.index(weight), whole.rindex(b"lra-crc32")):
        whole[place] ^= 1
    kept.path.write_bytes(whole)
    with pytest.raises(LraError, match=r"'a\.pt' \(it does not hold what was written\)"):
        kept.load()


def test_no_file_is_a_fresh_start_and_another_trainings_is_refused(kept: Kept) -> None:
    assert kept.load() is None
    kept.save()
    with pytest.raises(LraError, match=r"a\.pt"):
        kept.load("other")


def test_any_byte_that_changed_is_damage_or_changes_nothing(kept: Kept) -> None:
    """Every byte of the weights; of the rest of the archive some, as far apart as time allows."""
    kept.save()
    whole = kept.path.read_bytes()
    saved = {name: value.clone() for name, value in kept.model.state_dict().items()}
    weight = saved[next(iter(saved))].numpy().tobytes()
    found = whole.index(weight)
    refused = 0
    for place in (*range(found, found + len(weight), 3), *range(0, len(whole), 61)):
        kept.path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            assert kept.load() is not None
        except LraError as error:
            refused += 1
            assert "'a.pt'" in str(error) and "\n" not in str(error)
        else:
            # Padding, times and the like.
            assert not found <= place < found + len(weight)
        for name, value in kept.model.state_dict().items():
            assert torch.equal(saved[name], value)
    assert refused > len(weight) / 3


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_cut_anywhere_is_refused(kept: Kept, share: float) -> None:
    kept.save()
    kept.path.write_bytes(kept.path.read_bytes()[: int(share * kept.path.stat().st_size)])
    with pytest.raises(LraError, match=r"'a\.pt' \([^()]{1,60}\)"):
        kept.load()


@pytest.mark.parametrize("limit", [1000, 20_000])
def test_a_full_disk_is_one_line(kept: Kept, limit: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ, so that a write past the limit is an error.
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(LraError, match=r"'a\.pt'"):
            kept.save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(kept.path.parent.iterdir()) == []


class Planted:
    """Runs code where it is unpickled without a look at what it is."""

    def __reduce__(self) -> tuple:
        return (Path.touch, (Path("ran"),))


def test_nothing_in_a_checkpoint_runs(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept.path.parent.mkdir()
    torch.save({"run": "run", "model": Planted()}, kept.path)
    with pytest.raises(LraError, match=r"a\.pt"):
        kept.load()
    assert not Path("ran").exists()


def test_a_write_that_fails_leaves_the_old_file(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.save()

    def half(content: object, stream: BinaryIO) -> None:
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", half)
    kept.state.step = 100
    with pytest.raises(LraError, match=r"'a\.pt'.*disk full"):
        kept.save()
    monkeypatch.undo()
    assert kept.read_step() == 9
    assert [p.name for p in kept.path.parent.iterdir()] == ["a.pt"]


def test_of_two_writers_at_once_the_last_has_the_file_whole(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One begins and ends amid the other's write."""
    whole, between = torch.save, []

    def interrupted(content: object, stream: BinaryIO) -> None:
        stream.write(b"half")
        monkeypatch.undo()
        kept.state.step = 10
        kept.save()
        between.append(kept.read_step())
        stream.seek(0)
        whole(content, stream)

    monkeypatch.setattr(torch, "save", interrupted)
    kept.save()
    assert (between, kept.read_step()) == ([10], 9)
    assert [p.name for p in kept.path.parent.iterdir()] == ["a.pt"]


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps at which a training would have been written."""
    steps: list[int] = []
    monkeypatch.setattr(
        checkpoint, "save", lambda path, run, state, *rest: steps.append(state.step)
    )
    return steps


@pytest.mark.parametrize(
    ("every", "share", "steps"),
    # Without the clock, only validations save; where that is dear, the last alone.
    [(0.0, 0.05, [*range(1, 11)]), (1e9, 0.05, [5, 10]), (1e9, -1.0, [10])],
)
def test_checkpoints_by_the_clock(
    toy: ModuleType,
    saved: list[int],
    every: float,
    share: float,
    steps: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "SAVE_EVERY", every)
    monkeypatch.setattr(loop, "SAVE_SHARE", share)
    spec = msgspec.structs.replace(toy.SPEC, steps=10, evaluate_every=5)
    toy.trained(toy.model(), spec, checkpoint=tmp_path / "a.pt")
    # By the clock a step may be saved again, amid a validation.
    assert (saved if every else sorted({*saved})) == steps


def test_half_a_minute_counts_from_the_last_checkpoint(
    toy: ModuleType, saved: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def took(module: torch.nn.Module, *_: object) -> None:
        nonlocal now
        now += 8.0 if module.training else 0.0

    monkeypatch.setattr(loop, "perf_counter", lambda: now)
    model = toy.model()
    model.register_forward_hook(took)
    spec = msgspec.structs.replace(toy.SPEC, steps=10, evaluate_every=10)
    toy.trained(model, spec, checkpoint=tmp_path / "a.pt")
    # Steps of 8 s, then the validation after the last.
    assert saved == [4, 8, 10]
