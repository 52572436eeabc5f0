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
    """Five parts of real pairs; what is read is told to `spy` by part and place."""

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
    """What was made in this process."""

    def __init__(self):
        self.made = []
        self.done = None

    def begun(self, parts, done):
        self.done = done

    def part(self, name):
        self.made.append(name)


def made(folder, spy=lambda part, place: None, key="a", real=False):
    watch, task = Names(), Counted(spy)
    pieces = read_pieces(task, "", None)
    make_set(task, "counted", folder, key, lambda: pieces, what="'x'", real=real, watch=watch)
    return watch


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "set"
    made(folder)
    return content(folder)


def test_what_was_read_is_what_is_there(tmp_path):
    made(tmp_path / "set")
    data = open_prepared(tmp_path / "set")
    expected = [e for part in Counted().parts("") for e in part.examples(None)]
    for name, split in data:
        mine = [example for example in expected if example.split == name]
        assert split.labels.tolist() == [example.label for example in mine]
        for row, example in enumerate(mine):
            for place, tokens in enumerate(example.tokens):
                assert np.array_equal(split.sequence(2 * row + place), tokens)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


KILLED = """
import os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_draft
from lra.core.errors import DataError

def kill(part, place):
    if (part, place) == (3, 4):
        os.kill(os.getpid(), 9)

def fill(part, place):
    if (part, place) == (3, 0):
        draft = Path(sys.argv[2]).parent / ".set.draft"
        last = "*.lengths" if sys.argv[3] == "part" else "journal.json"
        held = max(path.stat().st_size for path in draft.glob(last))
        resource.setrlimit(resource.RLIMIT_FSIZE, (held + 30, resource.RLIM_INFINITY))

try:
    test_draft.made(Path(sys.argv[2]), kill if sys.argv[3] == "kill" else fill)
except DataError as error:
    print(error)
    sys.exit(2)
"""


def broken(folder, how):
    here = str(Path(__file__).parent)
    return subprocess.run(
        [sys.executable, "-c", KILLED, here, str(folder), how], capture_output=True, text=True
    )


def test_after_a_kill_the_next_process_goes_on_to_the_same_bytes(
    tmp_path, monkeypatch, undisturbed
):
    folder = tmp_path / "set"
    assert broken(folder, "kill").returncode == -signal.SIGKILL
    with (tmp_path / ".set.draft" / "train.tokens").open("ab") as stream:
        stream.write(b"half a part")
    watch = made(folder)
    assert watch.done == 3 and watch.made == ["part 3", "part 4"]
    assert content(folder) == undisturbed
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize(("full", "whole"), [("part", 3), ("Arrow files", 5)])
def test_a_full_disk_is_one_line_and_the_next_process_goes_on(tmp_path, undisturbed, full, whole):
    ran = broken(tmp_path / "set", full)
    assert ran.returncode == 2 and ran.stderr == ""
    assert ran.stdout.startswith("cannot write the prepared set '") and ran.stdout.count("\n") == 1
    assert "free space and run again to go on, or choose another folder" in ran.stdout
    watch = made(tmp_path / "set")
    assert watch.done == whole and content(tmp_path / "set") == undisturbed


class Disk(FileIO):
    """Files that take what fits yet, then fail as Linux has it."""

    left = sys.maxsize
    number = 0

    def write(self, content):
        fits = min(Disk.left, content.nbytes)
        if not fits:
            raise OSError(Disk.number, os.strerror(Disk.number))
        Disk.left -= fits
        return super().write(content[:fits])


