"""The reference as it is committed: packed, small, and all of it readable."""

import warnings
from pathlib import Path

from lra.store import Store
from lra.store.packs import is_pack

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
MOST_BYTES = 4_000_000
LEAST_RECORDS = 2_643
"""That there were when stores were packed first; none of them was lost since."""


def test_the_reference_is_a_few_small_packs_without_a_fault():
    files = [file for file in REFERENCE.rglob("[!.]*") if file.is_file()]
    assert all(is_pack(file.name) for file in files)
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for place in REFERENCE.iterdir():
            records += Store(place).records()
    assert len({record.id for record in records}) == len(records) >= LEAST_RECORDS
