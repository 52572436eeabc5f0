"""Command lines made of our own words and of junk end with an exit code that the README knows.

Nothing is measured: whoever would start a worker, build a revision or ask a network is refused.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import click
import pytest
from drivers import long_seconds
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from lra.cli.flags import known_names
from lra.cli.main import VERBS, lra_command
from lra.core.errors import LONGEST, LraError
from lra.engine.gate import revision, self_test
from lra.engine.process import launch
from lra.engine.process.launch import ForkServer
from lra.report.words import count

from .conftest import TINY, Finished, Run
from .warm import Warm

KNOWN = {0, 1, 2, 3, 4, 130}
VALUES = (
    *("performer", "sdpa,linear", "all", "*", "per*", "identity", "peer:linformer", "os:getcwd"),
    *("mine.py", "mine.py:Mine", "own.mine:Mine", "torch.nn:Linear", ":", "a:", ":b", ",", "-1"),
    *("text", "listops", "mini", "paper", "check", "tiny", "forward,train", "256..8192", "0", "1"),
    *("1e400", "nan", "9", "90s", "1h30", "cpu", "cuda", "fixed", "lra2021", "both", "float32"),
    *("features=64", "model.layers=2", "training.steps=1", "a=b=c", "=", "text=data.csv", "text="),
    *(
        "store",
        "empty",
        "nowhere",
        "file",
        "results/runs/default",
        "x.toml",
        *TINY,
        "impls",
        "HEAD",
    ),
    *(
        "x" * 5000,
        "",
        " ",
        "\n",
        "\x1b[2J",
        "\u202e",
        "{}",
        "[[[",
        "ünïcode",
        "%s",
        "--",
        "-",
        "-h",
    ),
)
"""Beside our names; absolute paths and `..` are left out, as flags may write there."""
FITTING = {
    "--impl": ("performer", "sdpa,linear", "linear", "mine.py:Mine"),
    "--task": ("text", "listops,image"),
    "--store": ("store", "empty", "new"),
    "--scale": ("mini", TINY[3]),
    "--suite": ("mini", "timing", TINY[1]),
    "--set": ("model.layers=2", "performer.features=8"),
    "--data": ("text=data.csv",),
    "--budget": ("9m", "1"),
    "--timeout": ("1h30m", "90"),
    "--length": ("16", "16,32"),
    "--mode": ("forward", "train"),
    "--out": ("out",),
    "--device": ("cpu",),
    "--seeds": ("1", "2"),
    "--from": ("data.csv", "store"),
    "--price": ("1.5",),
    "--compare": ("store",),
    "--cluster": ("local:2",),
}
"""Values with which a command comes far."""
LAST = {
    ("run",): ("--dry-run",),
    ("sweep",): ("--dry-run",),
    ("data", "show"): ("--scale", "mini", "--task", "listops"),
}
"""Flags after all others, without which a command runs for minutes."""
UNFIT = {"identity"}
"""A verb that runs for minutes whatever its flags."""

junk = st.text(st.characters(exclude_characters="\x00/~"), max_size=12).filter(lambda t: t != "..")
"""No argument of a process can hold a NUL."""


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every verb, and every part of those that have parts."""
    with click.Context(lra_command) as context:
        for verb in VERBS:
            command = lra_command.get_command(context, verb)
            assert command is not None
            if verb in UNFIT:
                continue
            yield (verb,), command
            if isinstance(command, click.Group):
                yield from (((verb, name), part) for name, part in command.commands.items())


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A verb, most often flags of its own with values, now and then anything."""
    words, command = draw(st.sampled_from(COMMANDS))
    line = list(words)
    values = st.one_of(st.sampled_from(NAMES), st.sampled_from(VALUES), junk)
    own = [one for one in command.params if isinstance(one, click.Option)]
    for _ in range(sum(isinstance(one, click.Argument) for one in command.params)):
        line.append(draw(st.one_of(st.sampled_from(PLACES), values)))
    for _ in range(draw(st.integers(0, 4))):
        if not own or draw(st.integers(0, 9)) == 0:
            line.append(draw(st.one_of(values, st.sampled_from(FLAGS))))
            continue
        option = draw(st.sampled_from(own))
        line.append(option.opts[0])
        if not option.is_flag and draw(st.integers(0, 19)):
            fitting = FITTING.get(option.opts[0], ("1", "a"))
            if isinstance(option.type, click.Choice):
                fitting = tuple(map(str, option.type.choices))
            line.append(draw(values if draw(st.integers(0, 3)) == 0 else st.sampled_from(fitting)))
    return [*line, *LAST.get(words, ())]


COMMANDS = list(commands())
FLAGS = sorted({flag for _, command in COMMANDS for one in command.params for flag in one.opts})
PLACES = ("store", "empty", "impls", "tasks", "sdpa", "linear")
NAMES = [name for kind in ("mechanism", "task", "suite", "scale") for name in known_names(kind)]


@pytest.fixture
def fuzzed(lra: Run, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in a folder with a store, and with nothing behind it that measures."""

    def refuse(*_: object, **__: object) -> None:
        raise LraError("nothing is measured here; leave it")

    # A module may have either of them by name: the class, or the warm server that stood for it when
    # the module was imported.
    monkeypatch.setattr(ForkServer, "__init__", refuse)
    monkeypatch.setattr(Warm, "start", refuse)
    for name in ("build", "work_tree"):
        monkeypatch.setattr(revision, name, refuse)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    shutil.copytree(finished.store, tmp_path / "store")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "data.csv").write_text("text,label\ngood,1\nbad,0\n")
    (tmp_path / "x.toml").write_text('title = "x"\n[[quality]]\nscale = "mini"\n')
    (tmp_path / "mine.py").write_text("from .core import X\n")
    return lra


