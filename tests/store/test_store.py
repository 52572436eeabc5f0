"""The store: whole or absent, whatever kills the writer; one writer at a time; clear refusals."""

from __future__ import annotations

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
from msgspec.structs import replace

from lra.core.cells import EfficiencyCell
from lra.core.errors import StoreError
from lra.core.protocol import Machine, Mechanism
from lra.core.records import SCHEMA, CurvePoint, Metric, Record, encode
from lra.store import Store, StoreWarning


def record(replicate: int = 0, points: int = 0) -> Record:
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
    point = CurvePoint(
        step=1,
        seconds=1.0,
        train_loss=1.0,
        validation_loss=1.0,
        validation_accuracy=0.5,
        learning_rate=0.1,
    )
    return Record(
        id=cell.id,
        cell=cell,
        status="ok",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        metrics={"latency": Metric(value=None, unit="s", why_null="not measured")},
        curve=tuple(replace(point, step=step) for step in range(1, points + 1)),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "deep" / "store")
    with store.locked():
        pass
    return store


def test_a_saved_record_comes_back_equal(store: Store) -> None:
    written = record(points=3)
    store.save(written)
    assert store.load(written.id) == written
    assert store.load(record(1).id) is None


def test_what_a_cluster_run_left_long_ago_is_swept(tmp_path: Path) -> None:
    names = (f".cluster-{'a' * 32}", f".cluster-{'b' * 32}", ".cluster-mine")
    for name, days in zip(names, (8, 6, 8), strict=True):
        (tmp_path / name).touch()
        long_ago = time.time() - days * 24 * 3600
        os.utime(tmp_path / name, (long_ago, long_ago))
    with Store(tmp_path).locked():
        left = {file.name for file in tmp_path.glob(".cluster-*")}
    assert left == set(names[1:])


def test_records_come_in_the_order_of_their_names(store: Store) -> None:
    for replicate in range(5):
        store.save(record(replicate))
    ids = [found.id for found in store.records()]
    assert ids == sorted(ids)
    assert len(ids) == 5


