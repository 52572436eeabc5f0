"""An input file is read whole, or refused in one line with the remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lra.core.errors import LraError
from lra.core.vectors import read_vectors


@pytest.mark.parametrize("kind", ["float64", "float32", "int8"])
def test_real_numbers_come_back_in_float64(tmp_path: Path, kind: str) -> None:
    numbers = np.arange(6).reshape(2, 3).astype(kind)
    np.save(tmp_path / "x.npy", numbers)
    found = read_vectors(tmp_path / "x.npy")
    assert found.dtype == np.float64 and (found == numbers).all()


BROKEN = {
    "one row": (np.zeros(3), "shape"),
    "none": (np.zeros((0, 3)), "shape"),
    "three axes": (np.zeros((1, 2, 3)), "shape"),
    "complex": (np.zeros((2, 3), complex), "complex128"),
    "words": (np.full((2, 3), "a"), "<U1"),
    "truths": (np.ones((2, 3), bool), "bool"),
    "not finite": (np.array([[0.0], [np.inf]]), "row 2"),
    "objects": (np.array([[None]]), "no .npy file"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_input_is_one_line_with_its_file(tmp_path: Path, what: str) -> None:
    array, told = BROKEN[what]
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(LraError, match=r"x\.npy") as caught:
        read_vectors(tmp_path / "x.npy")
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "several.npz", a=np.zeros((2, 3)))
    (tmp_path / "text.npy").write_text("0 1 2\n")
    (tmp_path / "empty.npy").write_bytes(b"")
    for name, told in {
        "several.npz": "several arrays",
        "text.npy": "no .npy file",
        "empty.npy": "no .npy file",
        "gone.npy": "no such file",
    }.items():
        with pytest.raises(LraError, match=told):
            read_vectors(tmp_path / name)
