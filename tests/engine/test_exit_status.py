"""From the facts of an end to its status, and which cells an ending makes pointless."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import msgspec
import pytest
from engine_jobs import baselines, timing, training

from lra.core.cells import ErrorCell
from lra.core.errors import LONGEST
from lra.core.findings import Finding, Tried
from lra.core.protocol import Mechanism
from lra.core.records import Failure, Metric, Record
from lra.engine.jobs import Job, Outcome
from lra.engine.plan.show import plan_show
from lra.engine.plan.spec import ShowSpec
from lra.engine.process import exit_status
from lra.engine.process.exit_status import (
    TAIL,
    WORDS,
    Ending,
    outcome_of,
    skip_pruned,
    skip_uninstalled,
)


def ending(**known: Any) -> Ending:
    return Ending(
        **{
            "outcome": None,
            "exit_code": 0,
            "phase": "train",
            "timeout": None,
            "out_of_memory": False,
            "tail": "last words",
            **known,
        }
    )


JOB = timing("Toy", Path("/somewhere/cache"))


@pytest.mark.parametrize(
    ("known", "status", "kind"),
    [
        ({"exit_code": -9}, "crash", "SIGKILL"),
        ({"exit_code": -9, "out_of_memory": True}, "oom", "SIGKILL"),
        ({"exit_code": -11, "out_of_memory": True}, "crash", "SIGSEGV"),
        ({"exit_code": -40}, "crash", "signal 40"),
        ({"exit_code": -9, "timeout": 3.0}, "timeout", "Timeout"),
        ({"exit_code": 0}, "error", "NoResult"),
        ({"exit_code": 3}, "error", "NoResult"),
    ],
)
def test_a_worker_without_an_outcome(known: dict[str, Any], status: str, kind: str) -> None:
    outcome = outcome_of(ending(**known), JOB)
    assert outcome.status == status
    assert outcome.failure is not None
    assert (outcome.failure.type, outcome.failure.phase) == (kind, "train")
    assert outcome.failure.tail == "last words"


def test_the_remedy_for_a_timeout_is_one_that_the_verb_has(tmp_path: Path) -> None:
    (picture,) = plan_show(ShowSpec(mechanisms=("identity",), cache=str(tmp_path)))
    for job in (JOB, picture):
        found = outcome_of(ending(exit_code=-9, timeout=3.0), job).failure
        assert found is not None and ("--timeout" in found.message) == (job is JOB)
        assert ("--" in found.message) == (job is JOB)


def test_an_outcome_that_arrived_counts_whatever_came_after() -> None:
    sent = Outcome(status="ok", parameters=3)
    assert outcome_of(ending(outcome=sent, exit_code=-9, timeout=1.0), JOB) == sent


def test_what_a_law_found_is_stripped_too() -> None:
    told = Finding(law="output", verdict="failed", detail="FileNotFoundError: '/home/me/a b/t.bin'")
    found = outcome_of(ending(outcome=Outcome(status="ok", findings=(told,))), JOB).findings
    assert [finding.detail for finding in found] == ["FileNotFoundError: 't.bin'"]


def test_what_the_worker_says_of_its_failure_is_stripped_and_gets_its_tail() -> None:
    job = msgspec.structs.replace(
        JOB,
        source="/data of mine/reviews.csv",
        mechanism="/home/somebody/my tricks/trick.py:Trick",
        checkpoint="/store/checkpoints/abc.pt",
    )
    failure = Failure(type="DataError", message="/data of mine/reviews.csv, row 3: no label")
    tail = "File /home/somebody/my tricks/trick.py saw /store/checkpoints/abc.pt, /etc/a/b.txt"
    found = outcome_of(
        ending(outcome=Outcome(status="error", failure=failure), tail=tail), job
    ).failure
    assert found is not None
    assert found.message == "reviews.csv, row 3: no label"
    assert found.tail == "File trick.py saw abc.pt, b.txt"


def test_no_credential_is_in_anything_that_a_record_takes_from_others() -> None:
    secret = "hf" + "_aB3dE5fG7hJ9kL1mN3pQ5rS7"
    words = f"cannot read /somewhere/else/x.csv with {secret}"
    told = "cannot read x.csv with [masked]"
    sent = Outcome(
        status="error",
        failure=Failure(type="ValueError", message=words),
        findings=(
            Finding(
                law="output",
                verdict="failed",
                detail=words,
                tried=Tried(refusals={"heads=3": words}),
            ),
        ),
        metrics={"a": Metric(value=None, unit="s", why_null=words), "b": Metric.share(0.5)},
        method={
            "decode_failed": words,
            "timer": secret,
            "declared_time": "O(n / m / d)",
            "n": 3,
            "untried": (words, "m / d"),
            "card": {"title": [secret], "classes": 2},
        },
    )
    found = outcome_of(ending(outcome=sent, tail=words), JOB)
    assert found.failure is not None
    assert (found.failure.message, found.failure.tail) == (told, told)
    assert [finding.detail for finding in found.findings] == [told]
    assert [finding.tried for finding in found.findings] == [Tried(refusals={"heads=3": told})]
    assert found.metrics["a"].why_null == told and found.metrics["b"] == sent.metrics["b"]
    assert found.method == {
        "decode_failed": told, "timer": "[masked]", "declared_time": "O(n / m / d)", "n": 3,
        "untried": (told, "m / d"), "card": {"title": ["[masked]"], "classes": 2},
    }  # fmt: skip


def test_no_end_of_a_credential_is_recorded_wherever_a_tail_is_cut() -> None:
    secret = "hf" + "_aB3dE5fG7hJ9kL1mN3pQ5rS7"
    for after in range(4000, 4120):
        tail = f"before\nlogin('{secret}')\n" + "y" * after
        failure = outcome_of(ending(tail=tail), JOB).failure
        assert failure is not None and len(failure.tail) <= TAIL
        assert secret[-4:] not in failure.tail
        assert failure.tail.endswith("y" * min(after, TAIL))


def test_no_text_of_somebodys_is_longer_than_a_person_reads() -> None:
    secret = "hf" + "_aB3dE5fG7hJ9kL1mN3pQ5rS7"
    for before in (*range(180, 310, 5), *range(2700, 2740, 5), 100_000):
        text = f"not {'x' * before} {secret} after {'y' * 5000}"
        sent = Outcome(
            status="error",
            findings=(Finding(law="output", verdict="failed", detail=text),),
            failure=Failure(type="T" * 9999, message=text),
            metrics={"energy": Metric(value=None, unit="J", why_null=text)},
            method={"look_failed": text, "timer": text},
        )
        found = outcome_of(ending(outcome=sent), JOB)
        assert found.failure is not None
        told = (
            *(finding.detail for finding in found.findings),
            *(str(metric.why_null) for metric in found.metrics.values()),
            *(found.failure.type, found.failure.message, *found.method.values()),
        )
        assert max(map(len, told)) <= WORDS and len(told[0]) <= LONGEST
        assert not any("_aB3" in one or "pQ5" in one for one in told)
        assert told[0].startswith("not x") and found.failure.message.startswith("not x")


def test_a_figure_that_json_cannot_hold_is_none_with_its_reason() -> None:
    sent = {"a": Metric(value=float("nan"), unit="s"), "b": Metric(value=-math.inf, unit="count")}
    found = outcome_of(ending(outcome=Outcome(status="ok", metrics=sent)), JOB).metrics
    assert [(one.value, one.why_null) for one in found.values()] == [
        (None, "it is nan"),
        (None, "it is -inf"),
    ]


def test_of_one_long_line_whole_words_are_recorded() -> None:
    failure = outcome_of(ending(tail="word " * 2000), JOB).failure
    assert failure is not None and failure.tail.split(" ")[:2] == ["word", "word"]


def test_a_refusal_needs_no_tail() -> None:
    failure = Failure(type="UnsupportedError", message="cannot be causal")
    found = outcome_of(ending(outcome=Outcome(status="unsupported", failure=failure)), JOB).failure
    assert found is not None and found.tail == ""


def _record(job: Job, status: Any) -> Record:
    return Record(id=job.cell.id, cell=job.cell, status=status, started_at="", seconds=0.0)


@pytest.mark.parametrize("status", ["oom", "timeout"])
def test_longer_twins_of_what_ran_out_are_skipped(status: str) -> None:
    cache = Path("/cache")
    failed = [_record(timing("Toy", cache, length=64), status)]
    job = timing("Toy", cache, length=128)
    longer = skip_pruned(job.cell, failed)
    assert longer is not None and longer.status == "skipped"
    assert longer.failure is not None and f"{status} already at length 64" in longer.failure.message
    for seed in (0, 1):
        found = skip_pruned(_error(128, seed=seed).cell, [_record(_error(64), status)])
        assert found is not None and found.failure == longer.failure
    for other in (
        timing("Toy", cache, length=32),
        timing("Toy", cache, length=64),
        timing("Toy", cache, length=128, mode="train"),
        timing("Other", cache, length=128),
        timing("Toy", cache, length=128, size=9),
        training("Toy", cache),
        baselines(cache),
        _error(128),
    ):
        assert skip_pruned(other.cell, failed) is None
    for other in (_error(32), _error(64, seed=1), _error(128, input_scale=2.0), job):
        assert skip_pruned(other.cell, [_record(_error(64), status)]) is None


def _error(length: int, **changes: Any) -> Job:
    fields = {"heads": 2, "head_width": 8, "scale": "toy", "threads": 1, "torch": "0"}
    cell = ErrorCell(
        **{
            "machine": JOB.cell.machine,
            "versions": {},
            "mechanism": Mechanism(name="Toy"),
            "length": length,
            **fields,
            **changes,
        }
    )
    return msgspec.structs.replace(JOB, cell=cell)


@pytest.mark.parametrize("status", ["ok", "crash", "error", "unsupported", "skipped"])
def test_other_endings_say_nothing_about_longer_twins(status: str) -> None:
    cache = Path("/cache")
    failed = [_record(timing("Toy", cache, length=64), status)]
    assert skip_pruned(timing("Toy", cache, length=128).cell, failed) is None


@pytest.mark.parametrize(
    ("mechanism", "unavailable", "package", "skipped"),
    [
        ("peer:linformer", "no module", None, True),
        ("peer:linformer", "ImportError: it is broken", "0.2", False),
        ("peer:linformer", "", None, False),
        ("mine.py:Mine", "ImportError: no module", None, False),
    ],
)
def test_a_peer_whose_package_is_missing_is_skipped_and_a_broken_one_is_not(
    mechanism: str, unavailable: str, package: str | None, skipped: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def version(name: str) -> str:
        if package is None:
            raise PackageNotFoundError(name)
        return package

    monkeypatch.setattr(exit_status, "version", version)
    job = msgspec.structs.replace(JOB, mechanism=mechanism, unavailable=unavailable)
    found = skip_uninstalled(job)
    assert (found is not None) == skipped
    if found is not None:
        assert found.status == "skipped" and found.failure is not None
        assert found.failure.type == "NotInstalled" and "'linformer'" in found.failure.message
