"""Text: classify a document read byte by byte.

The byte-level IMDB reviews of Maas et al., ACL 2011, as in Long Range Arena, Tay et al., ICLR 2021
(arXiv 2011.04006); offline, poems whose rhyme scheme is to be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import Dataset, Split, SplitName
from tasks import _preview
from tasks.contract import Part, Task, TaskConfig
from tasks.generators.counter import U64, below, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split
from tasks.generators.verses import Poetics, poems


class TextConfig(TaskConfig, frozen=True):
    """Parameters of the poems; real text has none."""

    astray_percent: Annotated[int, msgspec.Meta(ge=0, le=40)] = 10
    """Chance of a word to return in the wrong verse; most words always return in the right one."""
    both_ends: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether poems have eight verses and rhyme at both ends, so that no half of one tells its
    form; else they have four. False is left out of records."""

    def __post_init__(self) -> None:
        if self.both_ends is False:
            msgspec.structs.force_setattr(self, "both_ends", msgspec.UNSET)


class Text(Task):
    """Two-way classification of a document; tokens are its bytes + 1, cut at the length."""

    card = TaskCard(
        title="Text",
        source="IMDB, Maas et al. 2011; LRA, Tay et al. 2021 (arXiv 2011.04006)",
        classes=2,
        vocabulary=257,
        stand_in="poems: do they rhyme ABAB (1) or ABBA (0)?",
    )
    Config = TextConfig
    hub = "stanfordnlp/imdb"

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` poems; under lra2021 rules validation is test, as in the original."""
        config = cast(TextConfig, self.config)
        if self.rules == "lra2021" and split == "validation":
            split = "test"
        size = Poetics.of(
            "text", self.length, config.astray_percent, both_ends=config.both_ends is True
        )

        def draw(keys_R: U64) -> Drawn:
            forms_R = below(keys_R, _FORM, 2)
            tokens_RS, kept_RS = poems(keys_R, forms_R, size)
            return Drawn(tokens_RS[:, None], kept_RS[:, None], forms_R)

        return disjoint_split(draw, stream_key("text", config.data_seed), split, rows)

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return the form of each poem, by where its words return."""
        from tasks.solvers.verses_solver import told_form

        both_ends = cast(TextConfig, self.config).both_ends is True
        word = Poetics.of("text", self.length, 0, both_ends=both_ends).word
        return np.array([told_form(split.sequence(row), word) for row in range(len(split))])

    def parts(self, source: str) -> Sequence[Part]:
        """Return labelled text; see `tasks.sources.labelled_text` for its forms."""
        from tasks.sources.labelled_text import labelled_text_parts

        return labelled_text_parts(source, rules=self.rules, task="text")

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of looking at a part of the text, fitted on train."""
        from tasks.solvers.repeats_rule import rules

        return rules(data.train, data.test)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the document as a quoted string."""
        return _preview.text(tokens)


_FORM = 1 << 30
"""Where in a row's stream its form is drawn, past all draws of the poem."""
