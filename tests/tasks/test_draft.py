"""A set in the making: killed, interrupted, out of space, or wanted by two processes at once."""

import errno
import os
import signal
import subprocess
import sys
import threading
from io import FileIO
from pathlib import Path

import numpy as np
import pytest

from lra.core.cards import TaskCard
from lra.core.dataset import SPLITS, Split
from lra.core.errors import DataError
from tasks.contract import Example, Part, Task, TaskConfig
from tasks.sources.draft import Draft, drafting
from tasks.sources.prepared import open_prepared
from tasks.sources.preparing import Watch, make_set, read_pieces


class Counted(Task):
    """Five parts of real pairs, each of whose reads is told to `spy` by part and place."""

    card = TaskCard(title="counted", source="", classes=2, vocabulary=300, inputs=2)
    Config = TaskConfig

    def __init__(self, spy=lambda part, place: None):
        super().__init__(TaskConfig(), length=9)
        self.spy = spy

    def generate(self, split, rows):
        raise NotImplementedError

    def parts(self, source):
        return [Part(f"part {number}", self._examples(number)) for number in range(5)]

    def _examples(self, number):
        def examples(on_defect):
            for place in range(6):
                self.spy(number, place)
                size = 1 + (number * 6 + place) % 9
                tokens = np.arange(size, dtype=np.uint16) + np.uint16(number)
                yield Example(SPLITS[place % 3], (tokens, tokens[::-1]), place % 2)

        return examples


class Names(Watch):
    """Parts that were made in this process, and how many were there already."""

    def __init__(self):
        self.made, self.done, self.waits = [], None, threading.Event()

    def waiting(self):
        self.waits.set()

    def begun(self, parts, done):
        self.done = done

    def part(self, name):
        self.made.append(name)


def made(folder, spy=lambda part, place: None, key="a", real=False, watch=None):
    watch, task = watch or Names(), Counted(spy)
    pieces = read_pieces(task, "", None)
    make_set(task, "counted", folder, key, lambda: pieces, what="'x'", real=real, watch=watch)
    return watch


def at(part, place, act):
    """A spy that acts at one place."""
    return lambda *here: act() if here == (part, place) else None


def raising(error):
    def act():
        raise error

    return act


def stopped(folder, part, key="a"):
    with pytest.raises(KeyboardInterrupt):
        made(folder, at(part, 0, raising(KeyboardInterrupt())), key)


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The files of a set of each key."""
    place, found = tmp_path_factory.mktemp("undisturbed"), {}
    for key in "ab":
        made(place / key, key=key)
        found[key] = content(place / key)
    return found


@pytest.fixture
def goes_on(tmp_path, undisturbed):
    """The next process finds so many whole parts and comes to the same bytes, and nothing else."""

    def check(done, key="a", **asked):
        watch = made(tmp_path / "set", key=key, **asked)
        assert watch.done == done and watch.made == [f"part {n}" for n in range(done, 5)]
        assert content(tmp_path / "set") == undisturbed[key]
        assert [path.name for path in tmp_path.iterdir()] == ["set"]

    return check


def test_a_set_holds_the_examples_that_were_read(tmp_path):
    made(tmp_path / "set")
    expected = [e for part in Counted().parts("") for e in part.examples(None)]
    for name, split in open_prepared(tmp_path / "set"):
        mine = [example for example in expected if example.split == name]
        assert split.labels.tolist() == [example.label for example in mine]
        sequences = [tokens for example in mine for tokens in example.tokens]
        for place, tokens in enumerate(sequences):
            assert np.array_equal(split.sequence(place), tokens)
        assert len(split.lengths.ravel()) == len(sequences)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


KILLED = """
import os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_draft
from lra.core.errors import DataError

def fill():
    draft = Path(sys.argv[2]).parent / ".set.draft"
    last = "*.lengths" if sys.argv[3] == "part" else "journal.json"
    held = max(path.stat().st_size for path in draft.glob(last))
    resource.setrlimit(resource.RLIMIT_FSIZE, (held + 30, resource.RLIM_INFINITY))

kill = test_draft.at(3, 4, lambda: os.kill(os.getpid(), 9))
try:
    spy = kill if sys.argv[3] == "kill" else test_draft.at(3, 0, fill)
    test_draft.made(Path(sys.argv[2]), spy)
except DataError as error:
    print(error)
    sys.exit(2)
"""


def broken(folder, how):
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(folder), how]
    return subprocess.run(command, capture_output=True, text=True)


def test_after_a_kill_the_next_process_goes_on_to_the_same_bytes(tmp_path, goes_on):
    assert broken(tmp_path / "set", "kill").returncode == -signal.SIGKILL
    with (tmp_path / ".set.draft" / "train.tokens").open("ab") as stream:
        stream.write(b"half a part")
    goes_on(3)


@pytest.mark.parametrize(("full", "whole"), [("part", 3), ("Arrow files", 5)])
def test_a_full_disk_is_one_line_and_the_next_process_goes_on(tmp_path, goes_on, full, whole):
    ran = broken(tmp_path / "set", full)
    assert ran.returncode == 2 and ran.stderr == ""
    assert str(tmp_path / "set") in ran.stdout and ran.stdout.count("\n") == 1
    goes_on(whole)


class Disk(FileIO):
    """Files that take what fits yet, then fail as Linux has it."""

    left, number = sys.maxsize, 0

    def write(self, content):
        fits = min(Disk.left, content.nbytes)
        if not fits:
            raise OSError(Disk.number, os.strerror(Disk.number))
        Disk.left -= fits
        return super().write(content[:fits])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_the_error_of_the_disk_decides_the_remedy(tmp_path, monkeypatch, goes_on, number):
    def fill():
        monkeypatch.setattr(Disk, "left", 30)
        monkeypatch.setattr(Disk, "number", number)

    mend = "mend that" if number == errno.EIO else "free space"
    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.draft.FileIO", Disk)
        with pytest.raises(DataError, match=f"set': {os.strerror(number)}; {mend}"):
            made(tmp_path / "set", at(3, 0, fill))
    goes_on(3)


def unread(number):
    """A source that could not be read, by the system's fault or by its own."""
    error = DataError("'x' cannot be read")
    error.__cause__ = OSError(number, os.strerror(number)) if number else OSError("cut short")
    return error


