"""Which code answers: the project's own checkout, and no other repository's."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from processes import git

import lra
from lra.engine.machine.provenance import (
    checkout,
    distribution_hash,
    distribution_of,
    library_version,
    provenance,
)


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
    assert found.libraries["torch"] == library_version("torch") != ""
    assert found.libraries["python"]
    assert "no-such-library" not in found.libraries and library_version("no-such-library") == ""
    assert found.host == {"processor": "toy"}


def test_an_installed_package_is_known_by_what_its_installer_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A library may have brought this backport, which takes the standard library's place.
    with suppress(ImportError):
        import_module("importlib_metadata")
    monkeypatch.syspath_prepend(str(tmp_path))
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("their_module\n")
    hashes = set()
    for code in ("aaa", "bbb"):
        (info / "RECORD").write_text(
            f"their_module.py,sha256={code},10\nnotes.txt,sha256=c{code},3\n"
        )
        distribution_hash.cache_clear()
        hashes.add(distribution_hash("theirs"))
    (info / "RECORD").write_text("their_module.py,sha256=bbb,10\nnotes.txt,sha256=other,3\n")
    distribution_hash.cache_clear()
    hashes.add(distribution_hash("theirs"))
    assert len(hashes) == 2, "code counts, notes do not"
    distribution_of.cache_clear()
    assert distribution_of("their_module.inner") == "theirs"
    assert distribution_of("nobody") == ""
