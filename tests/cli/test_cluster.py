"""`--cluster`: the same records, wherever cells run, and one line for what cannot be had."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lra.core.errors import LraError
from lra.core.records import Record
from lra.engine.cluster import connect
from lra.store import Store

from .conftest import TINY

USAGE = 2


def answers(store: Path) -> dict[str, Any]:
    """Figures of a store's trainings that must not depend on where they ran."""

    def said(record: Record) -> Any:
        metrics = {n: m for n, m in record.metrics.items() if "second" not in n}
        return record.status, record.parameters, record.best_step, msgspec.to_builtins(metrics)

    found = Store(store).records()
    return {r.id: said(r) if r.curve else r.status for r in found}


def test_a_run_on_a_cluster_stores_what_one_here_does(lra, finished, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    asked = ("run", "--impl", "linear", *TINY)
    there = lra(*asked, "--store", "there", "--cluster", "local:1")
    assert there.returncode == 0, there.stderr
    assert answers(tmp_path / "there") == answers(finished.store)
    assert len(answers(tmp_path / "there")) == 5
    cells = [line for line in there.stderr.splitlines() if line.startswith("[")]
    assert len(cells) == 5 and cells[-1].startswith("[5/5]")
    assert "Traceback" not in there.stderr and "distributed" not in there.stderr
    left = {file.name for file in (tmp_path / "there").iterdir() if file.suffix != ".json"}
    assert left == {".lock", "checkpoints", "logs"}
    again = lra(*asked, "--store", "there", "--dry-run")
    assert "0 cells due" in again.stderr


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        *(
            (("--cluster", value), f"'{value}'")
            for value in (
                "local:0",
                "local:999",
                "here",
                "tcp://head",
                "tcp://:8786",
                "tcp://",
                f"tcp://{'x' * 64}:1",
                "tcp://a..b:1",
                "tcp://host:99999",
                "no.toml",
            )
        ),
        (("--cluster", "local:2", "--device", "cuda"), "--device cuda"),
        (("--cluster", "local:1", "--jobs", "2"), "--jobs"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_cluster_that_cannot_be_is_one_line(
    lra, tmp_path: Path, flags: tuple[str, ...], named: str, dry: tuple[str, ...]
) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    ran = lra("run", "--impl", "linear", "--device", "cpu", *TINY, *flags, *dry)
    assert ran.returncode == USAGE
    (line,) = ran.stderr.splitlines()
    assert line.startswith("lra: ") and named in line
    assert not (tmp_path / "results").exists()


def test_without_the_extra_a_line_says_what_to_install(
    lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package itself stays: other tests reach its modules as its attributes.
    monkeypatch.delitem(sys.modules, "lra.engine.cluster.connect", raising=False)
    for package in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, package, None)
    ran = lra("run", "--impl", "linear", *TINY, "--cluster", "local:1")
    assert ran.returncode == USAGE
    (line,) = ran.stderr.splitlines()
    assert '".[cluster]"' in line


def test_a_dry_run_connects_to_nothing(lra, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    ran = lra("run", "--impl", "linear", *TINY, "--cluster", "tcp://h:1", "--dry-run")
    assert ran.returncode == 0
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("wrong", ["name", "setting", "store"])
def test_what_is_wrong_here_is_said_before_any_worker_is_waited_for(
    lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")

    monkeypatch.setattr(connect, "open_cluster", lambda *_, **__: pytest.fail("it is opened"))
    flags = ["--impl", "linear", *TINY, "--cluster", "tcp://127.0.0.1:9", "--store", "here"]
    with ExitStack() as stack:
        if wrong == "store":
            stack.enter_context(Store(tmp_path / "here").locked())
        flags += {"name": ["--impl", "linaer"], "setting": ["--set", "qqq=1"]}.get(wrong, [])
        ran = lra("run", *flags)
    assert ran.returncode == USAGE and "Traceback" not in ran.stderr


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_workers_of_either_kind_could_run_is_not_refused(
    lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """A suite for one kind of device, and a setting of a model that is there alone."""
    pytest.importorskip("distributed", reason="needs the extra cluster")

    def reached(*_: object, **__: object) -> None:
        raise LraError("asked")

    monkeypatch.setattr(connect, "open_cluster", reached)
    (tmp_path / "one.toml").write_text(
        'title = "One"\n[[efficiency]]\nlevels = ["model"]\ntask = "text"\nscale = "mini"\n'
        'lengths = [64]\nmodes = ["train"]\nheads = [4]\nhead_widths = [16]\n'
        f'device = "{device}"\n'
    )
    asked = ("--suite", "one.toml", "--set", "model.layers=1", "--cluster", "tcp://127.0.0.1:9")
    ran = lra("sweep", "--impl", "linear", *asked)
    assert ran.stderr == "lra: asked\n"
