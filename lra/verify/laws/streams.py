"""Two sequences decoded in turns by one layer do not disturb each other, nor does an ordinary call
between their steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case
from lra.verify.law import Law, require_same
from lra.verify.requests import TYPED, masks, requests
from lra.verify.rotation import rotate
from lra.verify.subject import Subject, position

TOLERANCE = 1e-9
COUNT = 9
"""Number of cases of the short form."""
SINGLE = 2
"""Number of cases in float32 besides."""
LENGTHS = (2, 5, 7, 16, 37, 70)
PIECES = ((1,), (3, 1), (1, 2, 5))
"""Sizes of the pieces that a stream is cut into, again and again; which of them by the seed."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every causal request in turn, and some in float32."""
    kinds = masks(subject, "scattered", "front")
    own = requests(subject, lengths=LENGTHS, causal=(True,), masks=kinds, batch=3)
    single = requests(subject, lengths=TYPED, causal=(True,), masks=kinds, batch=3, dtype="float32")
    chosen = rotate(own, COUNT, subject, "streams") + rotate(single, SINGLE, subject, "streams")
    for place, case in enumerate(chosen):
        yield msgspec.structs.replace(case, seed=place)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Decode two streams in turns in one layer; compare each with itself alone in another."""
    # As many examples, whose states may be mixed up in silence, or fewer.
    batch = case.batch if case.seed % 2 == 0 else 1 + case.batch // 2
    shorter = msgspec.structs.replace(case, n=1 + case.n // 2, batch=batch, seed=case.seed + 1)
    streams = {"the longer stream": case, "the shorter stream": shorter}
    wanted = {}
    for name, own in streams.items():
        alone = Stream(subject, own, _build(subject, case))
        while alone.advance():
            pass
        wanted[name] = alone.outputs
    layer = _build(subject, case)
    running = {name: Stream(subject, own, layer) for name, own in streams.items()}
    going = True
    while going:
        going = False
        for stream in running.values():
            going |= stream.advance()
        between = msgspec.structs.replace(case, seed=case.seed + 2)
        layer(subject.inputs(between)[0].detach(), subject.context(between, layer))
    for name, stream in running.items():
        what = f"{name} of two in turns, against itself alone"
        require_same(
            torch.cat(stream.outputs, 1), torch.cat(wanted[name], 1), what,
            subject.allowed(TOLERANCE, case),
        )  # fmt: skip


class Stream:
    """One sequence, decoded piece by piece."""

    def __init__(self, subject: Subject, case: Case, layer: Layer) -> None:
        self.subject, self.case, self.layer = subject, case, layer
        self.x_BND = subject.inputs(case)[0].detach()
        self.mask_BN = subject.mask(case)
        self.scheme = position(case.position, layer.dims, subject.device)
        self.state = layer.init_state(
            case.batch, length=case.n, device=self.x_BND.device, dtype=self.x_BND.dtype
        )
        self.outputs: list[Tensor] = []
        self.start = 0

    def advance(self) -> bool:
        """Feed the next piece; return whether there was one."""
        if self.start >= self.case.n:
            return False
        sizes: Sequence[int] = PIECES[self.case.seed % len(PIECES)]
        self.feed(sizes[len(self.outputs) % len(sizes)])
        return True

    def feed(self, size: int) -> None:
        """Feed this many positions more, or as many as there are."""
        part = slice(self.start, min(self.case.n, self.start + size))
        mask = None if self.mask_BN is None else self.mask_BN[:, part]
        context = Context(causal=True, query_mask_BN=mask, position=self.scheme)
        y_BND, self.state = self.layer(self.x_BND[:, part], context, state=self.state)
        self.outputs.append(y_BND)
        self.start = part.stop


def _build(subject: Subject, case: Case) -> Layer:
    return subject.build(msgspec.structs.replace(case, seed=0), seed=1)


LAW = Law(
    name="streams",
    says="two decoded streams in turns do not disturb each other",
    claimed=lambda card: card.capabilities.decode != "none",
    cases=cases,
    check=check,
)
