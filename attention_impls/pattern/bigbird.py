"""BigBird: blocks that read their neighbours, the first and last block, and a few random ones.

B batch   N positions   H heads   K width of a query or key head   V width of a value head
U blocks   S positions in a block   A blocks that a block reads   P padded keys   R random blocks
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls._draws import seeded
from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Attention, Context, Dims, MechanismConfig
from attention_impls.dense._fused import fused_softmax
from attention_impls.pattern._bigbird_graph import BlockGraph, first_and_last
from attention_impls.pattern._folded import attend_blocks, windows_beside
from attention_impls.pattern._layouts import Graph, Shared, divided
from attention_impls.pattern._parts import Part, attend_part, dense_is_cheaper, folds
from lra.core.cards import AttentionCard, Capabilities

ARENA_REACH = 1024
"""Positions that the arena's random blocks come from."""


class BigbirdConfig(MechanismConfig, frozen=True):
    """The paper's internal construction (ITC), whose global blocks are part of the input."""

    block: Annotated[int, msgspec.Meta(ge=1)] = 64
    """S, positions in a block."""
    random: Annotated[int, msgspec.Meta(ge=0)] = 3
    """R, random blocks that a block reads, or as many as are left."""
    parity: Literal["none", "lra2021"] = "none"
    """lra2021: the arena's random blocks, all of them among the first 1024 positions, however long
    the input, and no dropout on weights. Unlike there, draws follow the seed, padding is masked,
    the last global block is that of the last real position, and no block of padding is added where
    blocks divide the length."""


