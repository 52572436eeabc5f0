"""A batch of CIFAR-10's Python version, unpickled without running anything that it may name."""

from __future__ import annotations

import io
import pickle
from functools import cache
from typing import Any

import numpy as np

from lra.core.errors import DataError


def unpickled(name: str, content: bytes) -> dict[str, Any]:
    """Return the dictionary in a pickle of arrays, bytes, texts, numbers, lists and dictionaries.

    Keys come as texts, whether Python 2 or 3 wrote them. Raises `DataError` where the pickle names
    anything else, is damaged, or is no dictionary.
    """
    try:
        found = _Batches(io.BytesIO(content), encoding="bytes").load()
    except _NamedError as error:
        raise DataError(
            f"'{name}' is a pickle that names {error}, which a batch of pictures needs not; "
            f"nothing was run: download the official archive again"
        ) from error
    # A damaged pickle may raise anything.
    except Exception as error:
        raise DataError(f"'{name}' is no whole pickle; copy or download it again") from error
    if not isinstance(found, dict):
        raise DataError(f"'{name}' is a pickle without 'data' and 'labels'; give a batch's file")
    return {_text(key): value for key, value in found.items()}


class _NamedError(Exception):
    """A name that a pickle asks for and is not given."""


class _Batches(pickle.Unpickler):
    """Gives a pickle five names, and none of those that it may call means to run code."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return what stands for the name here."""
        place = module_name.replace("numpy._core", "numpy.core"), global_name
        if place not in _given():
            raise _NamedError(repr(f"{module_name}.{global_name}"[:80]))
        return _given()[place]


def _text(value: object) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def _dtype(code: object, align: object = False, copy: object = False) -> np.dtype[Any]:
    """A plain dtype; Python 2 wrote the flags as 0 and 1."""
    made: np.dtype[Any] = np.dtype(_text(code))
    if made.hasobject:
        raise _NamedError("an array of objects")
    return made


def _latin1(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes for Python 2."""
    if encoding not in ("latin1", "latin-1"):
        raise _NamedError(f"the encoding {encoding!r}"[:80])
    return text.encode("latin-1")


@cache
def _given() -> dict[tuple[str, str], Any]:
    """The stand-in for each name that a pickle may use; the reducers are numpy's own."""
    sample = np.zeros(1, np.uint8)
    return {
        ("numpy.core.multiarray", "_reconstruct"): sample.__reduce__()[0],
        ("numpy.core.numeric", "_frombuffer"): sample.__reduce_ex__(5)[0],
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): _dtype,
        ("_codecs", "encode"): _latin1,
    }
