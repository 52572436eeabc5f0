"""The workflows are what GitHub takes, ask for little, and call commands that there are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from workflows import commands, load, script, steps, wrong

FOLDER = Path(__file__).resolve().parents[1] / ".github/workflows"
FILES = sorted(FOLDER.glob("*.yml"))
WRITING = "permissions:\n  contents: read"
PIN = "actions/setup-python@a309ff8b426b58ec0e2a45f0f869d46889d02405 # v6.2.0"


def test_there_are_three() -> None:
    assert [file.name for file in FILES] == ["comment.yml", "nightly.yml", "pull-request.yml"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_wrong(file: Path) -> None:
    assert wrong(file) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("pull-request", "jobs:\n", "jobs: [\n", "no YAML"),
        ("pull-request", "timeout-minutes: 350", "timeout: 350", "schema"),
        ("pull-request", "    runs-on: ubuntu-latest\n", "", "schema"),
        ("pull-request", WRITING, "", "no permissions"),
        ("pull-request", WRITING, "permissions: write-all", "permissions: write-all"),
        ("pull-request", WRITING, WRITING.replace("read", "write"), "may write contents"),
        (
            "comment",
            "permissions: {}",
            "permissions:\n  pull-requests: write",
            "may write pull-req",
        ),
        ("comment", "actions: read", "issues: write", "may write issues"),
        ("pull-request", "          fetch-depth: 0\n", "", "checks out no revision"),
        ("nightly", "fetch-depth: 2", "fetch-depth: 1", "checks out no revision"),
        ("pull-request", "PIP_EXTRA_INDEX_URL", "PIP_INDEX", "another build of PyTorch"),
        (
            "nightly",
            "      PIP_EXTRA_INDEX_URL: https",
            "      X: https",
            "another build of PyTorch",
        ),
        ("nightly", "timeout-minutes: 350", "timeout-minutes: 400", "job measure has no timeout"),
        ("nightly", "    timeout-minutes: 15\n", "", "job keep has no timeout"),
        ("pull-request", PIN, "actions/setup-python@v6", "not pinned"),
        ("pull-request", "credentials: false", "credentials: true", "leaves credentials"),
        ("comment", "actions/download-artifact@", "actions/checkout@", "checks out code"),
        ("pull-request", "origin/$BASE", "origin/${{ github.base_ref }}", "give it by env"),
        ("comment", "$OWNER:", "${{ github.event.workflow_run.head_branch }}:", "give it by env"),
        ("pull-request", "if: always()", "if: success()", "is not always() done"),
        ("nightly", "        if: always()\n        run", "        run", "is not always() done"),
        ("nightly", "          done\n", "", "syntax error"),
        ("nightly", "lra sweep --impl all", "lra swep --impl all", "did you mean 'sweep'"),
        ("nightly", "--replicates 3", "--replicate 3", "--replicate"),
        ("nightly", "--replicates 3", "--replicates none", "'none' is not a valid integer"),
        ("nightly", "--seeds 3", "--seeds 3 everything", "extra argument"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, name: str, old: str, new: str, told: str) -> None:
    text = (FOLDER / f"{name}.yml").read_text(encoding="utf-8")
    assert old in text
    broken = tmp_path / "broken.yml"
    broken.write_text(text.replace(old, new), encoding="utf-8")
    assert any(told in one for one in wrong(broken)), wrong(broken)


@pytest.mark.parametrize("more", ["        run: echo twice\n", None])
def test_a_step_has_one_of_uses_and_run(tmp_path: Path, more: str | None) -> None:
    text = (FOLDER / "pull-request.yml").read_text(encoding="utf-8")
    uses = f"      - uses: {PIN}\n"
    broken = tmp_path / "broken.yml"
    broken.write_text(text.replace(uses, uses + more if more else "      - name: nothing\n"))
    assert wrong(broken)


def test_commands_are_found_where_they_stand() -> None:
    text = (
        "x=1\npython -m lra run --impl a \\\n  --quiet || code=$?\necho; python -m lra list impls\n"
    )
    assert commands(text) == ["run --impl a    --quiet", "list impls"]
    asked = {
        file.stem: [c for s in steps(load(file)) for c in commands(str(s.get("run", "")))]
        for file in FILES
    }
    assert [command.split()[0] for command in asked["nightly"]] == [
        "sweep",
        "run",
        "run",
        "check",
        "check",
        "identity",
    ]
    assert asked["pull-request"] == [
        'identity check --since "origin/$BASE"',
        'check --since "origin/$BASE" --out reports/check',
    ]
    assert asked["comment"] == []


def stub(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
    (folder / name).chmod(0o755)


def bash(text: str, place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does, with the stubs before everything else."""
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    known = {"PATH": path, "HOME": str(place), "RUNNER_TEMP": str(place), "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        cwd=place,
        env={**known, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "step"),
    [("pull-request", "Check"), ("nightly", "Check"), ("nightly", "Check the nights")],
)
@pytest.mark.parametrize(("code", "exits"), [(0, 0), (1, 1), (2, 2), (3, 0), (4, 4)])
def test_inconclusive_is_a_warning_and_no_silent_pass(
    tmp_path: Path, name: str, step: str, code: int, exits: int
) -> None:
    stub(tmp_path / "bin", "python", f"exit {code}")
    told = bash(script(load(FOLDER / f"{name}.yml"), step), tmp_path, BASE="main")
    assert told.returncode == exits
    assert ("::warning" in told.stdout) == (code == 3)


