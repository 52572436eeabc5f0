"""Records that were changed after they were written are left out, by every reader alike."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from test_store import record

import lra
from lra.core.records import Metric, Record, encode
from lra.store import Store, StoreWarning

HISTORIC = Path(__file__).parents[1] / "fixtures/records"
FOLDERS = ("schema-1", "schema-2")
PACK = "efficiency.jsonl.gz"

Plain = dict[str, Any]
Write = Callable[[Path, list[Plain]], None]


def timed(replicate: int) -> Record:
    latency = Metric(value=2.0, unit="s", samples=(1.0, 2.0, 3.0), minimum=1.0, q1=1.5, q3=2.5)
    return replace(record(replicate), metrics={"latency": latency, "share": Metric.share(0.75)})


def loose(folder: Path, records: list[Plain]) -> None:
    for one in records:
        (folder / f"{one['id']}.json").write_text(json.dumps(one, indent=3))


def packed(folder: Path, records: list[Plain]) -> None:
    lines = [json.dumps(one, separators=(",", ":")) for one in records]
    (folder / PACK).write_bytes(gzip.compress("\n".join(lines).encode()))


def at(plain: Plain, place: str, value: object) -> None:
    *way, last = place.split(".")
    for step in way:
        plain = plain[step]
    plain[last] = value


WRONG = {
    "cell.length": 16,
    "cell.mechanism.name": "other",
    "cell.versions": {"train": 2},
    "metrics.share.value": 7.5,
    "metrics.latency.value": -2.0,
    "metrics.latency.samples": [1.0, -2.0, 3.0],
    "metrics.latency.q1": 2.25,
    "seconds": -1.0,
}


@pytest.mark.parametrize("write", [loose, packed])
@pytest.mark.parametrize("place", WRONG)
def test_a_changed_record_is_left_out_in_one_line_and_the_others_load(
    place: str, write: Write, tmp_path: Path
) -> None:
    plain: list[Plain] = [json.loads(encode(timed(n))) for n in range(3)]
    write(tmp_path, plain)
    whole = {one["id"] for one in plain}
    assert {one.id for one in Store(tmp_path).records()} == whole
    changed = plain[1]["id"]
    at(plain[1], place, WRONG[place])
    write(tmp_path, plain)
    with pytest.warns(
        StoreWarning, match=f"record {changed}.* is left out: .*run its cell"
    ) as told:
        found = Store(tmp_path).records()
    assert {one.id for one in found} == whole - {changed}
    (line,) = (str(one.message) for one in told)
    assert "\n" not in line
    with pytest.warns(StoreWarning, match=changed):
        assert Store(tmp_path).load(changed) is None
    with pytest.warns(StoreWarning, match=changed):
        assert set(lra.load(tmp_path)["record"]) == whole - {changed}


@pytest.mark.parametrize("write", [loose, packed])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_cell_of_any_schema_is_held_against_its_id_as_it_was_written(
    folder: str, write: Write, tmp_path: Path
) -> None:
    files = sorted((HISTORIC / folder).glob("*.json"))
    plain: list[Plain] = [json.loads(file.read_text()) for file in files]
    write(tmp_path, plain)
    whole = {file.stem for file in files}
    assert {one.id for one in Store(tmp_path).records()} == whole
    changed = plain[0]["id"]
    plain[0]["cell"]["torch"] += "!"
    write(tmp_path, plain)
    with pytest.warns(StoreWarning, match=f"record {changed}.* is left out: "):
        assert {one.id for one in Store(tmp_path).records()} == whole - {changed}


@pytest.mark.parametrize("write", [loose, packed])
def test_a_field_that_a_later_version_gives_a_cell_is_part_of_its_hash(
    write: Write, tmp_path: Path
) -> None:
    from lra.core.hashing import value_hash

    plain: Plain = json.loads(encode(timed(0)))
    # As before a field of today was there: its default is filled in, and the id is the old one.
    del plain["cell"]["replicate"]
    plain["id"] = value_hash(plain["cell"])
    write(tmp_path, [plain])
    (found,) = Store(tmp_path).records()
    assert found.id == plain["id"] != found.cell.id