@pytest.mark.parametrize(
    ("number", "mend"),
    [(errno.ENOSPC, "free space"), (errno.EDQUOT, "free space"), (errno.EIO, "mend that")],
)
def test_what_the_disk_says_decides_the_remedy(tmp_path, monkeypatch, undisturbed, number, mend):
    says = f"'.*set': {os.strerror(number)}; {mend} and run again to go on, or choose"

    def fill(part, place):
        if (part, place) == (3, 0):
            monkeypatch.setattr(Disk, "left", 30)
            monkeypatch.setattr(Disk, "number", number)

    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.draft.FileIO", Disk)
        with pytest.raises(DataError, match=f"^cannot write the prepared set {says}"):
            made(tmp_path / "set", fill)
    watch = made(tmp_path / "set")
    assert watch.done == 3 and content(tmp_path / "set") == undisturbed


@pytest.mark.parametrize("raised", [KeyboardInterrupt, DataError("row 5: wrong")])
def test_an_interruption_keeps_whole_parts(tmp_path, undisturbed, raised):
    def stop(part, place):
        if (part, place) == (2, 5):
            raise raised

    with pytest.raises((KeyboardInterrupt, DataError)):
        made(tmp_path / "set", stop)
    assert made(tmp_path / "set").made == ["part 2", "part 3", "part 4"]
    assert content(tmp_path / "set") == undisturbed


@pytest.mark.parametrize(("cause", "kept"), [(errno.EIO, 2), (None, 0)])
def test_a_source_that_could_not_be_read_is_not_a_wrong_one(tmp_path, undisturbed, cause, kept):
    def broken(part, place):
        if (part, place) == (2, 5):
            reason = OSError(cause, os.strerror(cause)) if cause else OSError("cut short")
            raise DataError("'x' cannot be read") from reason

    with pytest.raises(DataError, match="cannot be read"):
        made(tmp_path / "set", broken, real=True)
    assert made(tmp_path / "set", real=True).done == kept
    assert content(tmp_path / "set") == undisturbed


