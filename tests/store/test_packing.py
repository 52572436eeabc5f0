"""Packing loses nothing, whatever ends it and wherever; it writes over nothing it cannot read."""

import errno
import gzip
import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from test_packs import PACK, changed, lines, no_characters, packed, write
from test_packs import store as store
from test_store import record

from lra.core.cells import CeilingCell
from lra.core.errors import StoreError
from lra.core.protocol import Machine
from lra.core.records import SCHEMA, encode
from lra.store import Packing, Store, StoreWarning, pack


def ceiling():
    """A record of another kind."""
    machine = Machine(processor="toy", cores=1)
    cell = CeilingCell(machine=machine, torch="0", threads=1, versions={"ceiling": "0"})
    return replace(record(), id=cell.id, cell=cell)


def everything(folder):
    """All that a new reader of a store finds; a warning fails the test."""
    return {one.id: encode(one) for one in Store(folder).records()}


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def mixed(folder):
    """Three records in a pack of today's name, one of them changed since; one in a pack of another
    name, older than the loose one; loose ones of two kinds."""
    packed(folder, 3)
    write(folder / "before.jsonl.gz", [changed(encode(record(4)), seconds=5.0)])
    with Store(folder).locked() as store:
        for one in (replace(record(1), seconds=8.0), record(4), record(5), ceiling()):
            store.save(one)


class Killed(BaseException):
    """Ends a process at once, as far as a process can tell."""


class Steps:
    """Lets so many calls that change the disk pass and ends the next one, before or after it."""

    def __init__(self, patch, error, *, after):
        self.left, self.taken, self._error, self._after = -1, 0, error, after
        for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink")):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call):
        def counted(*arguments, **more):
            self.taken += 1
            ends = self.taken - 1 == self.left
            if ends and not self._after:
                raise self._error
            done = call(*arguments, **more)
            if ends:
                raise self._error
            return done

        return counted


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [Killed(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_end_at_any_step_loses_nothing(error, after, tmp_path, monkeypatch):
    mixed(tmp_path / "whole")
    wanted = everything(tmp_path / "whole")
    assert len(wanted) == 6
    ended = 0
    with monkeypatch.context() as patch:
        steps = Steps(patch, error, after=after)
        for number in range(100):
            folder = tmp_path / str(number)
            steps.left = -1
            mixed(folder)
            store = Store(folder)
            with store.locked():
                steps.taken, steps.left = 0, number
                try:
                    pack(store)
                except Killed:
                    ended += 1
                except StoreError as refused:
                    ended += 1
                    told = str(refused)
                    assert "no space left" in told and "nothing is lost" in told
                    assert "\n" not in told
                else:
                    break
                finally:
                    steps.left = -1
            assert everything(folder) == wanted, number
            assert {one.id: encode(one) for one in store.records()} == wanted, number
            with store.locked():
                pack(store)
            assert everything(folder) == wanted, number
            assert sorted(contents(folder)) == [".lock", "ceiling.jsonl.gz", PACK]
    # Two packs, each synced, renamed and its folder synced; a pack and four files deleted.
    assert ended == 2 * 3 + 5


def test_a_kill_leaves_half_a_pack_that_the_next_writer_sweeps(tmp_path):
    mixed(tmp_path)
    (tmp_path / f"{PACK}.123.tmp").write_bytes(b"half")
    (tmp_path / "notes.jsonl.gz.tmp").write_bytes(b"mine")
    assert len(everything(tmp_path)) == 6
    with Store(tmp_path).locked():
        assert [file.name for file in tmp_path.glob("*.tmp")] == ["notes.jsonl.gz.tmp"]


def test_packing_says_how_much_there_was_and_is(tmp_path):
    with Store(tmp_path).locked() as store:
        for replicate in range(30):
            store.save(record(replicate))
        loose = sum(len(encode(record(replicate))) for replicate in range(30))
        done = pack(store)
    size = (tmp_path / PACK).stat().st_size
    assert done == Packing(records=30, files=1, before=loose, after=size)
    assert size < loose / 10
    assert pack(store) == Packing(records=0, files=1, before=size, after=size)
    assert pack(Store(tmp_path / "none")) == Packing(records=0, files=0, before=0, after=0)


def test_a_pack_that_gets_nothing_new_is_not_written_again(store, tmp_path):
    before = (tmp_path / PACK).stat()
    store.save(ceiling())
    pack(store)
    after = (tmp_path / PACK).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert len(everything(tmp_path)) == 7


def test_what_is_packed_is_what_was_written(tmp_path):
    """Fields of a later version of this schema included."""
    with Store(tmp_path).locked() as store:
        later = msgspec.json.decode(encode(record())) | {"colour": "\u00e9", "figure": 0.1}
        text = msgspec.json.format(msgspec.json.encode(later), indent=1)
        (tmp_path / f"{record().id}.json").write_bytes(text + b"\n")
        pack(store)
    (line,) = lines(tmp_path / PACK)
    assert msgspec.json.format(line, indent=1) == text
    assert store.records() == [record()]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is left out: it is not JSON, perhaps cut off; delete it and run its cell again"),
        (b'{"schema": 99}', "is left out: a newer version wrote it"),
        (encode(record(1)), "it holds the record of another cell"),
    ],
)
def test_a_loose_record_that_cannot_be_read_stays(content, words, tmp_path):
    with Store(tmp_path).locked() as store:
        store.save(record(1))
        (tmp_path / f"{record(0).id}.json").write_bytes(content)
        with pytest.warns(StoreWarning, match=words):
            assert pack(store).records == 1
    assert (tmp_path / f"{record(0).id}.json").read_bytes() == content
    assert len(lines(tmp_path / PACK)) == 1


