"""Records that earlier programs wrote: one of each kind and ending, kept as they were written.

A new field needs a default, or these stop loading, and with them the stores that people have. A
change that cannot be read so needs a new number of the schema, a folder here, and a reading of the
old one.
"""

import gzip
import shutil
import warnings
from pathlib import Path

import msgspec
import pytest

from lra.core.cells import Cell
from lra.core.records import SCHEMA, decode, encode
from lra.report.render import render
from lra.store import Store, StoreWarning

HISTORIC = Path(__file__).parents[1] / "fixtures/records"
THEN = sorted((HISTORIC / "schema-1").glob("*.json"))
NOW = sorted((HISTORIC / f"schema-{SCHEMA}").glob("*.json"))
MOVED = ("$.schema", "$.cell.measure_hash", "$.cell.declared_hash", "$.cell.mechanism.hash")
"""Places of which the content stands among the versions of the cell."""
KINDS = {kind.__struct_config__.tag for kind in Cell.__args__}


def plain(file):
    return msgspec.json.decode(file.read_bytes())


def write(folder, file, data):
    (folder / file.name).write_bytes(msgspec.json.encode(data))


def at(data, *steps):
    for step in steps:
        data = data[step]
    return data


def of_kind(files, kind):
    return next(file for file in files if plain(file)["cell"]["type"] == kind)


def loaded(file):
    """A record that its store reads without a word, and the places of its file that it lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Store(file.parent).load(file.stem)
    assert (found.id, found.schema) == (file.stem, SCHEMA) and decode(encode(found)) == found
    return found, lost(plain(file), msgspec.json.decode(encode(found)))


def lost(before, after, place="$"):
    """Where something written is not there any more; a default need not be."""
    if isinstance(before, dict):
        gone = [f"{place}.{name}" for name in before if name not in after]
        there = [(before[name], after[name], f"{place}.{name}") for name in before if name in after]
    elif isinstance(before, list):
        gone = [place] if len(before) != len(after) else []
        there = [
            (*pair, f"{place}[{n}]") for n, pair in enumerate(zip(before, after, strict=False))
        ]
    else:
        return [] if before == after else [place]
    return gone + [found for one in there for found in lost(*one)]


def test_every_schema_that_there_was_has_its_records():
    folders = {folder.name for folder in HISTORIC.iterdir() if folder.is_dir()}
    assert folders == {f"schema-{number}" for number in range(1, SCHEMA + 1)}


@pytest.mark.parametrize("file", NOW, ids=lambda file: file.stem)
def test_a_record_of_this_schema_still_loads_whole(file):
    assert loaded(file)[1] == []


def test_there_is_one_of_every_kind_and_one_that_failed():
    found = [decode(file.read_bytes()) for file in NOW]
    assert {record.cell.__struct_config__.tag for record in found} == KINDS
    assert {"ok"} < {record.status for record in found}


@pytest.mark.parametrize("file", THEN, ids=lambda file: file.stem)
def test_a_record_of_schema_1_loads_with_its_hashes_as_versions(file):
    found, places = loaded(file)
    written, versions = plain(file)["cell"], found.cell.versions
    gone = [place for place in places if place not in MOVED]
    assert gone == (["$.cell.data.hash"] if "earlier/data" in versions else [])
    assert versions["earlier/measuring"] == written["measure_hash"]
    assert versions.get("earlier/mechanism") == written.get("mechanism", {}).get("hash")


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("efficiency", ("measure_hash",)),
        ("efficiency", ("mechanism", "hash")),
        ("efficiency", ("declared_hash",)),
        ("quality", ("data", "hash")),
    ],
)
def test_records_of_schema_1_that_differ_in_a_hash_stay_different_cells(kind, place):
    record, ids = plain(of_kind(THEN, kind)), set()
    for hashed in ("0" * 20, "1" * 20):
        at(record, "cell", *place[:-1])[place[-1]] = hashed
        ids.add(decode(msgspec.json.encode(record)).cell.id)
    assert len(ids) == 2


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("cell", ["abc", ["abc"], 3, {"mechanism": "abc"}, {"data": "abc"}])
def test_a_record_of_schema_1_that_is_damaged_is_told_in_one_line(cell, packed, tmp_path):
    file, other = THEN[:2]
    data = plain(file)
    damaged = data | {"cell": data["cell"] | cell if isinstance(cell, dict) else cell}
    shutil.copy(other, tmp_path)
    if packed:
        line = msgspec.json.encode(damaged) + b"\n"
        (tmp_path / "quality.jsonl.gz").write_bytes(gzip.compress(line))
    else:
        write(tmp_path, file, damaged)
    says = f"{file.stem}.* is left out: "
    with pytest.warns(StoreWarning, match=says) as caught:
        assert [one.id for one in Store(tmp_path).records()] == [other.stem]
    (line,) = (str(one.message) for one in caught)
    assert "\n" not in line
    with pytest.warns(StoreWarning, match=says):
        assert Store(tmp_path).load(file.stem) is None


@pytest.mark.parametrize("renamed", [{}, {"seconds": "ended"}], ids=["fits", "does not fit"])
@pytest.mark.parametrize(("number", "age"), [(SCHEMA - 2, "an older"), (SCHEMA + 1, "a newer")])
def test_a_store_of_another_schema_gives_one_line_for_all_its_records(
    number, age, renamed, tmp_path
):
    for file in NOW:
        data = plain(file) | {"schema": number}
        write(tmp_path, file, data | {new: data.pop(old) for old, new in renamed.items()})
    says = f"{age} version wrote it .schema {number}, this one reads {SCHEMA}"
    with pytest.warns(StoreWarning, match=says) as caught:
        assert Store(tmp_path).records() == []
    (line,) = (str(one.message) for one in caught)
    assert line.startswith(f"records {NOW[0].name} and {len(NOW) - 1} more are left out: ")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("lacking", "says"),
    [
        (("seconds",), "missing required field `seconds`"),
        (("status",), "missing required field `status`"),
        (("cell", "machine"), r"missing required field `machine` - at `\$.cell`"),
        (("cell", "versions"), r"missing required field `versions` - at `\$.cell`"),
        (("cell", "mechanism", "name"), r"missing required field `name` - at `\$.cell.mechanism`"),
        (("cell", "type"), r"at `\$.cell`"),
    ],
)
def test_a_record_that_lacks_a_field_names_it(lacking, says, tmp_path):
    file = of_kind(NOW, "quality")
    data = plain(file)
    del at(data, *lacking[:-1])[lacking[-1]]
    write(tmp_path, file, data)
    with pytest.warns(StoreWarning, match=rf"{file.name} is left out.*{says}.*run its cell again"):
        assert Store(tmp_path).records() == []


@pytest.mark.parametrize("data", [b"[1, 2]", b"null", b"3", b'{"schema": "one"}', b"{}"])
def test_json_that_is_no_record_does_not_fit_and_is_not_called_cut_off(data, tmp_path):
    (tmp_path / "abc.json").write_bytes(data)
    with pytest.warns(StoreWarning, match=r"abc\.json is left out: it does not fit the schema"):
        assert Store(tmp_path).records() == []


def test_a_report_is_made_of_the_records_that_can_be_read(tmp_path):
    place = tmp_path / "store"
    shutil.copytree(HISTORIC / f"schema-{SCHEMA}", place)
    write(place, NOW[0], plain(NOW[0]) | {"schema": SCHEMA + 1, "status": "new"})
    with pytest.warns(StoreWarning, match="update this installation"):
        found = Store(place).records()
    assert len(found) == len(NOW) - 1
    assert render(found, [], tmp_path / "out", title="old").page.is_file()
