"""Faults of places that are given: whose they are, who is told of them, and what they decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Heads, Out, position_ids
from verify.faults.dense import Dense, card


class Placed(Dense):
    """Takes places for queries and keys; nothing is wrong with it."""

    card = card(
        capabilities=msgspec.structs.replace(Dense.card.capabilities, positions_by_index=True)
    )

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        if context.position is None or context.position.card.acts_on != "logits":
            return torch.zeros((), dtype=q.dtype)
        rows, columns = self.places(context, q.shape[2], k.shape[2])
        found = context.position.logits(rows, columns)
        assert found is not None
        return found.to(q.dtype)

    def places(self, context: Context, n: int, m: int) -> tuple[Tensor, Tensor]:
        return position_ids(n, m, context, None, torch.device("cpu"))


class KeysByTheirIndex(Placed, law="positions_by_index", stranger=""):
    """Queries are turned by their places, keys by their index."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        return super().project(x, replace(context, source_positions_BM=None), source, state)


class PlacesOfTheFirstExample(Placed, law="positions_by_index", stranger=""):
    """Places are taken to be one row for the whole batch."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        rows, columns = context.positions_BN, context.source_positions_BM
        if rows is not None:
            context = replace(context, positions_BN=rows[:1].expand_as(rows))
        if columns is not None:
            context = replace(context, source_positions_BM=columns[:1].expand_as(columns))
        return super().project(x, context, source, state)


class BiasByTheIndex(Placed, law="positions_by_index", stranger=""):
    """The bias is made where nobody knows of places."""

    def places(self, context: Context, n: int, m: int) -> tuple[Tensor, Tensor]:
        plain = replace(context, positions_BN=None, source_positions_BM=None)
        return super().places(plain, n, m)


class PlacesAsOffsets(Placed, law="positions_by_index", stranger=""):
    """Places are added to the index, as the length of a cache would be."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        rows, columns = context.positions_BN, context.source_positions_BM
        if rows is not None:
            context = replace(context, positions_BN=rows + torch.arange(rows.shape[1]))
        if columns is not None:
            columns = columns + torch.arange(columns.shape[1])
            context = replace(context, source_positions_BM=columns)
        return super().project(x, context, source, state)


class PlacesCutAtTheLength(Placed, law="positions_by_index", stranger=""):
    """A table of as many rows as the input is long serves all larger places by its last."""

    def places(self, context: Context, n: int, m: int) -> tuple[Tensor, Tensor]:
        rows, columns = super().places(context, n, m)
        return rows.clamp(max=max(n, m) - 1), columns.clamp(max=m - 1)


class CausalByPlace(Placed, law="positions_by_index", stranger=""):
    """A query sees the keys of lower places, wherever in the row they stand."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        rows, columns = context.positions_BN, context.source_positions_BM
        if rows is None or columns is None or not context.causal:
            return super().read(q, k, v, context)
        if columns.shape[1] != k.shape[2]:  # a state remembers none
            return super().read(q, k, v, context)
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, False, context.key_mask_BM)
        seen = columns.unsqueeze(1) <= rows.unsqueeze(2)
        return self.dropped(self.weights(logits, permitted & seen.unsqueeze(1))) @ v


class PlacesOfTheQueriesAcross(Placed, law="positions_by_index", stranger=""):
    """Keys of another sequence get the places of the queries, where there are as many."""

    def forward(self, x_BND: Tensor, context: Context, **more: Any) -> Out:
        rows, columns = context.positions_BN, context.source_positions_BM
        if rows is not None and columns is not None and rows.shape[1] >= columns.shape[1]:
            context = replace(context, source_positions_BM=rows[:, : columns.shape[1]])
        return super().forward(x_BND, context, **more)


class StepsWhereTheStateStands(Placed, law="positions_by_index", stranger=""):
    """Decoding counts by its state alone."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        if state is not None:
            context = replace(context, positions_BN=None, source_positions_BM=None)
        return super().project(x, context, source, state)


class TrainedByTheFirstExample(Placed, law="positions_by_index", stranger=""):
    """The bias of each example has a gradient for the first of them alone."""

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        found = super().bias(context, q, k)
        if found.dim() < 4 or not len(found):
            return found
        return torch.cat([found[:1], found[1:].detach()])
