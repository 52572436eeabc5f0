"""Requests to a mechanism: directions, masks and positions of its card, and the cases made of
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice, product
from typing import Any

from lra.core.findings import Case, DtypeName, MaskKind
from lra.verify.subject import Subject

SHORT = 40
"""Longest length at which all combinations of requests are tried; beyond, one after another."""

TYPED = (7, 37, 16)
"""Lengths at which other types than float64 are tried."""

TYPED_FAR = 300
"""A longer one, tried once in each type: kernels are chosen by type and length at once, and
bfloat16 counts to 256."""

CROSSED = ((2, 5), (5, 3), (7, 16), (16, 9))
"""Queries and keys of requests to another sequence: fewer and more."""


def directions(subject: Subject) -> list[bool]:
    """Return the values of `causal` that the card claims."""
    can = subject.card.capabilities
    return [False] * can.bidirectional + [True] * (can.causal != "no")


def cross_directions(subject: Subject) -> list[bool]:
    """Return the values of `causal` for attention to another sequence."""
    return [c for c in directions(subject) if not c or subject.mechanism.crosses_causally]


def masks(subject: Subject, *kinds: MaskKind) -> list[MaskKind]:
    """Return `none`, and these kinds of masks where the card claims to honour padding."""
    return ["none", *(kinds if subject.card.capabilities.padding != "none" else ())]


def position_schemes(subject: Subject) -> list[str]:
    """Return `none`, and one scheme of each kind that acts inside a mechanism and that the card
    claims."""
    can = subject.card.capabilities
    return ["none", *["alibi"] * can.bias, *["rope"] * can.rotary]


def special_requests(subject: Subject, lengths: Sequence[int], **asked: Any) -> list[Case]:
    """Return requests that name special positions; none where the card says that these have no
    effect, or a configuration follows somebody's code."""
    if "special_BN" in subject.card.without_effect:
        return []
    every = requests(subject, lengths=lengths, special=True, **asked)
    return [case for case in every if not in_parity(subject, case)]


def in_parity(subject: Subject, case: Case) -> bool:
    """Whether a configuration follows somebody's code, which may drop nothing and know no special
    positions."""
    return getattr(subject.configs[case.trial], "parity", "none") != "none"


def other_dtypes(subject: Subject) -> tuple[DtypeName, ...]:
    """Return the types that a law is tried in besides float64."""
    return ("float32", *half_dtypes(subject))


def half_dtypes(subject: Subject) -> tuple[DtypeName, ...]:
    """Return the types of half precision; none for somebody else's code, which may take none."""
    return ("bfloat16", "float16") if subject.is_ours else ()


def requests(
    subject: Subject,
    *,
    lengths: Sequence[int] | None = None,
    causal: Sequence[bool] | None = None,
    masks: Sequence[MaskKind] = ("none",),
    positions: Sequence[str] | None = None,
    training: bool = False,
    dtypes: Sequence[DtypeName] = (),
    far: bool = False,
    **fixed: Any,
) -> Iterator[Case]:
    """Yield cases by length: all combinations at short ones, one each in turn beyond, with `far`
    also at those of a thousand.

    At each short length all configurations take part, and share the combinations among them; the
    full form gives all to each. With `training` every other case is in training. Each combination
    is also tried in one of `dtypes` in turn, in the full form in each of them.
    """
    ways = directions(subject) if causal is None else list(causal)
    places = position_schemes(subject) if positions is None else list(positions)
    combinations: list[dict[str, Any]] = [
        {"causal": c, "mask": mask, "position": scheme}
        for c, mask, scheme in product(ways, masks, places)
    ]
    count = len(combinations)
    if training and subject.trains_quietly:
        combinations = [
            {**combination, "training": (place + turn) % 2 == 1}
            for turn in range(2)
            for place, combination in enumerate(combinations)
        ]
    if not combinations:
        return
    turn = cycle(combinations)
    for n in subject.lengths if lengths is None else lengths:
        trials = len(subject.configs) if n <= SHORT else 1
        each = len(combinations)
        if not subject.full:
            each = max(2, -(-count // trials)) if n <= SHORT else 1
        for trial in range(trials):
            for combination in islice(turn, each):
                yield Case(n=n, trial=trial, **combination, **fixed)
        if trials > 1:
            next(turn)
    each = len(combinations)
    for place in range(each * (len(dtypes) if subject.full else bool(dtypes))):
        n, trial = TYPED[place % len(TYPED)], place % len(subject.configs)
        dtype = dtypes[(place + place // each) % len(dtypes)]
        yield Case(n=n, trial=trial, dtype=dtype, **next(turn), **fixed)
    if far:
        for n in subject.far:
            yield Case(n=n, **next(turn), **fixed)
        for dtype in dtypes:
            yield Case(n=TYPED_FAR, dtype=dtype, **next(turn), **fixed)


def crossed_requests(subject: Subject, *, positions: Sequence[str] | None = None) -> Iterator[Case]:
    """Yield requests to another sequence in every direction, with and without padding, under every
    kind of position: each in evaluation and in training, and all configurations in turn."""
    trials = cycle(range(len(subject.configs)))
    places = position_schemes(subject) if positions is None else positions
    ways = product(cross_directions(subject), masks(subject, "scattered"), places)
    for place, (causal, mask, scheme) in enumerate(ways):
        for turn, (n, m) in enumerate(CROSSED):
            trained = subject.trains_quietly and (place + turn) % 2 == 1
            yield Case(
                n=n,
                m=m,
                causal=causal,
                mask=mask,
                position=scheme,
                training=trained,
                trial=next(trials),
            )
