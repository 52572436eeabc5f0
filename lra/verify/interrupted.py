"""Two callers at once, without chance: after each step of one call another thread makes a whole
other one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

MOST = 100
"""Largest number of steps after which a call is interrupted, spread evenly."""
PATIENCE = 1.0
"""Seconds after which the other call counts as waiting for a lock: the first one goes on then."""


def interrupted(first: Callable[[], Tensor], second: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    """Return the result of a call that another thread's calls interrupt, and those of that thread,
    stacked. Nothing takes gradients. Raises whatever a call raises."""
    before = torch.get_num_threads()
    try:
        # It computes alone, as threads that compute together would not survive a fork.
        with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            counted = _Interrupting(lambda: None)
            with torch.no_grad(), counted:
                first()
            job = torch.no_grad()(second)
            calls: list[Future[Tensor]] = []

            def call() -> None:
                calls.append(pool.submit(job))
                calls[-1].result(PATIENCE)

            with torch.no_grad(), _Interrupting(call, every=1 + counted.steps // MOST):
                out = first()
            # One that has waited for a lock may be still under way.
            calls.append(pool.submit(job))
            return out, torch.stack([one.result() for one in calls])
    finally:
        torch.set_num_threads(before)


class _Interrupting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Makes another call after every so many steps of torch's."""

    def __init__(self, call: Callable[[], None], every: int = 1) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.call, self.every = call, every
        self.steps = 0
        self.is_locked_out = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        self.steps += 1
        if self.steps % self.every == 0 and not self.is_locked_out:
            try:
                self.call()
            except TimeoutError:
                self.is_locked_out = True
        return out
