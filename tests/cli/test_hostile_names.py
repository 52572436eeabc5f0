"""Names that no file can have, wherever a person may give one: a line each, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.engine.gate.baselines import Baselines

LONG = "x" * 300
NAMES = {"long": LONG, "long folders": f"a/{LONG}/b", "many folders": "a/" * 2500 + "b"}

COMMANDS = {
    "compare, both": "compare {0} {0}",
    "compare, one": "compare there {0}",
    "compare, mechanisms": "compare performer linear --store {0}",
    "report": "report --store {0}",
    "report, before": "report --store there --before {0}",
    "report, out": "report --store there --out {0}",
    "pack": "pack {0}",
    "run, file": "run --impl {0}.py --dry-run",
    "run, class": "run --impl {0}.py:Class --dry-run",
    "run, module": "run --impl lra.{0}:Class --dry-run",
    "run, suite": "run --impl full --suite {0} --dry-run",
    "run, suite file": "run --impl full --suite {0}.toml --dry-run",
    "run, scale": "run --impl full --scale {0}.toml --dry-run",
    "run, task": "run --impl full --task {0}.py --dry-run",
    "run, data": "run --impl full --data text={0} --dry-run",
    "run, cluster": "run --impl full --cluster {0}.toml --dry-run",
    "sweep, suite": "sweep --impl full --suite {0}.toml --dry-run",
    "show": "show --impl {0}.py",
    "show, input": "show --impl full --input {0}.npy",
    "show, out": "show --impl full --out {0}.svg",
    "show, form": "show --impl full --out {0}.pdf",
    "show, scale": "show --impl full --scale {0}",
    "verify": "verify --impl {0}.py:Class",
    "check, nights": "check --history {0}",
    "data check": "data check --from {0}",
    "data check, task": "data check text --from {0}",
    "data prepare": "data prepare text --from {0}",
    "data prepare, out": "data prepare listops --from there --out {0}",
    "data show": "data show --task {0}.py",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_no_file_can_have(lra, tmp_path, command, name):
    (tmp_path / "there").mkdir()
    ran = lra(*(word.format(NAMES[name]) for word in COMMANDS[command].split()))
    assert ran.returncode == 2, ran.stderr[-300:]
    told = [line for line in ran.stderr.splitlines() if line.startswith("lra: ")]
    assert len(told) == 1
    assert "Traceback" not in ran.stderr


def test_no_baseline_at_such_a_name(lra):
    assert lra("baseline", "show", "--baselines", LONG).returncode == 2
    assert Baselines(Path(LONG), "machine").names() == []


def test_a_name_that_is_not_utf_8(lra, tmp_path):
    name = "bad\udce9"
    (Path(tmp_path) / name).mkdir()
    for words in (("report", "--store", name), ("show", "--impl", "full", "--store", name)):
        ran = lra(*words)
        assert ran.returncode == 2
        assert "is not UTF-8" in ran.stderr


@pytest.mark.parametrize(
    "command", ["show --impl full --store loop", "data prepare text --from there.csv --out loop"]
)
def test_a_link_to_itself(lra, tmp_path, command):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "there.csv").write_text("text,label\n" + "good,1\nbad,0\n" * 20)
    ran = lra(*command.split())
    assert ran.returncode == 2
    assert sum(line.startswith("lra: ") for line in ran.stderr.splitlines()) == 1


def test_a_zero_byte_in_a_suite(lra, tmp_path):
    """The command line has none; a TOML file may."""
    for key, value in (("scale", "a\\u0000b.toml"), ("tasks", "a\\u0000b.py")):
        block = {"scale": '"mini"', "tasks": '["listops"]'}
        block[key] = f'"{value}"' if key == "scale" else f'["{value}"]'
        lines = [f"{name} = {told}" for name, told in block.items()]
        (tmp_path / "own.toml").write_text('title = "x"\n[[quality]]\n' + "\n".join(lines))
        ran = lra("run", "--impl", "full", "--suite", "own.toml", "--dry-run")
        assert ran.returncode == 2
        assert "\\x00" in ran.stderr
