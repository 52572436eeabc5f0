"""The store: whole or absent, whatever kills the writer; one writer at a time; clear refusals."""

import errno
import os
import subprocess
import sys
import time
import uuid
import warnings
from pathlib import Path

import msgspec
import pytest

from lra.core.cells import EfficiencyCell
from lra.core.errors import StoreError
from lra.core.protocol import Machine, Mechanism
from lra.core.records import SCHEMA, CurvePoint, Metric, Record, encode
from lra.store import Store, StoreWarning


def record(replicate=0, points=0):
    cell = EfficiencyCell(
        scale="toy",
        machine=Machine(processor="toy", cores=1),
        torch="0",
        threads=1,
        versions={"train": 1},
        mechanism=Mechanism(name="toy"),
        length=8,
        mode="forward",
        heads=1,
        head_width=1,
        replicate=replicate,
    )
    losses = {"train_loss": 1.0, "validation_loss": 1.0, "validation_accuracy": 0.5}
    return Record(
        id=cell.id,
        cell=cell,
        status="ok",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        metrics={"latency": Metric(value=None, unit="s", why_null="not measured")},
        curve=(CurvePoint(step=1, seconds=1.0, learning_rate=0.1, **losses),) * points,
    )


ONE, TWO = record(0), record(1)


def file_of(store, one):
    return store.path / f"{one.id}.json"


def altered(one, **changes):
    return msgspec.json.encode(msgspec.json.decode(encode(one)) | changes)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "deep" / "store")
    with store.writing():
        pass
    return store


def test_saved_records_come_back_equal_and_in_the_order_of_their_names(store):
    written = [record(replicate, points=3) for replicate in range(5)]
    for one in written:
        store.save(one)
        assert store.load(one.id) == one
    assert store.load(record(9).id) is None
    assert store.records() == sorted(written, key=lambda one: one.id)


def test_a_store_that_was_never_written_is_empty_and_stays_absent(tmp_path):
    store = Store(tmp_path / "none")
    assert store.records() == []
    assert store.load("x") is None
    assert not store.path.exists()


HEAD = """
import os, resource, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from lra.store import Store
from test_store import record
with Store(Path(sys.argv[1])).writing() as store:
"""
WRITER = """
    first = 1000 * int(sys.argv[2])
    for replicate in range(first, first + 1000):
        written = record(replicate, points=6000)
        store.save(written)
        print(written.id, flush=True)
"""
HALF = """
    if sys.argv[2] == "in the middle of the file":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    elif sys.argv[2] == "before the rename":
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL)
    store.save(record(points=100))
"""


def process(store, code, word):
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    command = [sys.executable, "-c", HEAD + code, str(store.path), str(word), *folders]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def temporary(store):
    return [file.name for file in store.path.rglob("*.tmp")]


def test_writers_killed_at_any_instant_lose_nothing_they_acknowledged(tmp_path):
    store, acknowledged = Store(tmp_path / "store"), set()
    for round_ in range(5):
        with process(store, WRITER, round_) as writer:
            acknowledged.add(writer.stdout.readline().strip())
            time.sleep(0.01 + 0.008 * round_)
            writer.kill()
            acknowledged.update(line.strip() for line in writer.stdout if line.endswith("\n"))
        # Any warning would be a torn record, and fail this test.
        assert acknowledged <= {found.id for found in store.records()}
    with store.writing():
        assert not temporary(store)
    assert len(acknowledged) >= 5


@pytest.mark.parametrize(
    ("instant", "left"),
    [("in the middle of the file", 1), ("before the rename", 1), ("before the file", 0)],
)
def test_a_writer_killed_at_the_worst_instant_leaves_the_old_record_and_no_lock(
    store, instant, left
):
    store.save(ONE)
    with process(store, HALF, instant) as writer:
        assert writer.wait() < 0
    assert store.records() == [ONE] and len(temporary(store)) == left
    with store.writing():
        assert not temporary(store)


