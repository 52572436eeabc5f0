"""Generated data is the same on every machine: a digest that moves changes a data set for all."""

import hashlib

import numpy as np
import pytest

from tasks.copy import Copy
from tasks.image import Image
from tasks.listops import ListOps
from tasks.lookup import Lookup
from tasks.pathfinder import Pathfinder
from tasks.query_span import QuerySpan
from tasks.retrieval import Retrieval
from tasks.reverse import Reverse
from tasks.summary import Summary
from tasks.text import Text

FIVE_SHAPES = {"shapes": 5, "smallest_percent": 70}
SHORT = {"max_depth": 4, "max_args": 5, "min_length": 7, "max_length": 33}
PAIRS = {"queries": 6, "keys": 32, "values": 32}
OF_BYTES = (Image, ListOps, Pathfinder)
PINNED = [
    (Image, FIVE_SHAPES, 100, "train", 200, "5775f0051981fe46"),
    (ListOps, {}, 2000, "train", 50, "9e781bba269f8606"),
    (ListOps, SHORT, 32, "test", 200, "dbf620bf954dcb14"),
    (Retrieval, {}, 64, "test", 200, "81794d62f9a77756"),
    (Text, {}, 128, "train", 200, "c084af318890e9b3"),
    (Pathfinder, {}, 8**2, "train", 400, "5862e36e46c855fa"),
    (Pathfinder, {}, 8**2, "test", 100, "cf3d6d0ba7618ec7"),
    (Pathfinder, {}, 12**2, "train", 100, "a223b5dc5395caff"),
    (Pathfinder, {}, 32**2, "train", 40, "dcfc14882f870756"),
    (Pathfinder, {}, 32**2, "validation", 10, "51f43683c29a4fb3"),
    (Pathfinder, {}, 128**2, "train", 3, "8bd2b8932d505f9c"),
    (Copy, {}, 12, "train", 200, "4113a5479c917aab"),
    (Copy, {"ragged": True}, 12, "test", 100, "711661ce7a39df2b"),
    (Reverse, {"ragged": True}, 12, "validation", 100, "feb03328a77f8ee8"),
    (Lookup, PAIRS, 12, "train", 200, "2d931f9cdcd57bbe"),
    (Lookup, {**PAIRS, "apart": True}, 24, "test", 100, "6b132260da45f2da"),
    (QuerySpan, {}, 256, "train", 200, "060c8cbf9219f18c"),
    (QuerySpan, {"parts": 5, "letters": 3}, 1000, "test", 100, "aec5a7cac53bb6e9"),
    (Summary, {"sentence_words": 4}, 24, "train", 200, "4151a42f7c996d2d"),
    (Summary, {"sentence_words": 4, "ragged": True}, 25, "test", 100, "8d5f615d17bb0c76"),
]


@pytest.mark.parametrize(("kind", "config", "length", "split", "rows", "digest"), PINNED)
def test_bytes_are_the_same_on_every_machine(kind, config, length, split, rows, digest):
    made = kind(kind.Config(**config), length=length).generate(split, rows)
    assert made.tokens.dtype == (np.uint8 if kind in OF_BYTES else np.uint16)
    content = b"".join(array.tobytes() for array in (made.tokens, made.starts, made.labels))
    assert hashlib.sha256(content).hexdigest()[:16] == digest
