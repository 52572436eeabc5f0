"""Packs are read like loose records, exactly, once, and as far as they are whole."""

import gzip
import os
import shutil
import warnings
import zlib
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from test_store import record

from lra.core.errors import StoreError
from lra.core.records import SCHEMA, encode
from lra.store import Store, StoreWarning, pack, packs

HISTORIC = Path(__file__).parents[1] / f"fixtures/records/schema-{SCHEMA}"
REFERENCE = Path(__file__).parents[2] / "results/reference"
PACK = "efficiency.jsonl.gz"


@pytest.fixture(autouse=True)
def strict():
    """No warning that a test does not ask for, each time it is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def packed(folder, number=6):
    """A store of so many records in one pack."""
    with Store(folder).locked() as store:
        for replicate in range(number):
            store.save(record(replicate))
        pack(store)
    return Store(folder)


@pytest.fixture
def store(tmp_path):
    return packed(tmp_path)


def lines(file):
    return gzip.decompress(file.read_bytes()).splitlines()


def write(file, content):
    file.write_bytes(gzip.compress(b"".join(line + b"\n" for line in content)))


def line_of(one):
    return msgspec.json.format(encode(one), indent=-1)


def changed(line, **fields):
    return msgspec.json.encode(msgspec.json.decode(line) | fields)


def no_characters(line):
    """Damage the name of a field within the cell; the record's id can still be read."""
    damaged = line.replace(b'"machine"', b'"mach\xff\xfe"', 1)
    assert damaged != line
    return damaged


def ids(store):
    return [one.id for one in store.records()]


def told(caught):
    assert all(one.category is StoreWarning for one in caught)
    return [str(one.message) for one in caught]


def test_records_of_every_kind_come_back_to_the_byte(tmp_path):
    shutil.copytree(HISTORIC, tmp_path / "store")
    store = Store(tmp_path / "store")
    before = {id: file.read_bytes() for id, file in store.loose().items()}
    read = {id: encode(found) for id in before if (found := store.load(id))}
    pack(store)
    assert store.loose() == {}
    assert {one.id: encode(one) for one in store.records()} == read
    assert [store.load(one.id) for one in store.records()] == store.records()
    again = {
        id: msgspec.json.format(line.data, indent=1).rstrip() + b"\n"
        for id, line in store.packed().lines.items()
    }
    assert again == before


def test_the_reference_is_read_alike_packed_in_few_files_a_seventh_in_size(tmp_path):
    loose = packed = 0
    for folder in sorted(REFERENCE.iterdir()):
        shutil.copytree(folder, tmp_path / folder.name)
        found = {one.id: encode(one) for one in Store(folder).records()}
        store = Store(tmp_path / folder.name)
        pack(store)
        assert {one.id: encode(one) for one in store.records()} == found
        files = store.packed().files
        assert store.loose() == {} and len(files) <= 8
        loose += sum(map(len, found.values()))
        packed += sum(file.stat().st_size for file in files)
    # A class of machine with few records may take more: hundreds of samples compress least.
    assert packed < loose / 7


def test_the_same_records_make_the_same_pack(tmp_path):
    first = packed(tmp_path / "a")
    with Store(tmp_path / "b").locked() as other:
        for replicate in reversed(range(6)):
            other.save(record(replicate))
            pack(other)
    (one,), (two,) = (store.packed().files for store in (first, other))
    assert one.name == two.name == PACK
    os.utime(two, (0, 0))
    assert one.read_bytes() == two.read_bytes()
    named = [msgspec.json.decode(line)["id"] for line in lines(one)]
    assert named == sorted(named)


def test_a_loose_record_counts_where_a_pack_has_another(store):
    newer = replace(record(2), seconds=9.0)
    store.save(newer)
    assert store.load(newer.id) == newer
    assert [one.seconds for one in store.records()].count(9.0) == 1
    assert len(store.records()) == 6
    store.packed().files[0].unlink()
    assert store.records() == [newer]


def test_a_torn_loose_record_hides_what_is_packed(store, tmp_path):
    """It is newer, and its cell is due again."""
    (tmp_path / f"{record(2).id}.json").write_bytes(b"{")
    with pytest.warns(StoreWarning, match=f"record {record(2).id}.json is left out") as caught:
        assert len(store.records()) == 5
    assert len(told(caught)) == 1
    with pytest.warns(StoreWarning):
        assert store.load(record(2).id) is None


