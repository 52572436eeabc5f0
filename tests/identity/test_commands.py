"""The commands of `lra identity`, whose one case costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click.testing
import msgspec
import pytest

from lra.cli.identity import command
from lra.core import versions
from lra.core.errors import LraError
from lra.engine.gate import revision
from lra.identity import check, lock
from lra.identity.check import Check
from lra.identity.lock import Lock
from lra.identity.sources import hashes, units
from tests.identity.toy import FILE, SOURCE, answer, git


@pytest.fixture
def checkout(
    tree: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], None]]:
    """A checkout whose `train` case enters the helper and gives these bits."""
    root = tree(SOURCE)
    monkeypatch.setattr(versions, "JOURNAL", root / "versions.json")
    versions.JOURNAL.write_text("[]")
    monkeypatch.setattr(versions.journal, "__defaults__", (versions.JOURNAL,))
    monkeypatch.setattr(versions.bump, "__defaults__", (versions.JOURNAL,))
    versions._bumped.cache_clear()
    monkeypatch.setattr(Check.__init__, "__defaults__", (root, lambda line: None, ""))
    lock.write(root, Lock())
    first = Check()
    first.answers = [answer("train", "a", (), "helper")]
    first.write()

    def edited(text: str, bits: str) -> None:
        tree(text)
        monkeypatch.setattr(check, "answers_of", lambda *_: [answer("train", bits, (), "helper")])

    yield edited
    versions._bumped.cache_clear()


def lra(*words: str) -> tuple[int, str]:
    ran = click.testing.CliRunner().invoke(command, words, standalone_mode=False)
    if ran.exception is not None:
        raise ran.exception
    return ran.return_value, ran.output


NOISY = SOURCE.replace("return x\n", "return x + 0\n")


def test_from_an_edit_to_a_bump(checkout: Callable[[str, str], None]) -> None:
    assert lra("check")[0] == 0
    checkout(NOISY, "b")
    assert lra("check")[0] == 1
    assert lra("check")[0] == 1, "a failed check locks nothing"
    code, told = lra("bump", "train", "--reason", "noise")
    assert code == 0 and "no record is due" not in told and "no case moved" not in told
    assert [(b.feature, b.version, b.cases) for b in versions.journal(versions.JOURNAL)] == [
        ("train", 2, ("train",))
    ]
    code, told = lra("check")
    assert code == 0 and told.startswith("untouched")
    assert "no case moved" in lra("bump", "train", "--reason", "twice")[1]


def test_a_field_that_no_case_shows_may_be_accepted_as_it_is_named(
    checkout: Callable[[str, str], None],
) -> None:
    root = Check().root
    (root / "lra/training/loop.py").write_text("class Kept:\n    depth = 1\n")
    (root / "lra/training/batches.py").write_text("def read(kept):\n    return kept.depth\n")
    checkout(SOURCE, "a")
    name = "lra/training/loop.py:Kept.depth"
    assert lra("accept", name, "lra/training/batches.py:read", "--reason", "new")[0] == 0
    assert lra("check")[0] == 0
    (root / "lra/training/loop.py").write_text("class Kept:\n    depth = 2\n")
    code, told = lra("check")
    assert code == 1 and f"unseen: {name} " in told
    assert lra("accept", name, "--reason", "for a GPU")[0] == 0
    assert lra("check")[0] == 0


def test_a_slip_is_told_before_cases_run(
    checkout: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Check, "run", lambda self: pytest.fail("cases ran"))
    for words in (("bump", "trian"), ("accept", f"{FILE}:helpr")):
        with pytest.raises(LraError):
            lra(*words, "--reason", "noise")
    assert versions.journal(versions.JOURNAL) == []


def test_from_an_edit_to_kept(checkout: Callable[[str, str], None]) -> None:
    checkout(NOISY, "a")
    code, told = lra("check")
    assert code == 0 and told.startswith("kept: ") and "1 case" in told
    assert lra("check")[1].startswith("untouched")


def test_a_lock_that_came_with_an_edit_proves_nothing_to_the_branch_it_goes_to(
    checkout: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Check().root
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "base")
    monkeypatch.setattr(revision, "merge_base", lambda name: name)
    assert lra("check", "--since", "HEAD")[0] == 0
    checkout(NOISY, "b")
    forged = msgspec.structs.replace(lock.read(root), sources=hashes(units(root)))
    lock.write(root, forged)
    assert lra("check")[1].startswith("untouched")
    assert lra("check", "--since", "HEAD")[0] == 1
    checkout(NOISY, "a")
    code, told = lra("check", "--since", "HEAD")
    assert code == 0 and told.startswith("kept: ")
    assert lock.read(root) == forged, "another's lock is never written over ours"


@pytest.mark.parametrize(("commit", "words"), [("HEAD", "no 'results"), ("nothing", "no 'results")])
def test_a_commit_without_a_lock_is_one_line(commit: str, words: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "empty")
    with pytest.raises(LraError, match=words):
        lock.read_at_commit(tmp_path, commit)


def test_a_case_that_fails_locks_nothing(
    checkout: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout(NOISY, "a")
    broken = msgspec.structs.replace(answer("train", "a", (), "helper"), failure="KeyError: 'x'")
    monkeypatch.setattr(check, "answers_of", lambda *_: [broken])
    assert lra("check")[0] == 1
    assert not Check().is_untouched


def test_from_an_unseen_edit_to_an_accepted_one(checkout: Callable[[str, str], None]) -> None:
    checkout(SOURCE.replace("x * HALF", "x / HALF"), "a")
    code, said = lra("check")
    assert code == 1 and f"identity accept {FILE}:Mixer.mix" in said
    with pytest.raises(LraError, match=r"Mixer\.mix"):
        lra("accept", f"{FILE}:Mixer.mx", "--reason", "only a GPU gets there")
    assert lra("accept", f"{FILE}:Mixer.mix", "--reason", "only a GPU gets there")[0] == 0
    assert lra("check")[0] == 0


def test_a_journal_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "versions.json"
    file.write_text('[{"feature": ')
    with pytest.raises(LraError, match="git checkout"):
        versions.journal(file)
