"""Requests outside the card are refused in one line that says so, never ignored; a refusal leaves
layer and process as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, require_same
from lra.verify.process import FILTERS, settings
from lra.verify.subject import Subject, position

TOLERANCE = 1e-9


def cases(subject: Subject) -> Iterator[Case]:
    """One input."""
    yield Case(n=7, causal=not subject.card.capabilities.bidirectional)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Ask for everything that is not claimed."""
    layer = subject.build(case)
    x_BND = subject.inputs(case)[0].detach()
    can, causal = subject.card.capabilities, case.causal
    mask = torch.ones(case.batch, case.n, dtype=torch.bool, device=x_BND.device)

    def under(scheme: str) -> Callable[[], object]:
        place = position(scheme, layer.dims, subject.device)
        return lambda: layer(x_BND, Context(causal, position=place))

    requests: dict[str, tuple[bool, Callable[[], object]]] = {
        "bidirectional": (can.bidirectional, lambda: layer(x_BND, Context(causal=False))),
        "causal": (can.causal != "no", lambda: layer(x_BND, Context(causal=True))),
        "cross": (can.cross, lambda: layer(x_BND, Context(causal), source_BMD=x_BND)),
        "padding": (can.padding != "none", lambda: layer(x_BND, Context(causal, mask))),
        "decode": (
            can.decode != "none",
            lambda: layer.init_state(
                case.batch, length=case.n, device=x_BND.device, dtype=x_BND.dtype
            ),
        ),
        "cross_decode": (
            can.cross_decode != "none",
            lambda: layer.init_state(
                case.batch, length=case.n, device=x_BND.device, dtype=x_BND.dtype, source_BMD=x_BND
            ),
        ),
        "a state": (
            can.decode != "none",
            lambda: layer(x_BND, Context(can.causal != "no"), state=object()),
        ),
        "causal cross": (
            can.cross and can.causal != "no" and subject.mechanism.crosses_causally,
            lambda: layer(x_BND, Context(causal=True), source_BMD=x_BND),
        ),
        "arbitrary mask": (
            can.arbitrary_mask,
            lambda: layer(x_BND, Context(causal, mask_BNM=mask[:, None] & mask.unsqueeze(-1))),
        ),
        "positions by index": (
            can.positions_by_index,
            lambda: layer(x_BND, Context(causal, positions_BN=mask.long().cumsum(1))),
        ),
        "bias": (can.bias, under("alibi")),
        "rotary": (can.rotary, under("rope")),
    }
    if can.decode != "none":
        del requests["a state"]  # with one of its own it is `decode`
    plain = Context(causal)
    wanted = layer(x_BND, plain).y_BND
    for request, (claimed, ask) in requests.items():
        before = settings()
        try:
            ask()
        except UnsupportedError as error:
            if claimed:
                raise Broken(f"claims {request} and refuses it: {error}") from error
            if "\n" in str(error):
                raise Broken(f"refuses {request} in more than one line") from error
            changed = [name for name, value in settings().items() if value != before[name]]
            if changed and changed != [FILTERS]:
                raise Broken(
                    f"refuses {request} and changes {changed[0]} of the process"
                ) from error
            found = layer(x_BND, plain).y_BND
            what = f"the output after a refusal of {request}, against the one before"
            require_same(found, wanted, what, subject.allowed(TOLERANCE))
        else:
            if not claimed:
                raise Broken(f"does not claim {request} and takes it in silence")


LAW = Law(
    name="refusal",
    says="a request that is not claimed is refused in one line",
    claimed=binds_all,
    cases=cases,
    check=check,
    measured=True,
)
