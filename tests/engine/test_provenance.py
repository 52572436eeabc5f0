"""Which code answers: the project's own checkout, and no other repository's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import lra
from lra.engine.provenance import checkout, library, provenance


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "lra").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "lra" / "a.py").write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "start")
    return tmp_path


def test_a_clean_checkout(project: Path) -> None:
    assert checkout(project) == (git(project, "rev-parse", "HEAD"), False)


@pytest.mark.parametrize("change", ["edited", "new"])
def test_a_change_in_a_room_of_code_makes_it_dirty(project: Path, change: str) -> None:
    (project / "lra" / ("a.py" if change == "edited" else "b.py")).write_text("a = 2\n")
    assert checkout(project)[1] is True


def test_results_do_not_make_it_dirty(project: Path) -> None:
    (project / "results" / "x.json").write_text("{}")
    assert checkout(project)[1] is False


def test_an_installation_inside_somebodys_repository_has_no_commit(project: Path) -> None:
    assert checkout(project / "lra") == (None, None)


def test_the_environment_cannot_point_git_elsewhere(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    commit, dirty = checkout(project)
    assert commit is not None and dirty is False


def test_without_git_nothing_is_known(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert checkout(project) == (None, None)


def test_the_record_says_versions() -> None:
    found = provenance({"processor": "toy"})
    assert found.version == lra.__version__
    assert found.libraries["torch"] == library("torch") != ""
    assert found.libraries["python"]
    assert "no-such-library" not in found.libraries and library("no-such-library") == ""
    assert found.host == {"processor": "toy"}