def test_a_pack_is_read_once_for_many_records_and_again_when_it_changes(tmp_path, monkeypatch):
    store = packed(tmp_path, 20)
    read: list[Path] = []
    whole = packs.opened

    def counted(file):
        read.append(file)
        return whole(file)

    monkeypatch.setattr(packs, "opened", counted)
    assert all(store.load(record(replicate).id) for replicate in range(20))
    assert store.load(record(99).id) is None
    assert len(store.records()) == 20
    assert read == [tmp_path / PACK]
    fewer = lines(tmp_path / PACK)[1:]
    write(tmp_path / PACK, fewer)
    assert len(store.records()) == 19
    more = record(99)
    write(tmp_path / "more.jsonl.gz", [line_of(more)])
    assert store.load(more.id) == more
    (tmp_path / "more.jsonl.gz").unlink()
    assert store.load(more.id) is None


def test_what_is_packed_meanwhile_is_found(tmp_path):
    """At once, though the clock of a file system is coarse."""
    reader = Store(tmp_path)
    for replicate in range(20):
        with Store(tmp_path).locked() as writer:
            writer.save(record(replicate))
            assert reader.load(record(replicate).id) is not None
            assert reader.load("none") is None
            pack(writer)
        assert reader.load(record(replicate).id) is not None
        assert len(reader.records()) == replicate + 1


def test_a_pack_that_comes_within_one_tick_of_a_coarse_clock_is_found(tmp_path):
    store, more = packed(tmp_path), record(99)
    assert store.load(more.id) is None
    before = tmp_path.stat().st_mtime_ns
    write(tmp_path / "more.jsonl.gz", [line_of(more)])
    os.utime(tmp_path, ns=(before, before))
    assert store.load(more.id) == more