class Bigbird(Attention):
    """softmax(q_i k_j / sqrt(K)) v_j over blocks: own and next to it, first, last, R random.

    In O(N (5 + R) S) time; positions of the first and last block read everything. Exact within the
    graph, and all of softmax where there are at most 4 + R blocks. The graph is per head and layer,
    frozen, and follows from numbers in the state dict for any length; no block is read twice. An
    example's last block is that of its last real position, so padding behind changes nothing.
    Unlike the paper's code, random blocks come from all of the input and are the same in
    evaluation, and lengths need not be multiples of a block.
    """

    Config = BigbirdConfig
    config: BigbirdConfig
    trials = (BigbirdConfig(block=2, random=1), BigbirdConfig(block=3, random=2))

    card = AttentionCard(
        title="BigBird",
        paper="Zaheer et al., Big Bird: Transformers for Longer Sequences, NeurIPS 2020, "
        "arXiv:2007.14062",
        year=2020,
        time="O(n s (5 + r) d)",
        memory="O(n (d + s)); O(n s (5 + r)) on a GPU",
        softmax="configured",
        weights="convex",
        capabilities=Capabilities(
            bidirectional=True, padding="content", rotary=True, stochastic=True
        ),
    )
    seeds_H: Tensor

    def __init__(
        self,
        dims: Dims,
        config: MechanismConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        drawn = torch.randint(2**62, (dims.heads,), generator=seeded(seed, layer_index))
        self.register_buffer("seeds_H", drawn)
        self._remember()
        self.register_load_state_dict_post_hook(_remember_again)  # type: ignore[no-untyped-call]

    def _remember(self) -> None:
        """Keep the seeds where reading them stops no GPU, and no table of others."""
        self._graph = BlockGraph(
            seeds=tuple(self.seeds_H.tolist()),
            size=self.config.block,
            random=self.config.random,
            reach=self._reach(),
        )

    @classmethod
    def exact_at(cls, n: int) -> BigbirdConfig:
        """Return blocks of which there are at most 4 + R."""
        default = BigbirdConfig()
        return BigbirdConfig(block=max(default.block, -(-n // (4 + default.random))))

    @property
    def borders(self) -> tuple[int, ...]:
        """That of a block, and where the graph stops being complete."""
        return (self.config.block, (4 + self.config.random) * self.config.block)

    def attend(
        self,
        q_BHNK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        context: Context,
        state: None = None,
    ) -> tuple[Tensor, None]:
        """Return attention over the graph."""
        n, size, mask_BN = q_BHNK.shape[2], self.config.block, context.key_mask_BM
        count = -(-n // size)
        dropout = self.dims.dropout if self.training and self.config.parity == "none" else 0.0
        if count <= 4 + self.config.random:
            permitted = None if mask_BN is None else self._graph.whole(mask_BN)
            return fused_softmax(q_BHNK, k_BHNK, v_BHNV, permitted, None, dropout=dropout), None
        table_XHUA, used_X = self._graph.tables(mask_BN, n, q_BHNK.device)
        if self._is_dense(n, masked=mask_BN is not None, dropout=dropout, like=q_BHNK):
            permitted = self._graph.between_positions(table_XHUA, used_X, n)
            if mask_BN is not None:
                permitted = permitted & mask_BN[:, None, None, :]
            return fused_softmax(q_BHNK, k_BHNK, v_BHNV, permitted, None, dropout=dropout), None
        q_BHUSK = divided(F.pad(q_BHNK, (0, 0, 0, count * size - n)), 2, count, size)
        real_BN = mask_BN
        if real_BN is None:
            real_BN = torch.ones(1, n, dtype=torch.bool, device=q_BHNK.device)
        if folds(q_BHNK):
            lonely = mask_BN is not None
            out_BHUSV = self._folded(
                q_BHUSK, k_BHNK, v_BHNV, real_BN, table_XHUA, used_X, lonely, dropout=dropout
            )
        else:
            # One block of padding more, which the table names where there is nothing to read.
            missing = (count + 1) * size - n
            k_BHPK, v_BHPV = (F.pad(x, (0, 0, 0, missing)) for x in (k_BHNK, v_BHNV))
            part = Part(Graph(table_XHUA, size), F.pad(real_BN, (0, missing)), dropout=dropout)
            out_BHUSV, _ = attend_part(q_BHUSK, k_BHPK, v_BHPV, part, autograd=False)

        ends_X2 = first_and_last(used_X)
        index = ends_X2[:, None, :, None, None].expand(len(q_BHNK), q_BHNK.shape[1], -1, size, -1)
        q_BH2SK = q_BHUSK.gather(2, index.expand(-1, -1, -1, -1, q_BHNK.shape[-1]))
        if folds(q_BHNK):
            permitted = None if mask_BN is None else mask_BN[:, None, None, :]
            q = q_BH2SK.flatten(2, 3)
            ends = fused_softmax(q, k_BHNK, v_BHNV, permitted, None, dropout=dropout)
            ends_BH2SV = divided(ends, 2, 2, size)
        else:
            part = Part(Shared(2, n), real_BN, dropout=dropout)
            ends_BH2SV, _ = attend_part(q_BH2SK, k_BHNK, v_BHNV, part, autograd=False)
        out_BHUSV = out_BHUSV.scatter(2, index.expand_as(ends_BH2SV), ends_BH2SV)
        return out_BHUSV.flatten(2, 3)[:, :, :n].to(q_BHNK.dtype), None

    def _folded(
        self,
        q_BHUSK: Tensor,
        k_BHNK: Tensor,
        v_BHNV: Tensor,
        real_BN: Tensor,
        table_XHUA: Tensor,
        used_X: Tensor,
        lonely: bool,
        *,
        dropout: float,
    ) -> Tensor:
        """Return (B, H, U, S, V) in one call, but for the first and last blocks of queries.

        Only what was drawn is gathered by index: where many blocks read one, as they do the first
        and the last, their gradients to it would queue.
        """
        # By the layer's own sizes: a compiler for all lengths takes those of tensors for unknowns.
        heads, size, random = self.dims.heads, self.config.block, self.config.random
        count = q_BHUSK.shape[2]
        ends_XHU2, near_XHU3, drawn_XHUR = torch.split(table_XHUA, [2, 3, random], dim=-1)
        around = (0, 0, size, (count + 1) * size - k_BHNK.shape[2])
        drawn = Graph(drawn_XHUR + 1, size)

        def read(x_BHNK: Tensor) -> Tensor:
            """The keys of each block, (B, U, H, W, K): its neighbours, the ends, and the drawn."""
            x_BHPK = F.pad(x_BHNK, around)
            index = first_and_last(used_X)[:, None, :, None, None] + 1
            index = index.expand(len(x_BHPK), heads, -1, size, x_BHPK.shape[-1])
            ends = divided(x_BHPK, 2, -1, size).gather(2, index).flatten(2, 3)
            ends = ends.unsqueeze(2).expand(-1, -1, count, -1, -1)
            return windows_beside(x_BHPK, size, 3, ends, drawn.windows(x_BHPK))

        real_BUHW = read(real_BN[:, None, :, None].expand(-1, heads, -1, -1)).squeeze(-1)
        table = torch.cat([near_XHU3, ends_XHU2, drawn_XHUR], dim=-1)
        named_XHUW = (table != count).repeat_interleave(size, dim=-1)
        return attend_blocks(
            q_BHUSK,
            read(k_BHNK),
            read(v_BHNV),
            [(real_BUHW.transpose(1, 2) & named_XHUW).unsqueeze(3)],
            None,
            lonely=lonely,
            dropout=dropout,
        )

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Operations of U blocks, each S queries with 5 + R blocks of keys, padding included, and
        two blocks of queries with all keys; all pairs up to 4 + R blocks, or in one dense call."""
        size, random = self.config.block, self.config.random
        count = -(-n // size)
        dense = self._is_dense(n, masked=False, dropout=0.0, like=self.query.weight)
        pairs = n * n if count <= 4 + random or dense else self._pairs(n)
        return self.projection_operations(n) + self.pair_operations(pairs)

    def _pairs(self, n: int) -> int:
        """Return how many pairs the blocks have, those of padding too."""
        size = self.config.block
        return -(-n // size) * size * (5 + self.config.random) * size + 2 * size * n

    def _is_dense(self, n: int, *, masked: bool, dropout: float, like: Tensor) -> bool:
        """Whether all pairs are computed, under a mask by head, and where keys are `masked` by
        example.

        With so large a mask only where calls outweigh whatever they compute: on a CPU. A GPU reads
        one for all examples from its cache.
        """
        return dense_is_cheaper(
            n * n,
            0 if masked or like.device.type == "cpu" else self._pairs(n),
            parts=2,
            device=like.device,
            autograd=folds(like),
            reached=False,
            dropout=dropout,
        )

    def oracle(
        self, q_BHNK: Tensor, k_BHNK: Tensor, v_BHNV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        """Return full attention under the graph's mask, in float64."""
        n = q_BHNK.shape[2]
        return softmax_oracle(q_BHNK, k_BHNK, v_BHNV, context, self.support(n, n, context))

    def support(self, n: int, m: int, context: Context) -> Tensor:
        """Return the graph between positions, (B, H, N, N); B is 1 without padding."""
        size = self.config.block
        block_N = torch.arange(n) // size
        graphs = []
        for used in self._graph.blocks_in_use(context.key_mask_BM, n):
            heads = []
            for drawn in self._graph.drawn(used):
                read = torch.zeros(-(-n // size), -(-n // size), dtype=torch.bool)
                for block in range(used):
                    ends = [0, used - 1]
                    near = [b for b in (block - 1, block, block + 1) if 0 <= b < used]
                    read[block, ends + near] = True
                    if block in ends:
                        read[block] = True
                    else:
                        read[block, [b for b in drawn[block - 1].tolist() if b >= 0]] = True
                heads.append(read[block_N][:, block_N])
            graphs.append(torch.stack(heads))
        return torch.stack(graphs) if graphs else torch.ones(0, len(self.seeds_H), n, n).bool()

    def _reach(self) -> int | None:
        """Return the last block that may be drawn, or None where all may."""
        size = self.config.block
        if self.config.parity == "lra2021" and 2 * size < ARENA_REACH:
            return ARENA_REACH // size - 1
        return None


def _remember_again(layer: Bigbird, _: object) -> None:
    """Take over seeds that were loaded."""
    layer._remember()
