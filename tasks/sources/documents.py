"""How a document becomes tokens: its bytes plus 1, so that 0 is left for padding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def document_tokens(text: bytes) -> npt.NDArray[np.uint16]:
    """Return (bytes,) token ids 1 ... 256."""
    return np.frombuffer(text, dtype=np.uint8).astype(np.uint16) + np.uint16(1)
