"""An input file is read whole, or refused in one line with the remedy."""

import numpy as np
import pytest

from lra.core.errors import LraError
from lra.core.vectors import read_vectors


@pytest.mark.parametrize("kind", ["float64", "float32", "int8"])
def test_real_numbers_come_back_in_float64(tmp_path, kind):
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
    "text": (b"0 1 2\n", "no .npy file"),
    "empty": (b"", "no .npy file"),
    "gone": (None, "no such file"),
}


@pytest.mark.parametrize(("content", "says"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_input_is_one_line_with_its_name(tmp_path, content, says):
    path = tmp_path / "x.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content)
    with pytest.raises(LraError, match=rf"x\.npy.*{says}") as caught:
        read_vectors(path)
    assert "\n" not in str(caught.value)


def test_a_file_of_several_arrays(tmp_path):
    np.savez(tmp_path / "several.npz", a=np.zeros((2, 3)))
    with pytest.raises(LraError, match="several arrays"):
        read_vectors(tmp_path / "several.npz")
