"""Numpy's own file form, read without unpickling anything."""

from __future__ import annotations

import io
import sys
import tokenize
from typing import Any

import numpy as np
import numpy.typing as npt

from lra.core.errors import DataError

MAGIC = b"\x93NUMPY"
"""How such a file begins."""

_DAMAGE = (
    *(ValueError, TypeError, SyntaxError, OverflowError, MemoryError),
    tokenize.TokenError,
)
"""Errors of numpy on a damaged file, whose header is a Python literal."""


def read_npy(name: str, content: bytes) -> npt.NDArray[Any]:
    """Return the array in a .npy file's bytes; `DataError` if it is damaged or one of objects."""
    try:
        array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        if array.dtype.kind == "U":
            characters = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
            if (array.reshape(-1).view(characters) > sys.maxunicode).any():
                raise ValueError("a character that is none")
    except _DAMAGE as error:
        raise DataError(
            f"'{name}' is no whole .npy file of numbers or strings; copy or download it again"
        ) from error
    return array