def fuzz(lra: Run, seconds: float, first: int) -> tuple[int, dict[int, int]]:
    """Try lines for so many seconds, in batches from this seed on; returns how many, by code.

    The time begins with the first line: on a busy machine drawing it takes seconds.
    """
    until = inf
    codes: dict[int, int] = {}

    def attempt(line: list[str]) -> None:
        nonlocal until
        until = min(until, time.monotonic() + seconds)
        if time.monotonic() > until:
            return
        ran = lra(*line)
        codes[ran.returncode] = codes.get(ran.returncode, 0) + 1
        assert ran.returncode in KNOWN, (line, ran.stderr)
        assert "Traceback" not in ran.stdout + ran.stderr, (line, ran.stderr)
        told = [one for one in ran.stderr.splitlines() if one.startswith("lra: ")]
        assert all(len(one) <= LONGEST + len("lra: ") for one in told), (line, ran.stderr)
        if ran.returncode == 2:
            assert ran.stderr.strip(), line

    batch = first
    while time.monotonic() < until:
        limits = settings(
            max_examples=50, deadline=None, database=None, suppress_health_check=[*HealthCheck]
        )
        limits(seed(batch)(given(lines())(attempt)))()
        batch += 1
    return sum(codes.values()), codes


@pytest.mark.parametrize("stands", [None, "class", "warm"])
@pytest.mark.parametrize("line", [("doctor", "--timing"), ("run", "--impl", "linear")])
def test_nothing_is_measured_behind_a_fuzzed_line(
    fuzzed: Run,
    line: tuple[str, ...],
    stands: str | None,
    warm: Warm,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if stands:
        by_name = ForkServer if stands == "class" else lambda: warm
        monkeypatch.setattr(self_test, "ForkServer", by_name)
        monkeypatch.setattr(launch, "ForkServer", by_name)
    ran = fuzzed(*line)
    assert ran.returncode == 2 and "nothing is measured here" in ran.stderr


@pytest.mark.filterwarnings("ignore")
def test_no_line_of_words_ends_in_a_traceback(fuzzed: Run) -> None:
    tried, codes = fuzz(fuzzed, 12.0, first=0)
    assert tried > 5 and 2 in codes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_line_of_many_words_ends_in_a_traceback(fuzzed: Run) -> None:
    first = random.randrange(1 << 32)
    tried, codes = fuzz(fuzzed, long_seconds(), first)
    print(f"words: seed {first}, {count(tried, 'line')}, exit codes {dict(sorted(codes.items()))}")
