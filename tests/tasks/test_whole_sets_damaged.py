"""Prepared sets that are torn, cut or changed are said to be so, by every reader of them."""

import pytest
from review_sets import hashed, opened, prepare, text, write_reviews
from set_reader import refused

from tasks.sources.tables import document_tokens


@pytest.fixture
def reviews(tmp_path):
    return write_reviews(tmp_path)


@pytest.fixture
def folder(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    assert hashed(tmp_path / "set") == hashed(tmp_path / "set")
    return tmp_path / "set"


def flipped(place):
    """Flip a bit at a place of a content, or of its middle."""

    def damage(content):
        at = content.index(place) if place else len(content) // 2
        return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]

    return damage


WORDS = document_tokens(b"Film 7").tobytes()


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("train.arrow", None, "set': train.arrow is missing or unreadable"),
        ("train.arrow", flipped(WORDS), "set': train.arrow does not hold what was written"),
        ("test.arrow", flipped(b""), "set': test.arrow does not hold what was written"),
        ("test.arrow", lambda held: held[:-8], r"set': test.arrow has \d+ of \d+ bytes"),
        ("facts.json", lambda held: b"{", "set' is no whole .*: facts.json is missing or unreada"),
        (
            "facts.json",
            lambda held: held.replace(b"fixed", b"fi\xffed"),
            "set' is no whole .*: facts.json is missing or unreadable",
        ),
    ],
)
def test_damage_is_met_by_whoever_hashes_prepares_or_opens_a_set(
    reviews, folder, tmp_path, name, damage, says
):
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(content))
    refused(says, hashed, folder)
    refused(says, prepare, reviews, folder)
    refused(says, opened, folder, tmp_path / "cache", text())


def test_a_set_without_its_facts_is_called_one(folder):
    (folder / "facts.json").unlink()
    refused(r"^prepared set '.*set': facts.json is missing", hashed, folder)
