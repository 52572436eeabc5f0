"""Revisions in a small clone: found, checked out for a while, and given packages."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from processes import git

from lra.core.errors import UsageError
from lra.engine.gate import revision
from lra.engine.gate.revision import build, commit_of, last_commit, merge_base, work_tree
from lra.engine.process.temporary import sweep

PYTHON_ITSELF = sys.executable
PROJECT = '[project]\nname = "lra"\ndependencies = ["b", "a"]\n'
PYTHON = """#!/bin/sh
echo "$@" >> "$LRA_CACHE/asked"
case "$*" in *venv*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";; *install*) {pip};; esac
"""
"""An interpreter that makes environments with itself in them; and what its pip does."""


def commit(home: Path, name: str) -> str:
    """Commit a change of the code."""
    (home / "lra" / f"{name}.py").write_text(f"NAME = '{name}'\n")
    git(home, "add", ".")
    git(home, "commit", "-q", "-m", name)
    return git(home, "rev-parse", "HEAD")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with two commits, the first tagged."""
    place = tmp_path / "clone"
    (place / "lra").mkdir(parents=True)
    (place / "pyproject.toml").write_text(PROJECT)
    git(place, "init", "-q", "-b", "main")
    commit(place, "first")
    git(place, "tag", "v1")
    commit(place, "second")
    monkeypatch.setattr(revision, "HOME", place)
    monkeypatch.setenv("LRA_CACHE", str(tmp_path / "cache"))
    return place


def test_a_commit_is_found_by_branch_tag_and_hash(home: Path) -> None:
    first, second = git(home, "rev-parse", "v1"), git(home, "rev-parse", "main")
    assert commit_of("v1") == commit_of(first[:9]) == commit_of("main~1") == first
    assert commit_of("main") == commit_of("HEAD") == second
    git(home, "tag", "-a", "-m", "annotated", "v2")
    assert commit_of("v2") == second, "of a tag the commit, not the tag"


@pytest.mark.parametrize(
    "name", ["nothing", "--help", "-v", "", "main^{tree}", "v1 main", "deadbeef"]
)
def test_what_is_no_commit_is_one_line_with_the_remedy(home: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"^no revision '"):
        commit_of(name)


def test_outside_a_clone_there_are_no_revisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revision, "HOME", tmp_path)
    with pytest.raises(UsageError, match=r"revision 'main': .*installed"):
        commit_of("main")
    assert last_commit() is None


def test_held_against_the_last_commit_where_code_is_changed_and_else_the_one_before(
    home: Path,
) -> None:
    assert last_commit() == "HEAD^"
    (home / "notes.txt").write_text("of no code")
    assert last_commit() == "HEAD^"
    (home / "lra" / "first.py").write_text("NAME = 'edited'\n")
    assert last_commit() == "HEAD"
    git(home, "checkout", "-q", "--force", "v1")
    assert last_commit() is None, "before the first commit there is nothing"
    (home / "lra" / "new.py").touch()
    assert last_commit() == "HEAD"


def trees(home: Path) -> list[str]:
    return git(home, "worktree", "list", "--porcelain").split("\n\n")


def test_a_work_tree_has_the_files_of_its_commit_and_is_gone_afterwards(home: Path) -> None:
    (home / "lra" / "first.py").write_text("NAME = 'edited'\n")
    with work_tree("v1") as tree, work_tree("main") as other:
        assert tree.name == git(home, "rev-parse", "v1")[:12]
        assert sorted(file.name for file in (tree / "lra").iterdir()) == ["first.py"]
        assert (tree / "lra/first.py").read_text() == "NAME = 'first'\n"
        assert len(trees(home)) == 3
        (tree / "left.txt").touch()
    assert len(trees(home)) == 1 and not tree.parent.exists() and not other.parent.exists()


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_a_work_tree_is_gone_after_whatever_ends_it(home: Path, kind: type[BaseException]) -> None:
    with pytest.raises(kind), work_tree("v1") as tree:
        raise kind
    assert len(trees(home)) == 1 and not tree.parent.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from lra.engine.gate import revision
revision.HOME = Path(sys.argv[2])
revision._install = lambda tree, new, name: (new.mkdir(), os.kill(os.getpid(), signal.SIGKILL))
with revision.work_tree("v1") as tree:
    revision.build("v1", tree, lambda line: None)