def test_a_folder_that_rests_is_listed_once(tmp_path, monkeypatch):
    store, more = packed(tmp_path), record(99)
    write(tmp_path / "more.jsonl.gz", [line_of(more)])
    os.utime(tmp_path, ns=(0, 0))
    listed: list[Path] = []
    scan = os.scandir

    def counted(folder):
        listed.append(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", counted)
    assert all(store.load(record(replicate).id) for replicate in range(6))
    assert listed == [tmp_path]
    (tmp_path / PACK).unlink()
    os.utime(tmp_path, ns=(0, 0))
    assert store.load(record().id) is None
    assert store.load(more.id) == more


def test_a_pack_that_takes_in_another_while_it_is_read_loses_nothing(store, tmp_path, monkeypatch):
    content = lines(tmp_path / PACK)
    write(tmp_path / PACK, content[:3])
    write(tmp_path / "old.jsonl.gz", content[3:])
    whole, late = packs.opened, [True]

    def taken_in(file):
        if file.name == "old.jsonl.gz" and late.pop():
            write(tmp_path / "new", content)
            (tmp_path / "new").replace(tmp_path / PACK)
            file.unlink()
        return whole(file)

    monkeypatch.setattr(packs, "opened", taken_in)
    assert len(store.records()) == 6
    assert not late


@pytest.mark.parametrize(
    ("line", "place", "says"),
    [
        (b'{"id": "0', "", "it is not JSON, perhaps cut off"),
        (b"\xff", "", "it is not JSON, perhaps cut off"),
        (b"", "", "it is not JSON, perhaps cut off"),
        (b"[1]", "", "it does not fit the schema ("),
        (b'{"id": 3}', "", "it does not fit the schema ("),
        (b'{"id": "x"}', "x ", "it does not fit the schema ("),
    ],
)
def test_a_line_that_is_no_record_is_named_and_the_others_load(store, tmp_path, line, place, says):
    content = lines(tmp_path / PACK)
    lost = msgspec.json.decode(content[2])["id"]
    content[2] = line
    write(tmp_path / PACK, content)
    with pytest.warns(StoreWarning) as caught:
        found = ids(store)
    (sentence,) = told(caught)
    assert sentence.startswith(f"record {place}in line 3 of {PACK} is left out: {says}")
    assert "\n" not in sentence
    assert len(found) == 5 and lost not in found
    assert all(store.load(id) for id in found)
    asked = "x" if b'"x"' in line else lost
    with pytest.warns(StoreWarning) as caught:
        assert store.load(asked) is None
    assert told(caught) == [sentence]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_pack_that_is_cut_off_gives_the_lines_before(share, tmp_path):
    store = Store(tmp_path)
    # Figures that hardly compress, for the cut to lie between lines.
    noise = [{"noise": os.urandom(40).hex()} for _ in range(2000)]
    made = [replace(record(n), method=method) for n, method in enumerate(noise)]
    write(tmp_path / PACK, [line_of(one) for one in made])
    whole = (tmp_path / PACK).read_bytes()
    cut = whole[: max(20, int(share * len(whole)))]
    (tmp_path / PACK).write_bytes(cut)
    before = zlib.decompressobj(wbits=31).decompress(cut).count(b"\n")
    with pytest.warns(StoreWarning) as caught:
        assert len(ids(store)) == before
    assert (before > 0) == (share > 0) and before < 2000
    (sentence,) = told(caught)
    assert f"{PACK} after line {before} " in sentence and "cut off" in sentence
    with pytest.warns(StoreWarning, match="cut off"):
        assert store.load(made[-1].id) is None


def wrong_sum(data):
    return data[:-8] + bytes([data[-8] ^ 1]) + data[-7:]


@pytest.mark.parametrize(
    ("damage", "line", "says"),
    [(wrong_sum, 6, "it is damaged"), (lambda data: b"", 0, "it is empty")],
)
def test_a_pack_whose_check_sum_is_wrong_or_that_is_empty_is_told(
    store, tmp_path, damage, line, says
):
    (tmp_path / PACK).write_bytes(damage((tmp_path / PACK).read_bytes()))
    with pytest.warns(StoreWarning, match=rf"{PACK} after line {line} .*{says}") as caught:
        assert len(ids(store)) == line
    assert len(told(caught)) == 1


def test_a_file_that_only_has_the_name_of_a_pack_is_told(store, tmp_path):
    (tmp_path / "notes.jsonl.gz").write_text("version 1")
    (tmp_path / "folder.jsonl.gz").mkdir()
    (tmp_path / ".own.jsonl.gz").write_text("x")
    with pytest.warns(StoreWarning) as caught:
        assert len(ids(store)) == 6
    first, second = told(caught)
    assert "folder.jsonl.gz after line 0" in first and "notes.jsonl.gz after line 0" in second


def test_packs_that_somebody_joined_are_read_whole(store, tmp_path):
    content = lines(tmp_path / PACK)
    halves = (content[:3], content[3:])
    joined = b"".join(gzip.compress(b"\n".join(half) + b"\n") for half in halves)
    (tmp_path / PACK).write_bytes(joined)
    assert len(ids(store)) == 6


def test_packed_records_of_another_version_give_one_line_and_are_not_overwritten(store, tmp_path):
    content = lines(tmp_path / PACK)
    newer = [changed(line, schema=SCHEMA + 1, status="new") for line in content[:3]]
    write(tmp_path / PACK, newer + content[3:])
    every = [msgspec.json.decode(line)["id"] for line in content]
    with pytest.warns(StoreWarning) as caught:
        assert ids(store) == every[3:]
    (sentence,) = told(caught)
    place = f"{every[0]} in line 1 of {PACK}"
    assert sentence.startswith(f"records {place} and 2 more ") and "newer version" in sentence
    with pytest.raises(StoreError, match=f"^.*3 cells .* {place}"):
        store.refuse_newer(every)
    store.refuse_newer(every[3:])


def test_a_closed_folder_is_refused_as_it_is_without_packs(store, monkeypatch):

    def closed(folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(StoreError, match="permission denied"):
        store.load(record(0).id)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    packed(tmp_path, 2)
    with Store(tmp_path).locked() as place:
        place.save(record(7))
    os.mkfifo(tmp_path / "quality.jsonl.gz")
    os.mkfifo(tmp_path / f"{record(8).id}.json")
    with pytest.warns(StoreWarning) as warned:
        assert len(Store(tmp_path).records()) == 3
    assert len(warned) == 2
