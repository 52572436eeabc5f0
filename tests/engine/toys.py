"""Mechanisms that end their worker in every way there is, given as `toys.py:Class`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Attention, Context, MechanismConfig
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UnsupportedError


class ToyConfig(MechanismConfig, frozen=True):
    size: Annotated[int, msgspec.Meta(ge=1)] = 8
    rate: float = 0.5
    note: str = ""
    """A folder to leave notes in, or a word."""


class Toy(Attention):
    """Returns the values; a subclass does its mischief in `attend`."""

    card = AttentionCard(
        title="toy",
        paper="none",
        year=2026,
        time="O(n)",
        memory="O(n)",
        capabilities=Capabilities(bidirectional=True, padding="content"),
    )
    Config = ToyConfig

    def attend(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        self.mischief(v_BHMV)
        return v_BHMV + 0.0 * q_BHNK.sum() * k_BHMK.sum(), None

    def oracle(
        self, q_BHNK: Tensor, k_BHMK: Tensor, v_BHMV: Tensor, context: Context
    ) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def mischief(self, v_BHMV: Tensor) -> None:
        """Nothing, here."""


class NoOracle(Toy):
    """Says that its weights are convex, so that they are looked at after training: in vain."""

    card = msgspec.structs.replace(Toy.card, weights="convex")


class Killed(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Aborts(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        os.abort()


class Exits(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        sys.exit(0)


class Vanishes(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        os._exit(0)


class Raises(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        path = Path.home() / "secret" / "notes of mine.txt"
        print("the last words", file=sys.stderr)
        raise ValueError(f"cannot use '{path}',\nsorry")


class TooLarge(Toy):
    """Runs out of memory at length 64 and beyond."""

    def mischief(self, v_BHMV: Tensor) -> None:
        if v_BHMV.shape[2] >= 64:
            torch.empty(1 << 60)


class Refuses(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        raise UnsupportedError("Refuses refuses whatever it is asked; ask another")


class Diverges(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        v_BHMV.data.fill_(float("inf"))


class OutOfMemory(Toy):
    def mischief(self, v_BHMV: Tensor) -> None:
        raise MemoryError


class Sleeps(Toy):
    """Leaves its pid and that of a child of its own in the folder `note`, and never ends."""

    def mischief(self, v_BHMV: Tensor) -> None:
        if isinstance(self.config, ToyConfig) and self.config.note:
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            pids = f"{os.getpid()} {child.pid}"
            note = Path(self.config.note) / f"pids-{os.getpid()}"
            unfinished = note.with_name(f"unfinished-{note.name}")
            unfinished.write_text(pids)
            unfinished.rename(note)
        time.sleep(600)


class Deaf(Sleeps):
    """The same, and SIGTERM does not reach it."""

    def mischief(self, v_BHMV: Tensor) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().mischief(v_BHMV)


class Watched(Toy):
    """At its 15th call it leaves its pid in the folder `note`; of two the second comes to grief."""

    calls = 0

    def mischief(self, v_BHMV: Tensor) -> None:
        self.calls += 1
        if self.calls == 15:
            assert isinstance(self.config, ToyConfig)
            rank = os.environ["RANK"]
            note = Path(self.config.note) / f"rank-{rank}"
            first = not note.exists()
            unfinished = note.with_name(f"unfinished-{note.name}")
            unfinished.write_text(str(os.getpid()))
            unfinished.rename(note)
            if rank == "1":
                self.grief(first)

    def grief(self, first: bool) -> None:
        """Nothing, here; `first` where it is the first time."""


class KilledOnce(Watched):
    def grief(self, first: bool) -> None:
        if first:
            os.kill(os.getpid(), signal.SIGKILL)


class KilledAgain(Watched):
    def grief(self, first: bool) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class FallsSilent(Watched):
    """Ends by SIGTERM all the same, so that a test need not wait for SIGKILL."""

    def grief(self, first: bool) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(600)


class Slow(Toy):
    """A training that takes long enough to be stopped."""

    def mischief(self, v_BHMV: Tensor) -> None:
        time.sleep(0.02)


class Square(Toy):
    """Holds one n x n matrix of float32 per head while it runs."""

    def mischief(self, v_BHMV: Tensor) -> None:
        batch, heads, length, _ = v_BHMV.shape
        torch.zeros(batch, heads, length, length).add_(1.0)


class KillsWorker(Toy):
    """Ends the process that looks after the one that runs it: on a cluster, the worker."""

    def mischief(self, v_BHMV: Tensor) -> None:
        server = os.getppid()
        stat = Path(f"/proc/{server}/stat").read_text()
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(600)
