"""Retrieval: tell whether two documents, each encoded by itself, belong together.

In Long Range Arena, Tay et al., ICLR 2021 (arXiv 2011.04006), pairs of papers of the ACL Anthology
Network, Radev et al. 2013, one citing the other or not; offline, pairs of poems.
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
from tasks.generators.counter import U64, below, bits, stream_key
from tasks.generators.disjoint import Drawn, disjoint_split
from tasks.generators.verses import ABAB, ABBA, Poetics, poems


class RetrievalConfig(TaskConfig, frozen=True):
    """Parameters of the pairs of poems."""

    astray_percent: Annotated[int, msgspec.Meta(ge=0, le=40)] = 10
    """Chance of a word to return in the wrong verse; most words always return in the right one."""
    both_ends: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether poems have eight verses and rhyme at both ends, so that no half of one tells its
    form; else they have four. False is left out of records."""
    lean_percent: Annotated[int, msgspec.Meta(ge=50, le=99)] = 90
    """Share of both ABAB among the training pairs that belong together, of poems of eight verses
    share of ABAB among all first ones; among validation and test pairs always half. At 50 neither
    poem alone says anything, and nothing is learned for long."""

    def __post_init__(self) -> None:
        if self.both_ends is False:
            msgspec.structs.force_setattr(self, "both_ends", msgspec.UNSET)


class Retrieval(Task):
    """Two-way classification of a pair of documents; tokens are their bytes + 1."""

    card = TaskCard(
        title="Retrieval",
        source="ACL Anthology Network, Radev et al. 2013; LRA, Tay et al. 2021 (arXiv 2011.04006)",
        classes=2,
        vocabulary=257,
        inputs=2,
        stand_in="pairs of poems: do both rhyme in the same way (1) or not (0)?",
    )
    Config = RetrievalConfig

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` pairs of poems; `length` is the longest of one poem."""
        config = cast(RetrievalConfig, self.config)
        size = Poetics.of(
            "retrieval", self.length, config.astray_percent, both_ends=config.both_ends is True
        )
        lean = config.lean_percent if split == "train" else 50

        def draw(keys_R: U64) -> Drawn:
            labels_R = below(keys_R, 0, 2)
            leaning_R = np.where(below(keys_R, 1, 100) < lean, ABAB, ABBA)
            first_R = leaning_R
            if config.both_ends is not True:
                first_R = np.where(labels_R == 1, leaning_R, below(keys_R, 2, 2))
            second_R = np.where(labels_R == 1, first_R, 1 - first_R)
            made = [
                poems(bits(keys_R, 3 + place), forms_R, size)
                for place, forms_R in enumerate((first_R, second_R))
            ]
            tokens_RIS = np.stack([tokens_RS for tokens_RS, _ in made], axis=1)
            return Drawn(tokens_RIS, np.stack([kept for _, kept in made], axis=1), labels_R)

        # From one stream a pair whose form leans would stand in training with the words and the
        # label of a pair of the test.
        own = ("train",) if config.both_ends is True and split == "train" else ()
        stream = stream_key("retrieval", config.data_seed, *own)
        return disjoint_split(draw, stream, split, rows)

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return whether both poems have one form, by where their words return."""
        from tasks.solvers.verses_solver import told_form

        both_ends = cast(RetrievalConfig, self.config).both_ends is True
        word = Poetics.of("retrieval", self.length, 0, both_ends=both_ends).word
        forms_S = np.array([told_form(split.sequence(s), word) for s in range(2 * len(split))])
        same_R: npt.NDArray[np.integer] = (forms_S[0::2] == forms_S[1::2]).astype(np.int64)
        return same_R

    def parts(self, source: str) -> Sequence[Part]:
        """Return pairs of papers; see `tasks.sources.paper_pairs` for their forms.

        The same under both rules: the original's differ in the model, not in the data.
        """
        from tasks.sources.paper_pairs import paper_pair_parts

        return paper_pair_parts(source)

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of looking at a part of both texts, fitted on train."""
        from tasks.solvers.repeats_rule import rules

        return rules(data.train, data.test)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the document as a quoted string."""
        return _preview.text(tokens)
