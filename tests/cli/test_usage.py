"""Wrong command lines are answered in one line with the remedy, at once."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import click
import pytest
from msgspec import UNSET, structs

from lra.cli.flags import YEAR, pairs, seconds
from lra.cli.main import VERBS, run_command_line
from lra.core.cards import Causal, Decode, Padding
from lra.core.errors import LONGEST, UsageError, truncate
from lra.core.protocol import ModelSpec, TrainSpec

USAGE = 2


def test_a_message_that_is_cut_keeps_its_beginning_and_its_remedy() -> None:
    short = "a" * LONGEST
    assert truncate(short) == short
    told = truncate(f"unknown task '{'x' * 500} {'y' * 500}'; did you mean 'text'?")
    assert told.startswith("unknown task 'xxx") and "...yyy" in told
    assert told.endswith("yyy'; did you mean 'text'?") and len(told) < 120
    words = truncate(f"no such {'word ' * 200}; give another")
    assert words.startswith("no such word") and words.endswith("; give another")
    assert len(words) == LONGEST


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--store", "closed/store"),
        ("run", "--impl", "full", "--dry-run", "--store", "closed/store"),
        ("run", "--impl", "full", "--dry-run", "--suite", "closed/mine.toml"),
        ("run", "--impl", "full", "--dry-run", "--scale", "closed/mine.toml"),
        ("run", "--impl", "full", "--dry-run", "--data", "text=closed/reviews"),
    ],
    ids=lambda arguments: arguments[-1],
)
def test_what_one_may_not_look_into_is_one_line(
    arguments: tuple[str, ...], closed: Path, lra
) -> None:
    ran = lra(*arguments)
    assert ran.returncode == USAGE
    (line,) = ran.stderr.splitlines()
    assert line.startswith("lra: ") and "closed/" in line and "permission" in line


def test_help_needs_no_torch_nor_numpy() -> None:
    code = (
        "import sys\n"
        "from lra.cli.main import run_command_line\n"
        "for verb in ([], ['run'], ['report'], ['list'], ['show'], ['data'], ['doctor']):\n"
        "    assert run_command_line([*verb, '--help']) == 0\n"
        "heavy = {'torch', 'numpy', 'pandas', 'matplotlib', 'datasets'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=root)


@pytest.mark.parametrize(
    ("verb", "says", "never"),
    [
        ("run", ["training.steps=200"], []),
        ("verify", ["features=64", "cross=false"], ["training.", "model."]),
        ("show", ["features=64"], ["training.", "model."]),
    ],
)
def test_help_names_only_settings_that_a_verb_has(
    verb: str, says: list[str], never: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([verb, "--help"]) == 0
    told = capsys.readouterr().out
    assert all(words in told for words in says) and not any(words in told for words in never)


def test_every_flag_has_a_word_of_help() -> None:
    for verb in VERBS:
        command = import_module(f"lra.cli.{verb}").command
        for one in (command, *getattr(command, "commands", {}).values()):
            flags = [param for param in one.params if isinstance(param, click.Option)]
            assert not [flag.name for flag in flags if not flag.help], verb


def test_a_list_of_mechanisms_says_what_its_words_mean(lra) -> None:
    told = lra("list", "impls").stdout.split("\n\n")[1]
    assert [line.partition(":")[0] for line in told.splitlines()] == [
        "time", "causal", "padding", "decode"
    ]  # fmt: skip
    assert max(map(len, told.splitlines())) <= 100
    for kind in (Causal, Padding, Decode):
        assert all(word in told for word in get_args(kind))
    assert "padding:" not in lra("list", "tasks").stdout


def test_a_verbose_list_of_tasks_holds_every_choice_of_their_protocols(lra) -> None:
    told = [line.lstrip() for line in lra("list", "tasks", "--verbose").stdout.splitlines()]
    for part, spec in (("training: ", TrainSpec), ("model: ", ModelSpec)):
        lines = [line for line in told if line.startswith(part)]
        assert len(lines) == sum(line.startswith("at scale ") for line in told) > 0
        always = [one.name for one in structs.fields(spec) if one.default is not UNSET]
        assert all(f"{field}=" in line for line in lines for field in always)
    tuned = [line for line in told if line.startswith("tuned: ")]
    settings = [line for line in told if line.startswith("mechanisms: ")]
    assert len(tuned) == len(settings) == len(lines)
    assert any("performer (features=64)" in line for line in settings)
    assert not any("None" in line or line.endswith(": ") for line in told)
    text = told[told.index("text") :]
    short = text[text.index("at scale compact_short:") :]
    assert next(line for line in short if line in tuned) == "tuned: [0.00015, 0.0005, 0.0015]"
    paper = told[told.index("at scale paper:") :]
    assert next(line for line in paper if line in tuned) == "tuned: not"
    assert "tested=last, " in next(line for line in paper if line.startswith("training: "))


def test_pairs() -> None:
    assert pairs(("a=1", " b = x=y "), "--set") == {"a": "1", "b": "x=y"}


@pytest.mark.parametrize("entry", ["foo", "=1", "foo=", " =1"])
def test_no_pair(entry: str) -> None:
    with pytest.raises(UsageError, match="--set features=64"):
        pairs((entry,), "--set")


@pytest.mark.parametrize("flag", ["--data", "--set"])
def test_a_key_given_twice_is_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=f"^{flag} .*'a' twice"):
        pairs(("a=1", "b=1", "a =2"), flag)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0), ("9m30s", 570.0),
        ("1h30m", 5400.0), ("1h0m1s", 3601.0), ("8760h", YEAR),
    ],
)  # fmt: skip
def test_times(text: str, value: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert seconds(text, "--budget") == value
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == (text == "90")


@pytest.mark.parametrize("flag", ["--budget", "--timeout"])
def test_a_time_without_a_unit_is_said_to_be_seconds(flag: str, lra) -> None:
    for verb in ("run", "sweep"):
        ran = lra(verb, "--impl", "identity", "--dry-run", flag, "9")
        assert ran.returncode == 0 and f"{flag} 9 means 9s" in ran.stderr.splitlines()[0]
        assert "means" not in lra(verb, "--impl", "identity", "--dry-run", flag, "9s").stderr


NO_TIMES = ("1h-5m", "1h30", "30m1h", "9mm", "hm", "8761h")


@pytest.mark.parametrize(
    "text", ["nan", "nanm", "inf", "-inf", "infs", "1e400", "0", "-3m", "", *NO_TIMES]
)
def test_no_times(text: str) -> None:
    with pytest.raises(UsageError, match="--budget"):
        seconds(text, "--budget")


def test_names_complete(environment: dict[str, str]) -> None:
    code = "import sys; sys.argv[0] = 'lra'; from lra.__main__ import main; sys.exit(main())"
    asked = {"COMP_WORDS": "lra run --impl full,lin", "COMP_CWORD": "3"}
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, **asked, "_LRA_COMPLETE": "bash_complete"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert told.stdout.split() == ["plain,full,linear", "plain,full,linformer"]
