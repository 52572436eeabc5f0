"""The mechanisms of a stack: a cycle that repeats over its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from attention_impls.contract import Dims, Layer, MechanismConfig
from lra.core.cards import Capabilities, meet
from lra.core.errors import UsageError
from lra.models.draws import drawing, part_seed


class Member(NamedTuple):
    """One mechanism of a cycle."""

    mechanism: type[Layer]
    config: MechanismConfig

    @property
    def name(self) -> str:
        """Its mechanism's name: the stem of its file."""
        return self.mechanism.__module__.rpartition(".")[2]


class Built(NamedTuple):
    """The layers of a stack."""

    layers: Iterator[Layer]
    """Each made as it is asked for."""
    shared: list[nn.Module]
    """Modules that several of them use, each once."""


@dataclass(frozen=True)
class Layers:
    """A cycle of mechanisms: layer i has that of number i modulo its length.

    Raises `UsageError` for an empty one.
    """

    cycle: tuple[Member, ...]

    def __post_init__(self) -> None:
        """Refuse an empty cycle."""
        if not self.cycle:
            raise UsageError("a stack has no mechanism; name one or more")

    @classmethod
    def of(cls, mechanism: type[Layer], config: MechanismConfig | None = None) -> Layers:
        """Return the same mechanism in all layers; by default as its paper configures it."""
        return cls((Member(mechanism, mechanism.Config() if config is None else config),))

    @property
    def capabilities(self) -> Capabilities:
        """Requests that all of them can honour."""
        return meet([member.mechanism.card.capabilities for member in self.cycle])

    def at(self, index: int) -> Member:
        """Return the mechanism of a layer, counted from 0."""
        return self.cycle[index % len(self.cycle)]

    def build(self, dims: Dims, *, seed: int, stack: str = "") -> Built:
        """Return `dims.layers` layers; layers of one mechanism and configuration share what it
        builds for all.

        Each draws from a stream of its own, keyed by (seed, stack, index). `stack` tells the stacks
        of a model apart.
        """
        prefix = f"{stack} " if stack else ""
        members = [self.at(index) for index in range(dims.layers)]
        different: list[Member] = []
        for member in members:
            if member not in different:
                different.append(member)
        shared: list[nn.Module | None] = []
        for number, (mechanism, config) in enumerate(different):
            with drawing(seed, f"{prefix}shared {number}" if number else f"{prefix}shared"):
                shared.append(mechanism.build_shared(dims, config))

        def made() -> Iterator[Layer]:
            for index, member in enumerate(members):
                with drawing(seed, f"{prefix}mechanism {index}"):
                    layer = member.mechanism(
                        dims,
                        member.config,
                        layer_index=index,
                        shared=shared[different.index(member)],
                        seed=part_seed(seed, f"{prefix}draws {index}"),
                    )
                yield layer

        return Built(made(), [part for part in shared if part is not None])
