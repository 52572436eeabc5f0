"""Records that earlier programs wrote: one of each kind and ending, kept as they were written.

A new field needs a default, or these stop loading, and with them the stores that people have. A
change that cannot be read so needs a new number of the schema, a folder here, and a reading of the
old one.
"""

from __future__ import annotations

import gzip
import shutil
import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lra.core.cells import Cell
from lra.core.records import SCHEMA, Record, decode, encode
from lra.report.render import render
from lra.store import Store, StoreWarning

HISTORIC = Path(__file__).parents[1] / "fixtures/records"
THEN = sorted((HISTORIC / "schema-1").glob("*.json"))
MOVED = ("$.schema", "$.cell.measure_hash", "$.cell.declared_hash", "$.cell.mechanism.hash")
"""Places of which the content stands among the versions of the cell."""
NOW = sorted((HISTORIC / f"schema-{SCHEMA}").glob("*.json"))
KINDS = {kind.__struct_config__.tag for kind in Cell.__args__}


def test_every_schema_that_there_was_has_its_records() -> None:
    assert {folder.name for folder in HISTORIC.iterdir() if folder.is_dir()} == {
        f"schema-{number}" for number in range(1, SCHEMA + 1)
    }


@pytest.mark.parametrize("file", NOW, ids=lambda file: file.stem)
def test_a_record_of_this_schema_still_loads_whole(file: Path) -> None:
    written = msgspec.json.decode(file.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Store(file.parent).load(file.stem)
    assert found is not None and found.id == file.stem
    again = msgspec.json.decode(encode(found))
    assert _lost(written, again) == []


def test_there_is_one_of_every_kind_and_one_that_failed() -> None:
    found = [decode(file.read_bytes()) for file in NOW]
    assert {record.cell.__struct_config__.tag for record in found} == KINDS
    assert {"ok"} < {record.status for record in found}


@pytest.mark.parametrize("file", THEN, ids=lambda file: file.stem)
def test_a_record_of_schema_1_loads_with_its_hashes_as_versions(file: Path) -> None:
    written = msgspec.json.decode(file.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Store(file.parent).load(file.stem)
    assert found is not None and (found.id, found.schema) == (file.stem, SCHEMA)
    again = msgspec.json.decode(encode(found))
    lost = [place for place in _lost(written, again) if place not in MOVED]
    assert lost == (["$.cell.data.hash"] if "earlier/data" in found.cell.versions else [])
    assert found.cell.versions["earlier/measuring"] == written["cell"]["measure_hash"]
    own = written["cell"].get("mechanism", {}).get("hash")
    assert found.cell.versions.get("earlier/mechanism") == own
    assert decode(encode(found)) == found


@pytest.mark.parametrize(
    "place", [("measure_hash",), ("mechanism", "hash"), ("declared_hash",), ("data", "hash")]
)
def test_records_of_schema_1_that_differ_in_a_hash_stay_different_cells(
    place: tuple[str, ...],
) -> None:
    kind = "quality" if "data" in place else "efficiency"
    read = (msgspec.json.decode(file.read_bytes()) for file in THEN)
    record = next(one for one in read if one["cell"]["type"] == kind)
    part, ids = record["cell"], set()
    for name in place[:-1]:
        part = part[name]
    for hashed in ("0" * 20, "1" * 20):
        part[place[-1]] = hashed
        ids.add(decode(msgspec.json.encode(record)).cell.id)
    assert len(ids) == 2


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"cell": "abc"},
        {"cell": ["abc"]},
        {"cell": 3},
        {"cell": {"mechanism": "abc"}},
        {"cell": {"data": "abc"}},
    ],
    ids=str,
)
def test_a_record_of_schema_1_that_is_damaged_is_told_in_one_line(
    wrong: dict[str, Any], packed: bool, tmp_path: Path
) -> None:
    file, other = THEN[:2]
    data = msgspec.json.decode(file.read_bytes())
    cell = wrong["cell"]
    damaged = msgspec.json.encode(
        {**data, "cell": {**data["cell"], **cell} if isinstance(cell, dict) else cell}
    )
    shutil.copy(other, tmp_path)
    if packed:
        (tmp_path / "quality.jsonl.gz").write_bytes(gzip.compress(damaged + b"\n"))
    else:
        (tmp_path / file.name).write_bytes(damaged)
    with pytest.warns(StoreWarning, match=f"{file.stem}.* is left out: ") as told:
        assert [one.id for one in Store(tmp_path).records()] == [other.stem]
    (line,) = (str(one.message) for one in told)
    assert "\n" not in line
    with pytest.warns(StoreWarning, match=f"{file.stem}.* is left out: "):
        assert Store(tmp_path).load(file.stem) is None


