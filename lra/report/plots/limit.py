"""Dot plot of the share of the machine's limit at the longest length, best on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lra.report.model import Figure
from lra.report.plots.lines import LINE, WIDTH
from lra.report.plots.names import hollow_note, names, short_names
from lra.report.plots.style import MUTED, Looks, draw
from lra.report.rows import Key
from lra.report.words import figures, listing

_LETTERS = 34


def limit_figure(
    id: str, shares: tuple[int, Mapping[str, Mapping[Key, float]]], looks: Looks
) -> Figure | None:
    """Return a panel for each kind of call, with its shares at one length; None without any.

    Panels share their rows, in the order of the first with a figure for them.
    """
    length, by_call = shares
    known = {call: own for call, own in by_call.items() if own}
    keys = list(
        dict.fromkeys(
            key for own in known.values() for key in sorted(own, key=own.__getitem__, reverse=True)
        )
    )
    if not keys:
        return None
    texts = short_names(keys, _LETTERS)
    top = max(share for own in known.values() for share in own.values())

    def paint(figure: Any) -> None:
        panels = figure.subplots(1, len(known), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (call, own) in zip(panels, known.items(), strict=True):
            axes.set_title(call)
            for place, key in enumerate(keys):
                if key in own:
                    _dot(axes, 100 * own[key], place, key, looks)
            axes.axvline(100.0, color=MUTED, linewidth=0.8, zorder=1)
            axes.set_xlabel("% of the limit")
        panels[0].set_xlim(0, max(105.0, 105 * top))
        panels[0].set_ylim(len(keys) - 0.5, -0.5)
        panels[0].set_yticks(range(len(keys)), texts)

    best = []
    for call, own in known.items():
        first = max(own, key=own.__getitem__)
        best.append(f"{call}: {first.label} {figures(100 * own[first], most=2)} %")
    return Figure(
        id=id,
        title=f"Share of the machine's limit at length {length}",
        alt=f"Dot plot of the share of the machine's limit at length {length} for "
        f"{listing(names(keys))}. Highest: {listing(best)}.",
        caption=f"The line: the limit.{hollow_note(keys)}",
        svg=draw(paint, WIDTH, 0.9 + LINE * len(keys)),
    )


def _dot(axes: Any, percent: float, place: int, key: Key, looks: Looks) -> None:
    look = looks.of(key.mechanism, key.variant)
    face = "white" if key.origin == "reference" else look.colour
    axes.plot(
        [percent], [place], look.marker, color=look.colour, markerfacecolor=face, markersize=6,
        zorder=3,
    )  # fmt: skip
