"""A band around the diagonal, cut into blocks: geometry and masks, whatever computes on them.

B batch   N queries   M keys   H heads   K width of a head
U blocks of queries   S queries in a block   W keys that a block's window holds   P padded keys
T some of the blocks

Queries stand at the end of the keys: query i at key i + M - N. Block u holds S queries; its
window starts `before` blocks ahead of them and ends `after` blocks behind, so all windows have one
width and are strided views of one padded tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Band:
    """Which keys each query sees: `left` before its own place and `right` after it, and itself."""

    n: int
    m: int
    left: int
    right: int
    size: int
    """S, queries in a block."""

    @property
    def count(self) -> int:
        """U, blocks of queries."""
        return -(-self.n // self.size)

    @property
    def before(self) -> int:
        """Blocks of keys ahead of a block of queries."""
        return -(-self.left // self.size)

    @property
    def after(self) -> int:
        """Blocks of keys behind a block of queries."""
        return -(-self.right // self.size)

    @property
    def width(self) -> int:
        """W, keys in a window."""
        return (self.before + 1 + self.after) * self.size

    @property
    def lead(self) -> int:
        """Keys of a window ahead of its first query."""
        return self.before * self.size

    @property
    def padded(self) -> int:
        """P, places that all windows together hold."""
        return (self.before + self.count + self.after) * self.size

    @property
    def pairs(self) -> int:
        """Pairs in all windows, hidden ones included."""
        return self.count * self.size * self.width

    def mask(self, device: torch.device) -> Tensor | None:
        """Return the whole band, (N, M) boolean, or None where it hides nothing."""
        if self.left >= self.m - 1 and self.right >= self.n - 1:
            return None
        distance_NM = torch.arange(self.m, device=device) - torch.arange(
            self.m - self.n, self.m, device=device
        ).unsqueeze(-1)
        return (distance_NM >= -self.left) & (distance_NM <= self.right)

    def window_mask(self, device: torch.device) -> Tensor:
        """Return the band inside a window, (S, W) boolean; all blocks share it."""
        rows_S1 = torch.arange(self.size, device=device).unsqueeze(-1)
        distance_SW = torch.arange(self.width, device=device) - self.lead - rows_S1
        return (distance_SW >= -self.left) & (distance_SW <= self.right)

    @property
    def _around(self) -> tuple[int, int]:
        """Places in the padded keys ahead of the keys and behind them; fewer than none where keys
        lie ahead of all windows."""
        ahead = self.lead - (self.m - self.n)
        return ahead, self.padded - ahead - self.m

    @property
    def corners(self) -> list[slice]:
        """Columns of a window that some of its queries do not see: at either end, or all of them.
        By integers, so that no GPU is waited for."""
        first = max(0, self.lead + self.size - 1 - self.left)
        last = min(self.width, self.lead + self.right + 1)
        if first >= last:
            return [slice(0, self.width)]
        return [c for c in (slice(0, first), slice(last, self.width)) if c.start < c.stop]

    def outside(self, device: torch.device) -> list[tuple[slice, Tensor]]:
        """Return the corners, each with the pairs there that the band hides, (S, W') boolean; what
        lies between them is never masked."""
        outside_SW = ~self.window_mask(device)
        return [(columns, outside_SW[:, columns]) for columns in self.corners]

    def pad_queries(self, x_BHNK: Tensor, dtype: torch.dtype) -> Tensor:
        """Return (B, H, U, S, K), zero behind the last query; a view where nothing is missing."""
        missing = self.count * self.size - self.n
        x = F.pad(x_BHNK, (0, 0, 0, missing)) if missing else x_BHNK
        return self.blocks(x.to(dtype))

    def blocks(self, x_BHNK: Tensor) -> Tensor:
        """(B, H, any multiple of S, K) to (B, H, U, S, K), a view."""
        batch, heads, length, width = x_BHNK.shape
        return x_BHNK.view(batch, heads, length // self.size, self.size, width)

    def pad_keys(self, x_BHMK: Tensor, dtype: torch.dtype) -> Tensor:
        """Return (B, H, P, K), zero around the keys, and without those ahead of all windows."""
        return F.pad(x_BHMK.to(dtype), (0, 0, *self._around))

    def keys(self, x_BHPK: Tensor) -> Tensor:
        """Undo `pad_keys`: (B, H, M, K), a view; zero at keys ahead of all windows."""
        ahead, _ = self._around
        x_BHMK = x_BHPK[:, :, max(0, ahead) : ahead + self.m]
        return F.pad(x_BHMK, (0, 0, -ahead, 0)) if ahead < 0 else x_BHMK

    def windows(self, x_BHPK: Tensor) -> Tensor:
        """Return each block's window, (B, H, U, K, W): overlapping views, no copy."""
        return x_BHPK.unfold(2, self.width, self.size)

    def real(self, key_mask_BM: Tensor | None, device: torch.device) -> Tensor:
        """Return which padded keys are real, (B, P) boolean; B is 1 without a mask."""
        if key_mask_BM is None:
            key_mask_BM = torch.ones(1, self.m, dtype=torch.bool, device=device)
        return self.pad_keys(key_mask_BM[:, None, :, None], torch.bool)[:, 0, :, 0]

    def visible(self, key_mask_BM: Tensor | None, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return which padded keys of each window are real, and which queries see no real key.

        (B, U, W) and (B, U, S) boolean; B is 1 without a mask.
        """
        real_BP = self.real(key_mask_BM, device)
        counts = F.pad(real_BP.cumsum(dim=1), (1, 0))
        places = torch.arange(self.count * self.size, device=device) + self.lead
        first, last = places - self.left, (places + self.right + 1)
        alone_BN = counts[:, last] == counts[:, first]
        return (
            real_BP.unfold(1, self.width, self.size),
            alone_BN.view(-1, self.count, self.size),
        )

    def positions(self, block: int, origin: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the positions of a block's queries (S) and of its window's keys (W).

        `origin` is the position of the first query. Columns of padding, which are masked, repeat
        the nearest position there is, so that a table of positions is never left.
        """
        start = origin + block * self.size
        last = origin + self.n - 1
        rows_S = torch.arange(start, start + self.size, device=device)
        columns_W = torch.arange(start - self.lead, start - self.lead + self.width, device=device)
        return rows_S.clamp(max=last), columns_W.clamp(min=0, max=last)


def add_to_windows(
    total_USK: Tensor, blocks: slice, a_TSW: Tensor, x_TSK: Tensor, scale: float = 1.0
) -> None:
    """Add scale a^T x of each block to the keys of its window.

    Windows overlap, so their blocks of keys are taken one after the other: shifted by a block, no
    two windows meet, and the product adds into the total by itself.
    """
    size = total_USK.shape[1]
    for shift in range(a_TSW.shape[-1] // size):
        columns = slice(shift * size, (shift + 1) * size)
        keys_TSK = total_USK[blocks.start + shift : blocks.stop + shift]
        keys_TSK.baddbmm_(a_TSW[:, :, columns].mT, x_TSK, alpha=scale)