def test_packed_records_of_a_newer_version_stay_as_they_are(store, tmp_path):
    newer = [changed(line, schema=SCHEMA + 1, status="new") for line in lines(tmp_path / PACK)]
    write(tmp_path / PACK, newer)
    store.save(record(9))
    pack(store)
    found = lines(tmp_path / PACK)
    assert len(found) == 7 and set(newer) < set(found)


def test_a_pack_whose_last_line_does_not_end_stays_whole(store, tmp_path):
    (tmp_path / PACK).write_bytes(gzip.compress(b"\n".join(lines(tmp_path / PACK))))
    store.save(record(9))
    pack(store)
    assert len(everything(tmp_path)) == 7


DAMAGE = {
    "torn": lambda held: gzip.compress(b"\n".join([*held[:2], held[2][:30], *held[3:]])),
    "cut": lambda held: gzip.compress(b"\n".join(held))[:-20],
    "no cell": lambda held: gzip.compress(b'{"id": "x"}\n' + b"\n".join(held)),
    "kind is a path": lambda held: gzip.compress(changed(held[0], cell={"type": "../efficiency"})),
    "no characters": lambda held: gzip.compress(b"\n".join([no_characters(held[0]), *held[1:]])),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_pack_is_not_written_over(store, damage, tmp_path):
    (tmp_path / PACK).write_bytes(DAMAGE[damage](lines(tmp_path / PACK)))
    store.save(record(9))
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=rf"cannot pack .*: {PACK} is damaged .*; restore") as told:
        pack(store)
    assert "\n" not in str(told.value)
    assert contents(tmp_path) == before
    (tmp_path / PACK).unlink()
    assert pack(store).records == 1


def test_packs_that_disagree_are_not_put_together_until_a_loose_record_settles_it(store, tmp_path):
    write(tmp_path / "older.jsonl.gz", [changed(encode(record(3)), seconds=7.0)])
    before = contents(tmp_path)
    words = rf"record {record(3).id} is there twice and differs: line \d of {PACK} counts, line 1 "
    with pytest.raises(StoreError, match=f"cannot pack .*: {words}"):
        pack(store)
    assert contents(tmp_path) == before
    store.save(replace(record(3), seconds=3.0))
    pack(store)
    assert sorted(contents(tmp_path)) == [".lock", PACK]
    assert len(everything(tmp_path)) == 6
    assert store.load(record(3).id) == replace(record(3), seconds=3.0)
