"""Bytes of tensors while they live."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the tensors that operations return, while they live.

    Memory that a kernel allocates and frees inside of itself is not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self.live = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        known = {self._key(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            # A view of an existing tensor is not new.
            if isinstance(tensor, Tensor) and self._key(tensor) not in known | self._seen:
                self._count(tensor.untyped_storage())
        self.peak = max(self.peak, self.live)
        return out

    @staticmethod
    def _key(tensor: Tensor) -> int:
        return int(tensor.untyped_storage()._cdata)

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = int(storage._cdata), storage.nbytes()
        self._seen.add(key)
        self.live += size
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.live -= size
