"""Records that were changed after they were written are left out, by every reader alike."""

import gzip
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_store import record

import lra
from lra.core.hashing import value_hash
from lra.core.records import Metric, encode
from lra.store import Store, StoreWarning

HISTORIC = Path(__file__).parents[1] / "fixtures/records"


def timed(replicate):
    """A record as plain values."""
    latency = Metric(value=2.0, unit="s", samples=(1.0, 2.0, 3.0), minimum=1.0, q1=1.5, q3=2.5)
    metrics = {"latency": latency, "share": Metric.share(0.75)}
    return json.loads(encode(replace(record(replicate), metrics=metrics)))


def loose(folder, records):
    for one in records:
        (folder / f"{one['id']}.json").write_text(json.dumps(one, indent=3))


def packed(folder, records):
    lines = [json.dumps(one, separators=(",", ":")) for one in records]
    content = gzip.compress("\n".join(lines).encode())
    (folder / "efficiency.jsonl.gz").write_bytes(content)


def ids(folder):
    return {one.id for one in Store(folder).records()}


@pytest.fixture(params=[loose, packed])
def left_out(request, tmp_path):
    """A change of one of several records leaves it out in one line, and the others load."""

    def check(plain, change):
        whole = {one["id"] for one in plain}
        request.param(tmp_path, plain)
        assert ids(tmp_path) == whole
        shown = set(lra.load(tmp_path)["record"])
        changed = plain[1]["id"]
        change(plain[1])
        request.param(tmp_path, plain)
        says = f"record {changed}.* is left out: .*run its cell"
        with pytest.warns(StoreWarning, match=says) as caught:
            assert ids(tmp_path) == whole - {changed}
        (line,) = (str(one.message) for one in caught)
        assert "\n" not in line
        with pytest.warns(StoreWarning, match=changed):
            assert Store(tmp_path).load(changed) is None
        with pytest.warns(StoreWarning, match=changed):
            assert set(lra.load(tmp_path)["record"]) == shown - {changed}

    return check


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("cell.length", 16),
        ("cell.mechanism.name", "other"),
        ("cell.versions", {"train": 2}),
        ("metrics.share.value", 7.5),
        ("metrics.latency.value", -2.0),
        ("metrics.latency.samples", [1.0, -2.0, 3.0]),
        ("metrics.latency.q1", 2.25),
        ("seconds", -1.0),
    ],
)
def test_a_changed_record_is_left_out_in_one_line_and_the_others_load(place, value, left_out):
    def change(plain):
        *way, last = place.split(".")
        for step in way:
            plain = plain[step]
        plain[last] = value

    left_out([timed(n) for n in range(3)], change)


@pytest.mark.parametrize("schema", ["schema-1", "schema-2"])
def test_a_cell_of_any_schema_is_held_against_its_id_as_it_was_written(schema, left_out):
    plain = [json.loads(file.read_text()) for file in sorted((HISTORIC / schema).glob("*.json"))]
    left_out(plain, lambda one: one["cell"].update(torch="another"))


@pytest.mark.parametrize("write", [loose, packed])
def test_a_field_that_a_later_version_gives_a_cell_is_part_of_its_hash(write, tmp_path):
    plain = timed(0)
    # As before a field of today was there: its default is filled in, and the id is the old one.
    del plain["cell"]["replicate"]
    plain["id"] = value_hash(plain["cell"])
    write(tmp_path, [plain])
    (found,) = Store(tmp_path).records()
    assert found.id == plain["id"] != found.cell.id


@pytest.mark.parametrize("write", [loose, packed])
def test_a_record_that_is_nested_without_end_is_left_out(write, tmp_path):
    whole, nested = timed(0), timed(1)
    write(tmp_path, [whole, nested | {"method": "HERE"}])
    deep = b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.compress(gzip.decompress(content).replace(b'"HERE"', deep))
        file.write_bytes(content.replace(b'"HERE"', deep))
    with pytest.warns(StoreWarning, match="left out"):
        assert ids(tmp_path) == {whole["id"]}
