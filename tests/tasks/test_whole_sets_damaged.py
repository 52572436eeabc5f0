"""Prepared sets that are torn, cut or changed are said to be so, by whatever meets them."""

import pytest
from review_sets import hashed, opened, prepare, text, write_reviews

from lra.core.errors import DataError
from tasks.sources.documents import document_tokens


@pytest.fixture
def reviews(tmp_path):
    return write_reviews(tmp_path)


def test_a_torn_set_is_not_taken_for_whole(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    (tmp_path / "set" / "train.arrow").unlink()
    with pytest.raises(DataError, match=r"train.arrow is missing or unreadable; delete this"):
        prepare(reviews, tmp_path / "set")


def test_what_was_prepared_and_damaged_since_is_not_called_prepared(reviews, tmp_path):
    folder = tmp_path / "set"
    prepare(reviews, folder)
    path = folder / "test.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"test.arrow does not hold what was written; delete"):
        prepare(reviews, folder)


def test_a_set_without_its_facts_is_called_one(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    (tmp_path / "set" / "facts.json").unlink()
    with pytest.raises(DataError, match=r"^prepared set '.*set': facts.json is missing; delete"):
        hashed(tmp_path / "set")


def test_damage_is_found_where_a_size_is_wrong(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    file = tmp_path / "set" / "test.arrow"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"set': test.arrow has \d+ of \d+ bytes; delete"):
        opened(tmp_path / "set", tmp_path / "cache", text())
    (tmp_path / "set" / "facts.json").write_text("{")
    with pytest.raises(DataError, match=r"set' is no whole prepared set: facts.json is missing"):
        hashed(tmp_path / "set")


def test_facts_that_are_no_text(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    path = tmp_path / "set" / "facts.json"
    path.write_bytes(path.read_bytes().replace(b"fixed", b"fi\xffed"))
    for ask in (lambda: hashed(tmp_path / "set"), lambda: prepare(reviews, tmp_path / "set")):
        with pytest.raises(DataError, match=r"facts.json is missing or unreadable; delete the fol"):
            ask()


def test_a_set_of_which_one_bit_changed_is_used_by_no_run(reviews, tmp_path):
    folder = tmp_path / "set"
    prepare(reviews, folder)
    assert hashed(folder) == hashed(folder)
    file = folder / "train.arrow"
    content = bytearray(file.read_bytes())
    content[content.index(document_tokens(b"Film 7").tobytes())] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"set': train.arrow does not hold what was written; del"):
        hashed(folder)
    file.unlink()
    with pytest.raises(DataError, match=r"train.arrow is missing or unreadable"):
        hashed(folder)
