"""`lra verify` on the command line: lines, exit codes, records, other people's files."""

from __future__ import annotations

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from lra.cli import cached
from lra.cli.verify import exit_code
from lra.core.cells import VerifyCell
from lra.core.findings import Case, Finding
from lra.core.protocol import Machine, Mechanism
from lra.core.records import Record
from lra.engine.jobs import Job

FEW = ("--check", "oracle,causality,padding_count,cross")

BROKEN = """
from attention_impls.dense.full import Full

class Broken(Full):
    def attend(self, q, k, v, context, state=None):
        return super().attend(q, k, v * v.shape[2], context, state)
"""

SET = """
import torch

class Mine(torch.nn.Module):
    def __init__(self, dim, size=1, other=[]):
        super().__init__()

    def forward(self, x):
        return x - x.mean(0)
"""

WITHOUT_OUTPUT = """
import os
from attention_impls.baseline.identity import Identity

class Mine(Identity):
    def forward(self, *args, **named):
        {how}
"""

FAILS_ALIKE = """
from torch.nn import Module

class Mine(Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        if x.shape[1] > 1:
            raise ValueError("too long")
        return x
"""

DRAWS = """
from torch.nn import Dropout, Module

class Quiet(Module):
    def __init__(self, dim, dropout=0.1):
        super().__init__()
        self.drop = Dropout(dropout)

    def forward(self, x):
        return self.drop(x)

class Draws(Quiet):
    def __init__(self, dim, odd_rate=0.1):
        super().__init__(dim, odd_rate)

class Drops(Quiet):
    def __init__(self, dim, rows_dropped=0.1):
        super().__init__(dim, rows_dropped)

class NoNumbers(Module):
    def forward(self, x):
        return x * float("nan")
"""


def test_an_honest_mechanism_is_a_list_of_laws_and_exit_0(lra, tmp_path: Path) -> None:
    ran = lra("verify", "--impl", "identity", *FEW)
    assert ran.returncode == 0, ran.stderr
    head, extent, *rows = ran.stdout.strip().splitlines()
    assert head.startswith("identity: 3 held, 1 not claimed")
    assert re.fullmatch(
        r"  tried: lengths 1 to 1,031, float64 and float32, 1 to 20 heads, "
        r"of widths 1 to 128, batches of 1 to 17",
        extent,
    )
    assert [row.split()[0] for row in rows[1:]] == ["held", "held", "not", "held"]
    assert "cross" in rows[3]
    assert not (tmp_path / "results").exists(), "a part of a check is no record"


def test_a_broken_claim_is_exit_1_with_the_command_that_shows_it(lra, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BROKEN)
    ran = lra("verify", "--impl", "mine.py", "--check", "causality")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "FAILED" in ran.stdout
    (again,) = (line for line in ran.stdout.splitlines() if line.startswith("  reproduce: "))
    command = again.removeprefix("  reproduce: python -m lra ")
    assert "--case 'n=2 causal batch=1 heads=1'" in command
    once_more = lra(*shlex.split(command))
    assert once_more.returncode == 1 and "FAILED" in once_more.stdout


def test_quiet_is_a_line_of_counts_where_nothing_is_broken(lra) -> None:
    ran = lra("verify", "--impl", "identity,full", "--check", "batch", "--quiet")
    lines = ran.stdout.splitlines()
    assert [line.partition("  [")[0] for line in lines] == ["identity: 1 held", "full: 1 held"]


def test_the_command_that_shows_it_has_the_settings(lra, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SET)
    own = ("--set", "Mine.size = 2", "--set", "other =[ 1, 2 ]")
    ran = lra("verify", "--impl", "mine.py:Mine,identity", "--check", "batch", *own)
    (again,) = (line for line in ran.stdout.splitlines() if line.startswith("  reproduce: "))
    assert again.endswith(" --set Mine.size=2 --set 'other=[ 1, 2 ]'"), ran.stdout


def test_somebodys_own_that_draws_in_training_says_what_was_not_tried(lra, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DRAWS)
    names = ",".join(f"mine.py:{name}" for name in ("Quiet", "Draws", "Drops", "NoNumbers"))
    ran = lra("verify", "--impl", names, "--check", "batch")
    quiet, draws, drops, no_numbers = ran.stdout.strip().split("\n\n")
    assert "not tried" in draws and "--set" not in draws.partition("not tried")[2].split("\n")[0]
    assert "not tried" in drops and "--set rows_dropped=0" in drops
    assert "not tried" not in quiet + no_numbers


