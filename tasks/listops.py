"""ListOps: evaluate a nested expression of list operations over digits.

Nangia and Bowman, NAACL SRW 2018 (arXiv 1804.06028), in the long form of Long Range Arena, Tay et
al., ICLR 2021 (arXiv 2011.04006): the original grammar, lengths and label distribution, made here
from a seed. Unlike the original's, the vocabulary is literal, the same in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, cast

import msgspec
import numpy as np
import numpy.typing as npt

from lra.core.cards import TaskCard
from lra.core.dataset import Dataset, Split, SplitName
from lra.core.errors import UsageError
from lra.core.protocol import Rules
from tasks.contract import Part, Task, TaskConfig
from tasks.generators import listops as trees
from tasks.generators.listops_level import OPERATORS
from tasks.generators.listops_rows import draw

TOKENS = (*"0123456789", "[MIN", "[MAX", "[MED", "[SM", "]")
"""Token i has id i + 1. Id 0 is padding; id 16, the original's out-of-vocabulary token, is never
used and only keeps the size of the original's embedding."""


class ListOpsConfig(TaskConfig, frozen=True):
    """Grammar of the generated expressions; the defaults are those of Long Range Arena."""

    max_depth: Annotated[int, msgspec.Meta(ge=1, le=64)] = 10
    """Levels of a tree; the last holds only digits."""
    min_args: Annotated[int, msgspec.Meta(ge=2)] = 2
    max_args: Annotated[int, msgspec.Meta(le=1000)] = 10
    min_length: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Expressions are longer than this many tokens; None is a quarter of the task's length (500
    of the original's 2000)."""
    max_length: Annotated[int, msgspec.Meta(ge=2)] | None = None
    """Expressions are shorter than this many tokens; None is the task's length."""
    operators: tuple[Literal["MIN", "MAX", "MED", "SM"], ...] = ("MIN", "MAX", "MED", "SM")
    p_operator: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.25
    """Probability that a node above the last level is an operator."""
    balanced: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the label is even given all operators and the root's digits (see
    `tasks.generators.listops_balanced`); the original's is not. False is left out of records."""

    def __post_init__(self) -> None:
        if self.balanced is False:
            msgspec.structs.force_setattr(self, "balanced", msgspec.UNSET)


class ListOps(Task):
    """Ten-way classification of a ListOps expression by its value."""

    card = TaskCard(
        title="ListOps",
        source="Nangia and Bowman 2018 (arXiv 1804.06028); LRA, Tay et al. 2021",
        classes=10,
        vocabulary=17,
    )
    Config = ListOpsConfig

    def __init__(self, config: TaskConfig, *, length: int, rules: Rules = "fixed") -> None:
        super().__init__(config, length=length, rules=rules)
        self.grammar = _grammar(cast(ListOpsConfig, config), length)

    def generate(self, split: SplitName, rows: int) -> Split:
        """Make `rows` expressions: distinct, none in two splits; tokens are uint8."""
        made = draw(self.grammar, split, rows, self.config.data_seed)
        return Split(made.symbols + np.uint8(1), made.starts, made.values.astype(np.int64))

    def parts(self, source: str) -> Sequence[Part]:
        """Return the LRA release's TSV or Parquet; see `tasks.sources.listops_files`."""
        from tasks.sources.listops_files import listops_parts

        return listops_parts(source, {token: index + 1 for index, token in enumerate(TOKENS)})

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        """Return the value of each expression, worked out."""
        from tasks.sources.listops_values import evaluate

        words = [token.encode() for token in TOKENS]
        rows = (split.sequence(row) for row in range(len(split)))
        return np.array([evaluate([words[token - 1] for token in tokens]) for tokens in rows])

    def rules_of_thumb(self, data: Dataset) -> dict[str, float]:
        """Return the test accuracy of rules that work out nothing nested, fitted on train."""
        from tasks.solvers.listops_rules import rules

        return rules(data.train, data.test)

    def shown(self, tokens: npt.NDArray[np.integer]) -> str:
        """Return the expression."""
        return " ".join(TOKENS[token - 1] for token in tokens)


def _grammar(config: ListOpsConfig, length: int) -> trees.Grammar:
    """The grammar at one length; refuses one that makes no expression."""
    grammar = trees.Grammar(
        max_depth=config.max_depth,
        min_args=config.min_args,
        max_args=config.max_args,
        shorter_than=length if config.max_length is None else config.max_length,
        longer_than=length // 4 if config.min_length is None else config.min_length,
        operators=tuple(OPERATORS.index(name) for name in dict.fromkeys(config.operators)),
        p_operator=config.p_operator,
        balanced=config.balanced is True,
    )
    longest = min(grammar.longest(), grammar.shorter_than - 1)
    if config.min_args > config.max_args:
        raise UsageError(
            f"listops: min_args {config.min_args} is over max_args {config.max_args}; swap them"
        )
    if not config.operators:
        raise UsageError("listops: no operators; name at least one of MIN, MAX, MED, SM")
    if grammar.shorter_than > length + 1:
        raise UsageError(
            f"listops: max_length {grammar.shorter_than} is past the length {length}; "
            f"at most {length + 1}, or a longer length"
        )
    if grammar.balanced and grammar.max_depth < 3:
        raise UsageError(
            f"listops: balanced expressions have operators under the root, and max_depth "
            f"{grammar.max_depth} leaves room for digits alone; raise it to 3 or more"
        )
    if grammar.longer_than >= longest:
        raise UsageError(
            f"listops: no expression is longer than min_length {grammar.longer_than}, the longest "
            f"has {longest} tokens; lower min_length or raise max_depth, max_args or the length"
        )
    return grammar
