from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

import msgspec
import pytest
import torch

from lra.core.errors import LraError
from lra.core.records import CurvePoint
from lra.training import checkpoint, loop
from lra.training.checkpoint import Best, Generators, Standing
from lra.training.loop import Run, train
from lra.training.setup import Training


def now() -> Generators:
    """The generators of one process on a CPU."""
    return Generators([torch.get_rng_state()], [])


@pytest.fixture
def parts(toy: ModuleType) -> Iterator[tuple[torch.nn.Module, torch.optim.Optimizer, Standing]]:
    model = toy.model()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    model(torch.ones(2, 5, dtype=torch.uint8)).sum().backward()
    optimiser.step()
    point = CurvePoint(
        step=7, seconds=1.5, train_loss=0.1, validation_loss=0.3, validation_accuracy=1 / 3,
        learning_rate=1e-3,
    )  # fmt: skip
    weights = {name: value + 1 for name, value in model.state_dict().items()}
    standing = Standing(
        torch.tensor(0.1, dtype=torch.float64), 9, 2.5, [point], Best(7, 1 / 3, 0.3, weights)
    )
    return model, optimiser, standing


def test_everything_comes_back(toy: ModuleType, parts: tuple, tmp_path: Path) -> None:
    model, optimiser, standing = parts
    torch.manual_seed(5)
    torch.rand(3)
    checkpoint.save(tmp_path / "deep" / "a.pt", "run", standing, model, optimiser, now())
    drawn = torch.rand(4)

    fresh = toy.model(dropout=0.3)
    fresh_optimiser = torch.optim.AdamW(fresh.parameters(), lr=0.5, fused=True)
    found = checkpoint.load(tmp_path / "deep" / "a.pt", "run", fresh, fresh_optimiser, toy.CPU)

    assert torch.equal(torch.rand(4), drawn)
    assert found is not None
    assert (found.step, found.seconds, found.curve) == (9, 2.5, standing.curve)
    assert torch.equal(found.loss_sum, standing.loss_sum)
    assert found.loss_sum.dtype == torch.float64
    assert (found.best.step, found.best.accuracy, found.best.loss) == (7, 1 / 3, 0.3)
    for name, value in model.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value)
        assert torch.equal(found.best.weights[name], value + 1)
    saved, loaded = optimiser.state_dict(), fresh_optimiser.state_dict()
    assert saved["param_groups"] == loaded["param_groups"]
    for index, state in saved["state"].items():
        assert all(torch.equal(state[key], loaded["state"][index][key]) for key in state)


def test_what_an_older_version_wrote_too_is_passed_over(
    toy: ModuleType, parts: tuple, tmp_path: Path
) -> None:
    model, optimiser, standing = parts
    path = tmp_path / "a.pt"
    checkpoint.save(path, "run", standing, model, optimiser, now())
    torch.save({**torch.load(path, weights_only=True), "stacked": 3}, path)
    found = checkpoint.load(path, "run", model, optimiser, toy.CPU)
    assert found is not None and found.step == 9


def test_no_file_is_a_fresh_start(toy: ModuleType, parts: tuple, tmp_path: Path) -> None:
    model, optimiser, _ = parts
    assert checkpoint.load(tmp_path / "none.pt", "run", model, optimiser, toy.CPU) is None


def test_another_trainings_file_is_refused(toy: ModuleType, parts: tuple, tmp_path: Path) -> None:
    model, optimiser, standing = parts
    checkpoint.save(tmp_path / "a.pt", "run", standing, model, optimiser, now())
    with pytest.raises(LraError, match=r"a\.pt"):
        checkpoint.load(tmp_path / "a.pt", "other", model, optimiser, toy.CPU)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_an_unreadable_file_is_refused(
    toy: ModuleType, parts: tuple, tmp_path: Path, content: bytes
) -> None:
    model, optimiser, _ = parts
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(LraError, match=r"a\.pt") as caught:
        checkpoint.load(tmp_path / "a.pt", "run", model, optimiser, toy.CPU)
    assert "\n" not in str(caught.value)


