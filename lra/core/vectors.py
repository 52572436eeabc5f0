"""An input of a mechanism from a file: one vector per position, as NumPy saves arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lra.core.errors import DataError, UsageError, ensure_readable
from lra.core.paths import path_kind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def read_vectors(path: Path) -> npt.NDArray[np.float64]:
    """Return the (N, D) array of a .npy file in float64.

    Raises `UsageError` where there is no file, `DataError` for a file of anything else.
    """
    import numpy as np

    with ensure_readable(f"--input '{path}'"):
        there = path_kind(path) == "file"
    if not there:
        raise UsageError(f"--input '{path}': no such file; check the path")
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"'{path}' is no .npy file; write one with numpy.save") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"'{path}' holds several arrays; save the one to look at as .npy")
    if found.ndim != 2 or 0 in found.shape or found.dtype.kind not in "fiu":
        raise DataError(
            f"'{path}' holds {found.dtype} of shape {found.shape}; save real numbers of shape "
            "(positions, features)"
        )
    finite = np.isfinite(found)
    if not finite.all():
        row = 1 + int(np.argmin(finite.all(axis=1)))
        raise DataError(f"'{path}', row {row}: not all numbers are finite; mend them")
    return found.astype(np.float64)