@pytest.mark.parametrize("renamed", [{}, {"seconds": "ended"}], ids=["fits", "does not fit"])
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (SCHEMA - 2, f"an older version wrote it .schema {SCHEMA - 2}, this one reads {SCHEMA}"),
        (SCHEMA + 1, f"a newer version wrote it .schema {SCHEMA + 1}, this one reads {SCHEMA}"),
    ],
)
def test_a_store_of_another_schema_gives_one_line_for_all_its_records(
    number: int, words: str, renamed: dict[str, str], tmp_path: Path
) -> None:
    for file in NOW:
        data = msgspec.json.decode(file.read_bytes()) | {"schema": number}
        data |= {new: data.pop(old) for old, new in renamed.items()}
        (tmp_path / file.name).write_bytes(msgspec.json.encode(data))
    with pytest.warns(StoreWarning, match=words) as told:
        assert Store(tmp_path).records() == []
    (line,) = (str(one.message) for one in told)
    assert line.startswith(f"records {NOW[0].name} and {len(NOW) - 1} more are left out: ")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("lacking", "place"),
    [
        (("seconds",), "missing required field `seconds`"),
        (("status",), "missing required field `status`"),
        (("cell", "machine"), r"missing required field `machine` - at `\$.cell`"),
        (("cell", "versions"), r"missing required field `versions` - at `\$.cell`"),
        (("cell", "mechanism", "name"), r"missing required field `name` - at `\$.cell.mechanism`"),
        (("cell", "type"), r"at `\$.cell`"),
    ],
)
def test_a_record_that_lacks_a_field_names_it(
    lacking: tuple[str, ...], place: str, tmp_path: Path
) -> None:
    file = next(f for f in NOW if decode(f.read_bytes()).cell.__struct_config__.tag == "quality")
    data: dict[str, Any] = msgspec.json.decode(file.read_bytes())
    part = data
    for name in lacking[:-1]:
        part = part[name]
    del part[lacking[-1]]
    (tmp_path / file.name).write_bytes(msgspec.json.encode(data))
    with pytest.warns(StoreWarning, match=rf"{file.name} is left out.*{place}.*run its cell again"):
        assert Store(tmp_path).records() == []


@pytest.mark.parametrize("data", [b"[1, 2]", b"null", b"3", b'{"schema": "one"}', b"{}"])
def test_json_that_is_no_record_does_not_fit_and_is_not_called_cut_off(
    data: bytes, tmp_path: Path
) -> None:
    (tmp_path / "abc.json").write_bytes(data)
    with pytest.warns(StoreWarning, match=r"abc\.json is left out: it does not fit the schema"):
        assert Store(tmp_path).records() == []


def test_a_report_is_made_of_what_can_be_read(tmp_path: Path) -> None:
    place = tmp_path / "store"
    shutil.copytree(HISTORIC / f"schema-{SCHEMA}", place)
    other = msgspec.json.decode(NOW[0].read_bytes()) | {"schema": SCHEMA + 1, "status": "new"}
    (place / NOW[0].name).write_bytes(msgspec.json.encode(other))
    with pytest.warns(StoreWarning, match="update this installation"):
        found: list[Record] = Store(place).records()
    assert len(found) == len(NOW) - 1
    assert render(found, [], tmp_path / "out", title="old").page.is_file()


def _lost(before: Any, after: Any, place: str = "$") -> list[str]:
    """Where something written is not there any more; what stands at its default need not be."""
    if isinstance(before, dict):
        return [
            lost
            for name, value in before.items()
            for lost in (
                [f"{place}.{name}"]
                if name not in after
                else _lost(value, after[name], f"{place}.{name}")
            )
        ]
    if isinstance(before, list):
        if len(before) != len(after):
            return [place]
        return [
            lost
            for n, pair in enumerate(zip(before, after, strict=True))
            for lost in _lost(*pair, f"{place}[{n}]")
        ]
    return [] if before == after else [place]