def test_a_store_that_was_never_written_is_empty_and_stays_absent(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.records() == []
    assert store.load("x") is None
    assert not store.path.exists()


WRITER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from lra.store import Store
from test_store import record
with Store(Path(sys.argv[1])).locked() as store:
    first = 1000 * int(sys.argv[2])
    for replicate in range(first, first + 1000):
        written = record(replicate, points=6000)
        store.save(written)
        print(written.id, flush=True)
"""


def test_writers_killed_at_any_instant_lose_nothing_they_acknowledged(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    acknowledged: set[str] = set()
    for round_ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(store.path), str(round_), *folders],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        acknowledged.add(writer.stdout.readline().strip())
        time.sleep(0.01 + 0.008 * round_)
        writer.kill()
        acknowledged.update(line.strip() for line in writer.stdout if line.endswith("\n"))
        writer.wait()
        writer.stdout.close()
        # Any warning would be a torn record, and fail this test.
        assert acknowledged <= {found.id for found in store.records()}
    with store.locked():
        assert not list(store.path.glob("*.tmp"))
    assert len(acknowledged) >= 5


HALF = """
import os, resource, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from lra.store import Store
from test_store import record
with Store(Path(sys.argv[1])).locked() as store:
    if sys.argv[2] == "in the middle of the file":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    else:
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
    store.save(record(points=100))
"""


@pytest.mark.parametrize("instant", ["in the middle of the file", "before the rename"])
def test_a_writer_killed_at_the_worst_instant_leaves_the_old_record(
    store: Store, instant: str
) -> None:
    store.save(record())
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    done = subprocess.run([sys.executable, "-c", HALF, str(store.path), instant, *folders])
    assert done.returncode < 0
    assert store.records() == [record()]
    assert len(list(store.path.glob("*.tmp"))) == 1
    with store.locked():
        assert not list(store.path.glob("*.tmp"))


def test_opening_for_writing_sweeps_what_dead_writers_left(store: Store) -> None:
    store.save(record())
    id = record().id
    once = f".{uuid.uuid4().hex}.tmp"
    orphans = (
        f"{id}.json.123.tmp",
        *(f"checkpoints/{n}" for n in (f"{id}.pt.tmp", f"{id}.pt{once}", once)),
    )
    for orphan in orphans:
        (store.path / orphan).write_bytes(b"{")
    kept = store.checkpoint(id)
    kept.write_bytes(b"weights")
    assert len(store.records()) == 1
    with store.locked():
        assert not list(store.path.rglob("*.tmp"))
    assert kept.read_bytes() == b"weights"


def test_opening_for_writing_leaves_other_peoples_files(store: Store) -> None:
    id = record().id
    names = ("notes.tmp", "a.json.1.tmp", f"{id}.json.tmp", f"{id}.pt.tmp", f"{id}.json.x.tmp")
    below = ("model.tmp", "abc.pt.tmp", ".a.tmp", f"{id}.json.1.tmp", f"{id}.pt.a.tmp")
    theirs = {*names, *(f"checkpoints/{name}" for name in below)}
    for name in theirs:
        (store.path / name).write_text("mine")
    with store.locked():
        pass
    left = {str(file.relative_to(store.path)) for file in store.path.rglob("*.tmp")}
    assert left == theirs


def test_a_cut_off_record_is_named_and_counts_as_missing(store: Store) -> None:
    store.save(record(0))
    torn = record(1)
    store.save(torn)
    file = store.path / f"{torn.id}.json"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.warns(StoreWarning, match=rf"{file.name} is left out.*cut off.*delete it") as told:
        found = store.records()
    assert [one.id for one in found] == [record(0).id]
    assert len(told) == 1 and "\n" not in str(told[0].message)
    with pytest.warns(StoreWarning):
        assert store.load(torn.id) is None
    store.save(torn)
    assert store.load(torn.id) == torn


@pytest.mark.parametrize("content", ["[1, 2]", '{"status": "ok"}', "{"])
def test_somebodys_own_file_is_not_for_deletion(store: Store, content: str) -> None:
    (store.path / "notes.json").write_text(content)
    with pytest.warns(StoreWarning, match=r"notes\.json is left out: .*; no record .* move it out"):
        assert store.records() == []


def test_a_field_that_a_later_version_of_this_schema_added_is_read_over(store: Store) -> None:
    written = record()
    newer = msgspec.json.decode(encode(written)) | {"colour": "red"}
    (store.path / f"{written.id}.json").write_bytes(msgspec.json.encode(newer))
    found = store.load(written.id)
    assert found is not None and found.cell == written.cell


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": SCHEMA + 1}, "newer version.*update"),
        ({"schema": SCHEMA + 1, "status": "strange"}, "newer version.*update"),
        ({"schema": 0}, "older version.*run its cell again"),
        ({"schema": 0, "status": "strange"}, "older version.*run its cell again"),
        ({"status": "strange"}, "does not fit.*delete it"),
        ({"id": "another"}, "another cell.*rename or delete"),
    ],
)
def test_a_record_that_does_not_fit_says_why(
    store: Store, changes: dict[str, object], words: str
) -> None:
    written = record()
    file = store.path / f"{written.id}.json"
    file.write_bytes(msgspec.json.encode(msgspec.json.decode(encode(written)) | changes))
    with pytest.warns(StoreWarning, match=rf"{file.name}.*{words}"):
        assert store.records() == []


@pytest.mark.parametrize("changes", [{}, {"status": "strange"}])
def test_a_cell_whose_record_a_newer_version_wrote_is_refused(
    store: Store, changes: dict[str, object]
) -> None:
    written = record()
    store.save(written)
    store.save(record(1))
    store.refuse_newer([written.id, record(1).id, "unknown"])
    file = store.path / f"{written.id}.json"
    newer = msgspec.json.decode(encode(written)) | {"schema": SCHEMA + 1} | changes
    file.write_bytes(msgspec.json.encode(newer))
    with pytest.raises(StoreError, match=rf"a newer version, e.g. {file.name}.*update") as refused:
        store.refuse_newer([written.id, record(1).id])
    assert "\n" not in str(refused.value)
    store.refuse_newer([record(1).id])


def test_a_second_writer_is_refused_in_one_line_and_readers_are_not(store: Store) -> None:
    with store.locked():
        store.save(record())
        other = Store(store.path)
        assert other.load(record().id) == record()
        words = rf"in use.*process {os.getpid()}.*--store"
        with pytest.raises(StoreError, match=words) as refused, other.locked():
            pass
        assert "\n" not in str(refused.value)
    with other.locked():
        pass


def test_the_lock_of_a_dead_writer_is_free(store: Store) -> None:
    code = "import os,sys; sys.path.insert(0, sys.argv[2])\nfrom pathlib import Path\n"
    code += "from lra.store import Store\n"
    code += "with Store(Path(sys.argv[1])).locked(): os.kill(os.getpid(), 9)"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code, str(store.path), str(root)])
    assert done.returncode == -9
    with store.locked():
        pass


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_store_that_is_a_file_or_below_one_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    store = Store(tmp_path / place)
    with pytest.raises(StoreError, match=r"cannot write.*--store"), store.locked():
        pass
    with pytest.raises(StoreError, match=r"cannot read.*--store"):
        store.records()
    # A cell has no record there; that is no warning.
    assert store.load("x") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        pytest.raises(StoreError, match="permission denied"),
        Store(tmp_path / "store").locked(),
    ):
        pass


def test_a_full_disk_leaves_the_old_record_and_no_temporary_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(record())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="no space left"):
        store.save(record(points=2))
    assert store.load(record().id) == record()
    assert not list(store.path.glob("*.tmp"))


def test_an_unreadable_file_is_a_warning(store: Store) -> None:
    (store.path / "folder.json").mkdir()
    with pytest.warns(StoreWarning, match=r"folder\.json is left out: .*folder"):
        assert store.records() == []


def test_files_that_are_no_records_are_not_read(store: Store) -> None:
    (store.path / "notes.txt").write_text("x")
    (store.path / ".hidden.json").write_text("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.records() == []
