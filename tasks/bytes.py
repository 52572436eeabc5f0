"""Bytes: tell each byte of a text from those before it, in bits per byte.

Byte-level language modelling, as of enwik8 (Mahoney 2006; Al-Rfou et al., "Character-Level Language
Modeling with Deeper Self-Attention", AAAI 2019, arXiv 1808.04444), on any text at hand; offline, on
ledgers, whose grammar's own cost is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import Dataset, Split, SplitName
from tasks import _preview
from tasks.contract import Part, Task, TaskConfig
from tasks.generators.counter import U64, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split
from tasks.generators.ledger import documents


class BytesConfig(TaskConfig, frozen=True):
    """Neither real text nor the ledgers have parameters."""


class Bytes(Task):
    """Tokens are bytes, 0 ... 255; the label of each is the byte after it."""

    card = TaskCard(
        title="Bytes",
        source="byte-level language modelling, as of enwik8 (Mahoney 2006; arXiv 1808.04444)",
        classes=256,
        vocabulary=256,
        asks="token",
        answers_first=0,
        metric="bits_per_byte",
        stand_in="ledgers: names given values and asked for them, and nested brackets",
    )
    Config = BytesConfig
    cuttable = False

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` ledgers as long as the length; tokens are uint8."""
        stream = stream_key("bytes", self.config.data_seed)
        return disjoint_split(self._draw, stream, split, rows)

    def parts(self, source: str) -> Sequence[Part]:
        """Return the texts of a file or folder; see `tasks.sources.plain_text` for their forms."""
        from tasks.sources.plain_text import text_parts

        return text_parts(source, self.length)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the text as a quoted string."""
        return _preview.text(tokens.astype(np.uint16) + np.uint16(1))

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the bits per byte of a general compressor on the test split."""
        import lzma

        test = data.test.tokens.astype(np.uint8)
        packed = len(lzma.compress(test.tobytes(), preset=9 | lzma.PRESET_EXTREME))
        return {"xz": 8 * packed / len(test)}

    def floor(self, data: Dataset) -> float | None:
        """Return the bits per byte that a ledger's grammar pays on the test split; None where the
        text is none of it."""
        from tasks.generators.ledger import SYMBOLS
        from tasks.solvers.ledger_floor import surprise

        test = data.test.tokens.astype(np.uint8)
        if not np.isin(test, list(SYMBOLS)).all() or (data.test.lengths != self.length).any():
            return None
        paid_RN = surprise(test.reshape(-1, self.length))
        # The first byte of a window is not asked for, the one after its last is.
        return float(paid_RN[:, 1:].mean()) if np.isfinite(paid_RN).all() else None

    def _draw(self, keys_R: U64) -> Drawn:
        texts_RN = documents(keys_R, self.length + 1)
        tokens_RIN = texts_RN[:, None, :-1]
        labels_RIN = texts_RN[:, None, 1:].astype(np.int16)
        return Drawn(tokens_RIN, np.ones(tokens_RIN.shape, dtype=np.bool_), labels_RIN)