def test_a_draft_that_cannot_be_opened_is_kept(tmp_path, monkeypatch, undisturbed):
    stopped(tmp_path / "set", 3)

    def none_left(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.draft.FileIO", none_left)
        with pytest.raises(DataError, match="Too many open files; mend that and run again to go"):
            made(tmp_path / "set")
        with pytest.raises(DataError, match="Too many open files"):
            made(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == [".set.draft"]
    assert made(tmp_path / "set").done == 3
    assert content(tmp_path / "set") == undisturbed


def stopped(folder, part, key="a"):
    def stop(number, place):
        if number == part:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(folder, stop, key)


def test_another_key_begins_anew(tmp_path, undisturbed):
    stopped(tmp_path / "set", 3)
    assert made(tmp_path / "set", key="b").done == 0
    assert content(tmp_path / "set") == undisturbed


@pytest.mark.parametrize("damage", ["journal.json", "test.labels"])
def test_a_draft_that_lost_something_begins_anew(tmp_path, undisturbed, damage):
    stopped(tmp_path / "set", 3)
    path = tmp_path / ".set.draft" / damage
    path.write_bytes(path.read_bytes()[:-3])
    assert made(tmp_path / "set").done == 0
    assert content(tmp_path / "set") == undisturbed


def test_a_journal_that_is_no_text_begins_anew(tmp_path, undisturbed):
    stopped(tmp_path / "set", 3)
    path = tmp_path / ".set.draft" / "journal.json"
    path.write_bytes(path.read_bytes().replace(b"train", b"tr\xffin"))
    assert made(tmp_path / "set").done == 0
    assert content(tmp_path / "set") == undisturbed


def test_nothing_is_left_where_no_part_was_whole(tmp_path):
    stopped(tmp_path / "set", 0)
    assert list(tmp_path.iterdir()) == []


def test_the_second_process_waits_and_finds_the_set(tmp_path, undisturbed):
    """Locks are of open files: two threads stand for two processes."""
    waits, found = threading.Event(), []

    def second():
        with drafting(tmp_path / "set", "a", 2, waits.set) as draft:
            found.append(draft)

    def begin(part, place):
        if (part, place) == (1, 0):
            other.start()
            assert waits.wait(10)

    other = threading.Thread(target=second)
    made(tmp_path / "set", begin)
    other.join(10)
    assert found == [None] and content(tmp_path / "set") == undisturbed
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize("whole", [0, 2])
def test_the_second_process_goes_on_where_the_first_gave_up(tmp_path, undisturbed, whole):
    waits, made_after = threading.Event(), []

    class Second(Names):
        def waiting(self):
            waits.set()

    def second():
        watch, task = Second(), Counted()
        pieces = read_pieces(task, "", None)
        make_set(task, "counted", tmp_path / "set", "a", lambda: pieces, what="'x'", watch=watch)
        made_after.extend(watch.made)

    def give_up(part, place):
        if (part, place) == (whole, 3):
            other.start()
            assert waits.wait(10)
            raise KeyboardInterrupt

    other = threading.Thread(target=second)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "set", give_up)
    other.join(10)
    # Where nothing was whole, the draft that the second waited for is gone.
    assert made_after == [f"part {number}" for number in range(whole, 5)]
    assert content(tmp_path / "set") == undisturbed


def test_tokens_of_two_types_are_a_fault_of_the_reader(tmp_path):
    with (
        pytest.raises(ValueError, match="tokens are uint8, those before were uint16"),
        drafting(tmp_path / "set", "a", 1, lambda: None) as draft,
    ):
        for kind in (np.uint16, np.uint8):
            draft.append("train", Split.of([np.zeros(3, dtype=kind)], [0]))


def wrong_row(part, place):
    if (part, place) == (3, 4):
        raise DataError("row 5: wrong")


def test_nothing_is_left_of_a_source_that_is_wrong(tmp_path):
    """Once it is mended it is another source, for which the draft is of no use."""
    pieces = read_pieces(Counted(wrong_row), "", None)
    with pytest.raises(DataError, match="row 5"):
        make_set(Counted(), "counted", tmp_path / "set", "a", lambda: pieces, what="'x'", real=True)
    assert list(tmp_path.iterdir()) == []


def test_what_a_full_disk_stopped_of_a_source_is_kept(tmp_path, monkeypatch, undisturbed):
    def full(draft, name, split):
        if draft.parts == 2:
            raise DataError("cannot write; free space")
        append(draft, name, split)

    append = Draft.append
    pieces = read_pieces(Counted(), "", None)
    with monkeypatch.context() as patched:
        patched.setattr(Draft, "append", full)
        with pytest.raises(DataError, match="free space"):
            make_set(
                Counted(), "counted", tmp_path / "set", "a", lambda: pieces, what="'x'", real=True
            )
    assert made(tmp_path / "set").done == 2
    assert content(tmp_path / "set") == undisturbed


def test_a_draft_that_is_being_removed_is_nobody_else_s(tmp_path, monkeypatch, undisturbed):
    """Whoever comes while its files go, one by one, waits until none is left."""
    stopped(tmp_path / "set", 3)
    unlink, waits, others, left = os.unlink, threading.Event(), [], []

    class Second(Names):
        def waiting(self):
            waits.set()

    def second():
        watch, pieces = Second(), read_pieces(Counted(), "", None)
        make_set(
            Counted(), "counted", tmp_path / "set", "a", lambda: pieces, what="'x'", watch=watch
        )
        others.append(watch.done)

    def slow(path, **more):
        unlink(path, **more)
        if Path(path).name == "lock" and not left:
            left.append([file.name for file in (tmp_path / ".set.draft").iterdir()])
        if not others:
            others.append("begun")
            other.start()
            assert waits.wait(10)

    other = threading.Thread(target=second)
    pieces = read_pieces(Counted(wrong_row), "", None)
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", slow)
        with pytest.raises(DataError, match="row 5"):
            make_set(
                Counted(), "counted", tmp_path / "set", "a", lambda: pieces, what="'x'", real=True
            )
    other.join(10)
    assert left[0] == [] and others == ["begun", 0] and content(tmp_path / "set") == undisturbed
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