def test_what_cannot_be_imported_is_a_row_and_the_others_go_on(lra, tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text("import a_module_that_is_not_there\n")
    ran = lra("verify", "--impl", "gone.py,identity", "--check", "causality")
    assert ran.returncode == 4
    assert "gone: error: " in ran.stdout and "a_module_that_is_not_there" in ran.stdout
    assert "identity: 1 held" in ran.stdout


@pytest.mark.skipif(find_spec("linformer") is not None, reason="it is installed here")
def test_a_peer_that_is_not_installed_is_skipped_and_proves_nothing(lra, tmp_path: Path) -> None:
    ran = lra("verify", "--impl", "peer:linformer,identity", "--check", "causality")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "peer:linformer: skipped: " in ran.stdout and "'linformer'" in ran.stdout
    assert "identity: 1 held" in ran.stdout
    alone = lra("verify", "--impl", "peer:linformer")
    assert (alone.returncode, alone.stdout, alone.stderr.count("\n")) == (2, "", 1)
    assert "peer:linformer" in alone.stderr and "`peers`" in alone.stderr


def test_a_case_that_a_law_does_not_take_is_bad_usage(lra) -> None:
    for more in ((), ("--json",)):
        ran = lra("verify", "--impl", "identity", "--check", "causality", "--case", "n=5", *more)
        assert (ran.returncode, ran.stdout) == (2, "")
        (line,) = ran.stderr.splitlines()
        assert line.startswith("lra: --case 'n=5': ") and "causal" in line


def test_a_whole_check_is_a_record_and_a_section_of_the_report(lra, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WITHOUT_OUTPUT.format(how="raise ValueError"))
    ran = lra("verify", "--impl", "mine.py", "--json")
    assert ran.returncode == 1 and "[1/1]" in ran.stderr, ran.stdout + ran.stderr
    (record,) = json.loads(ran.stdout)
    assert record["cell"]["type"] == "verify" and len(record["findings"]) > 20
    again = lra("verify", "--impl", "mine.py")
    assert again.returncode == 1 and "[1/1]" not in again.stderr, "it is in the store"
    assert lra("report").returncode == 0
    text = (tmp_path / "reports/default/report.md").read_text()
    assert "Claims tested" in text


def test_laws_that_fail_as_the_output_does_are_one_row_and_one_command(lra, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILS_ALIKE)
    ran = lra("verify", "--impl", "mine.py")
    rows = ran.stdout.splitlines()
    (failed,) = (row for row in rows if row.startswith("FAILED"))
    assert sum(row.startswith("  reproduce: ") for row in rows) == 1
    found = json.loads(lra("verify", "--impl", "mine.py", "--json").stdout)[0]["findings"]
    count = sum(finding["verdict"] == "failed" for finding in found)
    first = next(finding for finding in found if finding["verdict"] == "failed")
    assert failed.split()[1] == first["law"] == "output" and first["detail"] in failed
    (others,) = (row for row in rows if row.startswith("  output fails "))
    for finding in found:
        if finding["verdict"] == "failed" and finding != first:
            assert finding["follows"] == "output" and finding["law"] in others
    # Laws that are asked for by name have a row each.
    ran = lra("verify", "--impl", "mine.py", "--check", "output,batch,strides")
    assert ran.stdout.count("FAILED") == ran.stdout.count("reproduce: ") == 3 and count > 3


def test_a_check_that_the_kernel_may_have_ended_is_tried_again(lra, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WITHOUT_OUTPUT.format(how="os.kill(os.getpid(), 9)"))
    for _ in range(2):
        ran = lra("verify", "--impl", "mine.py", "--json")
        assert "[1/1]" in ran.stderr, "an end by memory is no verdict"
        assert "killed by SIGKILL" in json.loads(ran.stdout)[0]["findings"][0]["detail"]


@pytest.mark.parametrize(("flags", "form"), [((), "short"), (("--full",), "full")])
def test_the_full_form_is_planned_and_tried_again(
    flags: tuple[str, ...], form: str, lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Finding(law="batch", verdict="failed", detail="differs", case=Case(n=2))

    def found(jobs: list[Job], *_: object, **__: object) -> list[tuple[Job, Record]]:
        done = {"status": "ok", "started_at": "", "seconds": 1.0, "findings": (broken,)}
        assert [job.cell.form for job in jobs] == [form]
        return [(job, Record(id=job.cell.id, cell=job.cell, **done)) for job in jobs]

    monkeypatch.setattr(cached, "cached_records", found)
    ran = lra("verify", "--impl", "identity", *flags)
    assert ran.returncode == 1
    (again,) = (line for line in ran.stdout.splitlines() if line.startswith("  reproduce: "))
    assert again.endswith(" ".join(("--impl identity --check batch --case n=2", *flags)))


@pytest.mark.parametrize(
    ("endings", "code"),
    [
        ([("held", "")], 0),
        ([("skipped", "")], 0),
        ([("failed", "crash")], 1),
        # No answer in time, which another law's failure does not hide.
        ([("skipped", "timeout")], 4),
        ([("failed", ""), ("skipped", "timeout")], 4),
        ([("not claimed", "timeout")], 0),
    ],
)
def test_a_claim_that_no_answer_came_to_is_neither_held_nor_broken(
    endings: list[tuple[str, str]], code: int
) -> None:
    made = tuple(Finding(law="batch", verdict=v, ending=end) for v, end in endings)  # type: ignore[arg-type]
    cell = VerifyCell(
        machine=Machine(processor="any", cores=2),
        torch="2",
        threads=1,
        versions={},
        mechanism=Mechanism(name="identity"),
    )
    record = Record(id=cell.id, cell=cell, status="ok", started_at="", seconds=1.0, findings=made)
    assert exit_code([record]) == code


@pytest.mark.slow
def test_the_law_of_the_compiler_is_tried_in_the_full_form(lra) -> None:
    ran = lra("verify", "--impl", "identity", "--full", "--check", "compiled")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("identity: 1 held")


@pytest.mark.slow
def test_all_laws_of_an_honest_mechanism_hold(lra) -> None:
    ran = lra("verify", "--impl", "identity", "--json")
    assert ran.returncode == 0, ran.stderr