@pytest.mark.parametrize("name", ["pull-request", "nightly"])
def test_there_is_always_a_summary(tmp_path: Path, name: str) -> None:
    text, summary = script(load(FOLDER / f"{name}.yml"), "Summary"), tmp_path / "summary"
    assert bash(text, tmp_path, GITHUB_STEP_SUMMARY=str(summary)).returncode == 0
    assert "the log says why" in summary.read_text()
    (tmp_path / "reports/check").mkdir(parents=True)
    (tmp_path / "reports/check/summary.md").write_text("3 regressions\n")
    assert bash(text, tmp_path, GITHUB_STEP_SUMMARY=str(summary)).returncode == 0
    assert "3 regressions" in summary.read_text()


with_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
"""Runners have it."""
GH = """
case "$*" in
  *"/pulls "*) echo "$*" >> asked; cat pulls.json ;;
  *"--paginate"*) cat comments.json ;;
  *) echo "$*" > call; cat > body.json ;;
esac"""
OURS = {"id": 7, "user": {"login": "github-actions[bot]"}, "body": "<!-- lra check -->\nold"}
THEIRS = {"id": 8, "user": {"login": "somebody"}, "body": "<!-- lra check -->\nmine"}


def comment(place: Path, comments: list[object], head: str = "a" * 40) -> str:
    """Run the comment's script; return the call that wrote, empty where none did."""
    stub(place / "bin", "gh", GH)
    (place / "pulls.json").write_text(json.dumps([{"number": 12, "head": {"sha": head}}]))
    (place / "comments.json").write_text(json.dumps(comments))
    told = bash(
        script(load(FOLDER / "comment.yml"), "Comment"),
        place,
        REPOSITORY="lab/arena",
        OWNER="fork",
        BRANCH="b'; touch harmed; '",
        COMMIT="a" * 40,
        RUN="https://example.org/run",
    )
    assert told.returncode == 0, told.stderr
    assert not (place / "harmed").exists()
    return (place / "call").read_text() if (place / "call").exists() else ""


@with_jq
def test_a_comment_is_written_once_and_then_renewed(tmp_path: Path) -> None:
    (tmp_path / "check").mkdir()
    (tmp_path / "check/summary.md").write_text("2 regressions, @team `$(touch harmed)`\n")
    assert "POST repos/lab/arena/issues/12/comments" in comment(tmp_path, [THEIRS])
    body = json.loads((tmp_path / "body.json").read_text())["body"]
    assert body.startswith("<!-- lra check -->\nWritten by [the run](https://example.org/run)")
    assert "2 regressions" in body and "@team" not in body and "`$(touch harmed)`" in body
    assert "head=fork:b'; touch harmed; '" in (tmp_path / "asked").read_text()
    assert "PATCH repos/lab/arena/issues/comments/7" in comment(tmp_path, [THEIRS, OURS])


