"""A training takes from its cell and its mechanism what it is chosen by and padded to."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import torch
from engine_jobs import recalling, training

from lra.core.cards import TaskMetric
from lra.core.protocol import DataSpec, Mechanism, Rows
from lra.engine.jobs import Job
from lra.engine.work import quality
from lra.models.model import Model
from lra.training import loop
from lra.training.outcome import Score


@pytest.fixture(autouse=True)
def as_in_a_worker() -> Iterator[None]:
    """On one thread; and this process ends by SIGTERM afterwards as it did before."""
    handler, threads = signal.getsignal(signal.SIGTERM), torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    signal.signal(signal.SIGTERM, handler)


def changed(job: Job, **fields: object) -> Job:
    return msgspec.structs.replace(job, cell=msgspec.structs.replace(job.cell, **fields))


@pytest.mark.parametrize(("metric", "best"), [("accuracy", 1), ("bits_per_byte", 2), ("nat", 2)])
def test_the_cells_metric_chooses_the_weights(
    cache: Path, monkeypatch: pytest.MonkeyPatch, metric: TaskMetric, best: int
) -> None:
    """The first validation has more right answers, the second the lower loss."""
    scores = iter([Score(9, 10, 0.9), Score(5, 10, 0.5), Score(7, 10, 0.7)])
    monkeypatch.setattr(loop, "evaluate", lambda *args, **options: next(scores))
    job = recalling("identity", cache)
    spec = msgspec.structs.replace(job.cell.training, steps=2, evaluate_every=1)
    job = changed(job, metric=metric, training=spec)
    assert quality.run(job.cell, job, lambda progress: None).best_step == best


@pytest.mark.parametrize(("mechanism", "padding"), [("reformer", "length"), ("sdpa", "content")])
def test_what_depends_on_its_padding_is_trained_and_looked_at_at_full_length(
    cache: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str, padding: str
) -> None:
    job = changed(training("Toy", cache, steps=2), mechanism=Mechanism(name=mechanism))
    job = msgspec.structs.replace(job, mechanism="")
    trained, looked_at = set(), set()
    encode = Model.encode

    def spy(self: Model, tokens_SN: torch.Tensor, *given: object, **options: object) -> object:
        # Examples whose attention is recorded go in one at a time.
        (looked_at if len(tokens_SN) == 1 else trained).add(tokens_SN.shape[1])
        return encode(self, tokens_SN, *given, **options)

    monkeypatch.setattr(Model, "encode", spy)
    found = quality.run(job.cell, job, lambda progress: None)
    assert found.status == "ok" and found.attended is not None
    for widths in (trained, looked_at):
        if padding == "length":
            assert widths == {job.cell.data.length}
        else:
            assert min(widths) < job.cell.data.length


@pytest.mark.parametrize(("task", "length", "width"), [("image", 144, 12), ("listops", 32, None)])
def test_a_mechanism_is_told_how_wide_the_rows_of_a_picture_are(
    cache: Path, monkeypatch: pytest.MonkeyPatch, task: str, length: int, width: int | None
) -> None:
    told = []

    class StoppedError(Exception):
        pass

    def spy(*args: object, picture_width: int | None, **options: object) -> None:
        told.append(picture_width)
        raise StoppedError

    monkeypatch.setattr(quality, "model_for", spy)
    job = recalling("identity", cache)
    rows = Rows(train=8, validation=4, test=4)
    data = DataSpec(task=task, hash=f"{task} {length}", length=length, rows=rows)
    job = changed(job, data=data)
    with pytest.raises(StoppedError):
        quality.run(job.cell, msgspec.structs.replace(job, task=task), lambda progress: None)
    assert told == [width]