"""
"""A comparison that is killed while pip installs packages."""


def test_what_a_kill_leaves_goes_with_the_next_run_and_the_next_installation(
    home: Path, environments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    command = [PYTHON_ITSELF, "-c", KILLED, str(Path(__file__).parents[2]), str(home)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    (left,), (half,) = place.iterdir(), environments.iterdir()
    assert left.name.startswith("lra-revision-") and len(trees(home)) == 2
    sweep()
    assert not list(place.iterdir())
    with work_tree("v1") as tree:
        built = build("v1", tree, [].append)
        assert [file.name for file in environments.iterdir()] == [built.python.parents[1].name]
    assert not half.exists() and len(trees(home)) == 1


def test_in_a_hook_of_git_the_work_tree_is_still_ours(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "other")], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    with work_tree("v1") as tree:
        assert (tree / "lra/first.py").is_file()


def test_what_git_refuses_is_one_line(home: Path) -> None:
    (home / ".git" / "worktrees").write_text("in the way")
    with (
        pytest.raises(UsageError, match=r"^git worktree add: ") as error,
        work_tree("v1"),
    ):
        pass
    assert "\n" not in str(error.value)


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where they are kept; the interpreter only pretends."""
    stub = tmp_path / "stub" / "bin" / "python"
    stub.parent.mkdir(parents=True)
    stub.write_text(PYTHON.format(pip="exit 0"))
    stub.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stub))
    return tmp_path / "cache" / "environments"


def pip(environments: Path, does: str) -> None:
    Path(sys.executable).write_text(PYTHON.format(pip=does))


def asked(environments: Path) -> list[str]:
    """Command lines of pip so far."""
    file = environments.parent / "asked"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line for line in lines if "pip" in line]


def test_revisions_that_ask_for_the_same_packages_share_an_environment(
    home: Path, environments: Path
) -> None:
    told: list[str] = []
    with work_tree("v1") as one, work_tree("main") as other:
        first, second = build("v1", one, told.append), build("main", other, told.append)
        assert first.python == second.python and first.python.is_file()
        assert (first.name, first.root, first.commit) == ("v1", one, commit_of("v1")[:12])
        assert (second.name, second.root, second.commit) == ("main", other, commit_of("main")[:12])
        (line,) = told
        assert "v1" in line
        assert asked(environments) == ["-m pip install --quiet a b"]
        (other / "constraints.txt").write_text("a==1\n")
        third = build("main", other, told.append)
    assert third.python != first.python and len(told) == 2
    assert asked(environments)[1:] == ["-m pip install --quiet -c constraints.txt a b"]


def test_another_build_of_torch_has_an_environment_of_its_own(
    home: Path, environments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with work_tree("v1") as tree:
        first = build("v1", tree, [].append)
        monkeypatch.setattr(revision, "version", lambda _: "2.13.0+other")
        assert build("v1", tree, [].append).python != first.python


def test_what_came_to_a_branch_since_is_no_change_of_ours(home: Path) -> None:
    git(home, "switch", "-q", "-c", "ours", "v1")
    assert merge_base("main") == commit_of("v1")
    commit(home, "third")
    assert merge_base("main") == merge_base("v1") == commit_of("v1")
    assert merge_base("HEAD") == commit_of("ours")


def test_packages_that_cannot_be_installed_are_one_line_and_tried_again(
    home: Path, environments: Path
) -> None:
    pip(environments, "echo some >&2; echo 'ERROR: no matching a' >&2; exit 1")
    with work_tree("v1") as tree:
        for _ in range(2):
            with pytest.raises(UsageError, match=r"^revision 'v1': .*: ERROR: no matching a; "):
                build("v1", tree, lambda _: None)
        pip(environments, "exit 1")
        with pytest.raises(UsageError, match="said nothing"):
            build("v1", tree, lambda _: None)
        pip(environments, "exit 0")
        assert build("v1", tree, lambda _: None).python.is_file()


def test_an_environment_whose_interpreter_is_gone_is_made_anew(
    home: Path, environments: Path
) -> None:
    with work_tree("v1") as tree:
        python = build("v1", tree, lambda _: None).python
        python.unlink()
        python.symlink_to(environments / "removed")
        assert build("v1", tree, lambda _: None).python.is_file()