def test_any_byte_that_changed_is_damage_or_changes_nothing(
    toy: ModuleType, parts: tuple, tmp_path: Path
) -> None:
    """Every byte of the weights; of the rest of the archive some, as far apart as time allows."""
    model, optimiser, standing = parts
    path = tmp_path / "a.pt"
    checkpoint.save(path, "run", standing, model, optimiser, now())
    whole = path.read_bytes()
    saved = {name: value.clone() for name, value in model.state_dict().items()}
    weight = saved[next(iter(saved))].numpy().tobytes()
    found = whole.index(weight)
    refused = 0
    for place in (*range(found, found + len(weight), 3), *range(0, len(whole), 61)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            assert checkpoint.load(path, "run", model, optimiser, toy.CPU) is not None
        except LraError as error:
            refused += 1
            assert "'a.pt'" in str(error)
            assert "delete it" in str(error)
            assert "\n" not in str(error)
        else:
            # Padding, times and the like.
            assert not found <= place < found + len(weight)
        for name, value in model.state_dict().items():
            assert torch.equal(saved[name], value)
    assert refused > len(weight) / 3


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_a_file_cut_anywhere_is_refused(
    toy: ModuleType, parts: tuple, tmp_path: Path, kept: float
) -> None:
    model, optimiser, standing = parts
    path = tmp_path / "a.pt"
    checkpoint.save(path, "run", standing, model, optimiser, now())
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(
        LraError, match=r"^cannot read checkpoint 'a\.pt' \([^()]{1,60}\); delete it to train anew$"
    ):
        checkpoint.load(path, "run", model, optimiser, toy.CPU)


def test_a_checkpoint_of_an_earlier_version_is_read(
    toy: ModuleType, parts: tuple, tmp_path: Path
) -> None:
    model, optimiser, standing = parts
    path = tmp_path / "a.pt"
    checkpoint.save(path, "run", standing, model, optimiser, now())
    torch.save(torch.load(path, weights_only=True), path)
    found = checkpoint.load(path, "run", model, optimiser, toy.CPU)
    assert found is not None
    assert found.step == 9


@pytest.mark.parametrize("limit", [1000, 20_000])
def test_a_full_disk_is_one_line(toy: ModuleType, parts: tuple, tmp_path: Path, limit: int) -> None:
    model, optimiser, standing = parts
    path = tmp_path / "a.pt"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ, so that a write past the limit is an error.
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(
            LraError, match=r"cannot write checkpoint 'a\.pt': file too large; make"
        ):
            checkpoint.save(path, "run", standing, model, optimiser, now())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


class Planted:
    """Runs code where it is unpickled without a look at what it is."""

    def __reduce__(self) -> tuple:
        return (Path.touch, (Path("ran"),))


def test_nothing_in_a_checkpoint_runs(
    toy: ModuleType, parts: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimiser, _ = parts
    monkeypatch.chdir(tmp_path)
    torch.save({"run": "run", "model": Planted()}, tmp_path / "a.pt")
    with pytest.raises(LraError, match=r"a\.pt.*delete it"):
        checkpoint.load(tmp_path / "a.pt", "run", model, optimiser, toy.CPU)
    assert not Path("ran").exists()


def test_a_write_that_fails_leaves_the_old_file(
    toy: ModuleType, parts: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimiser, standing = parts
    path = tmp_path / "a.pt"
    checkpoint.save(path, "run", standing, model, optimiser, now())

    def half(content: object, stream: object) -> None:
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", half)
    standing.step = 100
    with pytest.raises(LraError, match=r"cannot write checkpoint 'a\.pt': disk full; make room or"):
        checkpoint.save(path, "run", standing, model, optimiser, now())
    monkeypatch.undo()
    found = checkpoint.load(path, "run", model, optimiser, toy.CPU)
    assert found is not None
    assert found.step == 9
    assert [p.name for p in tmp_path.iterdir()] == ["a.pt"]


def test_of_two_writers_at_once_the_last_has_the_file_whole(
    toy: ModuleType, parts: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One begins and ends amid the other's write."""
    model, optimiser, standing = parts
    path, whole = tmp_path / "a.pt", torch.save
    between: list[int] = []

    def write() -> None:
        checkpoint.save(path, "run", standing, model, optimiser, now())

    def read() -> int:
        found = checkpoint.load(path, "run", model, optimiser, toy.CPU)
        assert found is not None
        return found.step

    def interrupted(content: object, stream: BinaryIO) -> None:
        stream.write(b"half")
        monkeypatch.undo()
        standing.step = 10
        write()
        between.append(read())
        stream.seek(0)
        whole(content, stream)

    monkeypatch.setattr(torch, "save", interrupted)
    write()
    assert (between, read()) == ([10], 9)
    assert [p.name for p in tmp_path.iterdir()] == ["a.pt"]


def test_checkpoints_by_the_clock(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    monkeypatch.setattr(
        checkpoint, "save", lambda path, run, standing, *rest: saved.append(standing.step)
    )
    data = toy.dataset()
    spec = msgspec.structs.replace(toy.SPEC, steps=10, evaluate_every=5)
    monkeypatch.setattr(loop, "SAVE_EVERY", 0.0)
    train(
        Run(toy.model(), Training(data, spec, seed=0), device=toy.CPU, checkpoint=tmp_path / "a.pt")
    )
    assert set(saved) == set(range(1, 11))

    # Without the clock, only validations save; dear writes only the first and the last.
    saved.clear()
    monkeypatch.setattr(loop, "SAVE_EVERY", 1e9)
    train(
        Run(toy.model(), Training(data, spec, seed=0), device=toy.CPU, checkpoint=tmp_path / "b.pt")
    )
    assert saved == [5, 10]
    saved.clear()
    monkeypatch.setattr(loop, "SAVE_SHARE", -1.0)
    train(
        Run(toy.model(), Training(data, spec, seed=0), device=toy.CPU, checkpoint=tmp_path / "c.pt")
    )
    assert saved == [10]


def test_half_a_minute_counts_from_the_last_checkpoint(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, saved = 0.0, []

    def took(module: torch.nn.Module, *_: object) -> None:
        nonlocal now
        now += 8.0 if module.training else 0.0

    monkeypatch.setattr(loop, "perf_counter", lambda: now)
    monkeypatch.setattr(
        checkpoint, "save", lambda path, run, standing, *rest: saved.append(standing.step)
    )
    model = toy.model()
    model.register_forward_hook(took)
    spec = msgspec.structs.replace(toy.SPEC, steps=10, evaluate_every=10)
    train(
        Run(
            model,
            Training(toy.dataset(), spec, seed=0),
            device=toy.CPU,
            checkpoint=tmp_path / "a.pt",
        )
    )
    # Steps of 8 s, then the validation after the last.
    assert saved == [4, 8, 10]