@pytest.mark.parametrize(
    ("raised", "real", "kept"),
    [
        (KeyboardInterrupt(), False, 2),
        (DataError("row 5: wrong"), False, 2),
        (unread(errno.EIO), True, 2),
        # A source that is wrong itself is another one when it is mended.
        (unread(None), True, 0),
        (DataError("row 5: wrong"), True, 0),
    ],
)
def test_an_interruption_keeps_whole_parts(tmp_path, goes_on, raised, real, kept):
    with pytest.raises(type(raised)):
        made(tmp_path / "set", at(2, 5, raising(raised)), real=real)
    assert bool(list(tmp_path.iterdir())) == bool(kept)
    goes_on(kept, real=real)


def test_a_draft_that_cannot_be_opened_is_kept(tmp_path, monkeypatch, goes_on):
    stopped(tmp_path / "set", 3)
    none_left = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.draft.FileIO", lambda *_: raising(none_left)())
        for name in ("set", "other"):
            with pytest.raises(DataError, match=f"{name}': Too many open files; mend that"):
                made(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [".set.draft"]
    goes_on(3)


def test_another_key_begins_anew(tmp_path, goes_on):
    stopped(tmp_path / "set", 3)
    goes_on(0, key="b")


@pytest.mark.parametrize("name", ["journal.json", "test.labels", "no text"])
def test_a_draft_that_is_damaged_begins_anew(tmp_path, goes_on, name):
    stopped(tmp_path / "set", 3)
    path = tmp_path / ".set.draft" / (name if name != "no text" else "journal.json")
    held = path.read_bytes()
    path.write_bytes(held.replace(b"train", b"tr\xffin") if name == "no text" else held[:-3])
    goes_on(0)


def test_nothing_is_left_where_no_part_was_whole(tmp_path):
    stopped(tmp_path / "set", 0)
    assert list(tmp_path.iterdir()) == []


def beside(folder, begin_at, act=lambda: None):
    """Run a second process beside one that waits for it at a place. Locks are of open files: two
    threads stand for two processes."""
    second = Names()
    other = threading.Thread(target=lambda: made(folder, watch=second))

    def begin():
        other.start()
        assert second.waits.wait(10)
        act()

    try:
        made(folder, at(*begin_at, begin))
    finally:
        other.join(10)
    return second


def test_the_second_process_waits_and_finds_the_set(tmp_path, undisturbed):
    second = beside(tmp_path / "set", (1, 0))
    assert second.done is None and content(tmp_path / "set") == undisturbed["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize("whole", [0, 2])
def test_the_second_process_goes_on_where_the_first_gave_up(
    tmp_path, monkeypatch, undisturbed, whole
):
    """Where nothing was whole, the draft that the second waited for is gone."""
    found = []
    monkeypatch.setattr(Names, "begun", lambda watch, parts, done: found.append(done))
    with pytest.raises(KeyboardInterrupt):
        beside(tmp_path / "set", (whole, 3), raising(KeyboardInterrupt()))
    assert found == [0, whole] and content(tmp_path / "set") == undisturbed["a"]


def test_tokens_of_two_types_are_a_fault_of_the_reader(tmp_path):
    with (
        pytest.raises(ValueError, match=r"uint8.* uint16"),
        drafting(tmp_path / "set", "a", 1, lambda: None) as draft,
    ):
        for kind in (np.uint16, np.uint8):
            draft.append("train", Split.of([np.zeros(3, dtype=kind)], [0]))


def test_parts_of_a_source_before_a_full_disk_are_kept(tmp_path, monkeypatch, goes_on):
    def full(draft, name, split):
        if draft.parts == 2:
            raise DataError("cannot write; free space")
        append(draft, name, split)

    append = Draft.append
    with monkeypatch.context() as patched:
        patched.setattr(Draft, "append", full)
        with pytest.raises(DataError, match="free space"):
            made(tmp_path / "set", real=True)
    goes_on(2)


def test_a_draft_that_is_being_removed_is_nobody_else_s(tmp_path, monkeypatch, undisturbed):
    """Whoever comes while its files go, one by one, waits until none is left."""
    stopped(tmp_path / "set", 3)
    unlink, second, left = os.unlink, Names(), []
    other = threading.Thread(target=lambda: made(tmp_path / "set", watch=second))

    def slow(path, **more):
        unlink(path, **more)
        if Path(path).name == "lock" and not left:
            left.append([file.name for file in (tmp_path / ".set.draft").iterdir()])
        if other.ident is None:
            other.start()
            assert second.waits.wait(10)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", slow)
        with pytest.raises(DataError, match="row 5"):
            made(tmp_path / "set", at(3, 4, raising(DataError("row 5: wrong"))), real=True)
    other.join(10)
    assert left[0] == [] and second.done == 0 and content(tmp_path / "set") == undisturbed["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
