"""Packs that hold one record twice: where they differ they are told, and one of them counts."""

import msgspec
import pytest
from test_packs import PACK, changed, ids, lines, no_characters, told, write
from test_packs import store as store
from test_packs import strict as strict
from test_store import record

from lra.store import StoreWarning


def test_two_packs_that_disagree_are_told_and_the_first_counts(store, tmp_path):
    content = lines(tmp_path / PACK)
    id = msgspec.json.decode(content[4])["id"]
    write(tmp_path / "older.jsonl.gz", [*content[:2], changed(content[4], seconds=7.0)])
    words = (
        f"record {id} is there twice and differs: line 5 of {PACK} counts, line 3 of "
        "older.jsonl.gz does not; take the wrong pack away"
    )
    with pytest.warns(StoreWarning) as caught:
        found = store.records()
    assert told(caught) == [words]
    assert [one.seconds for one in found] == [1.0] * 6
    with pytest.warns(StoreWarning) as caught:
        assert store.load(id).seconds == 1.0
    assert told(caught) == [words]
    assert store.load(found[0].id) == found[0]
    (tmp_path / "older.jsonl.gz").rename(tmp_path / "before.jsonl.gz")
    with pytest.warns(StoreWarning, match=r"line 3 of before\.jsonl\.gz counts, line 5 of effic"):
        assert [one.seconds for one in store.records()].count(7.0) == 1


@pytest.mark.parametrize("first", [False, True])
def test_a_twin_of_bytes_that_are_no_characters_disagrees_and_the_rest_loads(
    store, first, tmp_path
):
    content = lines(tmp_path / PACK)
    id = msgspec.json.decode(content[4])["id"]
    twin = "before.jsonl.gz" if first else "older.jsonl.gz"
    write(tmp_path / twin, [content[0], no_characters(content[4])])
    with pytest.warns(StoreWarning) as caught:
        found = ids(store)
    sentences = told(caught)
    left_out = [one for one in sentences if f"record {id} in line 2 of {twin} is left out" in one]
    assert (len(found), id in found, len(left_out)) == (6 - first, not first, first)
    (disputed,) = (one for one in sentences if one not in left_out)
    assert disputed.startswith(f"record {id} is there twice and differs: line ")
    assert not any("\n" in one for one in sentences)
    other = store.load(found[0])
    assert other is not None and other.id == found[0]


def test_two_packs_that_agree_are_no_matter_however_they_are_written(store, tmp_path):
    content = lines(tmp_path / PACK)
    turned = msgspec.json.encode(dict(reversed(msgspec.json.decode(content[3]).items())))
    assert turned != content[3]
    write(tmp_path / "copy.jsonl.gz", [content[0], turned])
    assert len(ids(store)) == 6


def test_a_loose_record_settles_what_two_packs_disagree_on(store, tmp_path):
    content = lines(tmp_path / PACK)
    write(tmp_path / "older.jsonl.gz", [changed(content[0], seconds=7.0)])
    id = msgspec.json.decode(content[0])["id"]
    settled = next(one for one in map(record, range(6)) if one.id == id)
    store.save(settled)
    assert store.load(id) == settled
    assert len(ids(store)) == 6