@with_jq
def test_a_comment_takes_a_plain_file_of_bounded_size_or_says_that_there_is_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "check").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "check/summary.md").symlink_to(tmp_path / "secret")
    comment(tmp_path, [])
    body = json.loads((tmp_path / "body.json").read_text())["body"]
    assert "secret" not in body and "It wrote no summary" in body
    (tmp_path / "check/summary.md").unlink()
    (tmp_path / "check/summary.md").write_text("é" * 50000)
    comment(tmp_path, [])
    assert 25000 < len(json.loads((tmp_path / "body.json").read_text())["body"]) < 65536


@with_jq
def test_what_has_been_pushed_over_is_not_commented_on(tmp_path: Path) -> None:
    assert comment(tmp_path, [], head="b" * 40) == ""


def test_a_night_is_packed_before_anything_is_found_in_it() -> None:
    measured = load(FOLDER / "nightly.yml")["jobs"]["measure"]["steps"]
    names = [str(step.get("name", "")) for step in measured]
    assert names[names.index("Measure") + 1] == "Pack the night"
    # None waits for another to find nothing.
    packed = "${{ !cancelled() && steps.pack.outcome == 'success' }}"
    looks = {name: measured[names.index(name)].get("if") for name in ("Check the nights", "Audit")}
    assert looks == {"Check the nights": packed, "Audit": packed}


def test_an_audit_that_can_measure_nothing_again_is_a_warning(tmp_path: Path) -> None:
    text = script(load(FOLDER / "nightly.yml"), "Audit")
    (tmp_path / "history/2026-11-02").mkdir(parents=True)
    stub(tmp_path / "bin", "python", "exit 1")
    assert bash(text, tmp_path, NIGHT="2026-11-02").returncode == 0, "no night before"
    (tmp_path / "history/2026-11-01").mkdir()
    for code, exits in ((0, 0), (1, 1), (2, 0), (4, 4)):
        stub(tmp_path / "bin", "python", f"exit {code}")
        told = bash(text, tmp_path, NIGHT="2026-11-02")
        assert (told.returncode, "::warning" in told.stdout) == (exits, code == 2)


def git(place: Path, *arguments: str) -> str:
    told = subprocess.run(
        ["git", *arguments], cwd=place, capture_output=True, text=True, check=True
    )
    return told.stdout


def test_nights_are_kept_on_a_branch_and_read_back(tmp_path: Path) -> None:
    workflow = load(FOLDER / "nightly.yml")
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    git(tmp_path, "init", "-q", "--bare", str(origin))
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    here = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    git(clone, *here, "commit", "-q", "--allow-empty", "-m", "code")
    git(clone, "push", "-q", "origin", "HEAD:refs/heads/main")
    first = bash(script(workflow, "Earlier nights"), clone)
    assert first.returncode == 0 and "::notice" in first.stdout
    for night in ("2026-11-01", "2026-11-02"):
        store = clone / "history" / night
        store.mkdir(parents=True)
        (store / "one.json").write_text(night)
        (store / ".lock").write_text("1")
        output = {"NIGHT": night, "GITHUB_OUTPUT": str(tmp_path / "output")}
        assert bash(script(workflow, "Pack the night"), clone, **output).returncode == 0
        packed = (clone / "night.tar.gz").read_bytes()
        fresh = tmp_path / night
        git(tmp_path, "clone", "-q", "--branch", "main", str(origin), str(fresh))
        (fresh / "packed").mkdir()
        (fresh / "packed/night.tar.gz").write_bytes(packed)
        kept = bash(script(workflow, "Keep the night"), fresh, NIGHT=night, RUNNER_TEMP="packed")
        assert kept.returncode == 0, kept.stderr
    assert (tmp_path / "output").read_text() == "night=2026-11-01\nnight=2026-11-02\n"
    assert bash(script(workflow, "Earlier nights"), clone).returncode == 0
    found = sorted(f.relative_to(clone / "history") for f in (clone / "history").rglob("*.json"))
    assert [str(f) for f in found] == ["2026-11-01/one.json", "2026-11-02/one.json"]
    assert not list((clone / "history").rglob(".lock"))
    assert git(origin, "ls-tree", "--name-only", "nights").split() == [
        "2026-11-01.tar.gz",
        "2026-11-02.tar.gz",
    ], "nothing but nights"
    git(clone, "remote", "set-url", "origin", str(tmp_path / "gone"))
    assert bash(script(workflow, "Earlier nights"), clone).returncode not in (0, 2)