def test_opening_for_writing_sweeps_files_of_dead_writers_and_no_other(store):
    store.save(ONE)
    id, once = ONE.id, f".{uuid.uuid4().hex}.tmp"
    dead = [f"checkpoints/{name}" for name in (f"{id}.pt.tmp", f"{id}.pt{once}", once)]
    names = ("notes.tmp", "a.json.1.tmp", f"{id}.json.tmp", f"{id}.pt.tmp", f"{id}.json.x.tmp")
    below = ("model.tmp", "abc.pt.tmp", ".a.tmp", f"{id}.json.1.tmp", f"{id}.pt.a.tmp")
    theirs = {*names, *(f"checkpoints/{name}" for name in below)}
    for name in (f"{id}.json.123.tmp", *dead, *theirs):
        (store.path / name).write_bytes(b"{")
    kept = store.checkpoint(id)
    kept.write_bytes(b"weights")
    assert len(store.records()) == 1
    with store.writing():
        pass
    assert {str(file.relative_to(store.path)) for file in store.path.rglob("*.tmp")} == theirs
    assert kept.read_bytes() == b"weights"


def test_a_cut_off_record_is_named_and_counts_as_missing(store):
    store.save(ONE)
    store.save(TWO)
    file = file_of(store, TWO)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.warns(StoreWarning, match=rf"{file.name} is left out.*cut off.*delete it") as told:
        assert store.records() == [ONE]
    assert len(told) == 1 and "\n" not in str(told[0].message)
    with pytest.warns(StoreWarning):
        assert store.load(TWO.id) is None
    store.save(TWO)
    assert store.load(TWO.id) == TWO


@pytest.mark.parametrize("content", ["[1, 2]", '{"status": "ok"}', "{", None])
def test_somebodys_own_file_or_folder_is_not_for_deletion(store, content):
    if content is None:
        (store.path / "notes.json").mkdir()
    else:
        (store.path / "notes.json").write_text(content)
    with pytest.warns(StoreWarning, match=r"notes\.json is left out: .* move it"):
        assert store.records() == []


def test_a_field_that_a_later_version_of_this_schema_added_is_read_over(store):
    file_of(store, ONE).write_bytes(altered(ONE, colour="red"))
    assert store.load(ONE.id).cell == ONE.cell


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema": SCHEMA + 1}, "newer version.*update"),
        ({"schema": SCHEMA + 1, "status": "strange"}, "newer version.*update"),
        ({"schema": 0}, "older version.*run its cell again"),
        ({"schema": 0, "status": "strange"}, "older version.*run its cell again"),
        ({"status": "strange"}, "does not fit.*delete it"),
        ({"id": "another"}, "another cell.*rename or delete"),
    ],
)
def test_a_record_that_does_not_fit_says_why(store, changes, says):
    file = file_of(store, ONE)
    file.write_bytes(altered(ONE, **changes))
    with pytest.warns(StoreWarning, match=rf"{file.name}.*{says}"):
        assert store.records() == []


@pytest.mark.parametrize("changes", [{}, {"status": "strange"}])
def test_a_cell_whose_record_a_newer_version_wrote_is_refused(store, changes):
    store.save(ONE)
    store.save(TWO)
    store.refuse_newer([ONE.id, TWO.id, "unknown"])
    file = file_of(store, ONE)
    file.write_bytes(altered(ONE, schema=SCHEMA + 1, **changes))
    with pytest.raises(StoreError, match=rf"a newer version, e.g. {file.name}.*update") as refused:
        store.refuse_newer([ONE.id, TWO.id])
    assert "\n" not in str(refused.value)
    store.refuse_newer([TWO.id])


def test_a_second_writer_is_refused_in_one_line_and_readers_are_not(store):
    other = Store(store.path)
    with store.writing():
        store.save(ONE)
        assert other.load(ONE.id) == ONE
        says = rf"in use.*process {os.getpid()}.*--store"
        with pytest.raises(StoreError, match=says) as refused, other.writing():
            pass
        assert "\n" not in str(refused.value)
    with other.writing():
        pass


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_store_that_is_a_file_or_below_one_is_refused(tmp_path, place):
    (tmp_path / "file").write_text("not a folder")
    store = Store(tmp_path / place)
    with pytest.raises(StoreError, match=r"cannot write.*--store"), store.writing():
        pass
    with pytest.raises(StoreError, match=r"cannot read.*--store"):
        store.records()
    # A cell has no record there; that is no warning.
    assert store.load("x") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    says, store = r"permission denied.*mend its permissions", Store(tmp_path / "store")
    with pytest.raises(StoreError, match=says), store.writing():
        pass


def test_a_full_disk_leaves_the_old_record_and_no_temporary_file(store, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    store.save(ONE)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"no space left.*make room.*run the same command again"):
        store.save(record(points=2))
    assert store.load(ONE.id) == ONE and not temporary(store)


def test_files_that_are_no_records_are_not_read(store):
    for name in ("notes.txt", ".hidden.json"):
        (store.path / name).write_text("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.records() == []
