"""Plot of validation accuracy while learning, one panel per task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lra.report.model import Figure
from lra.report.plots.lines import WIDTH
from lra.report.plots.style import Look, Looks, draw
from lra.report.rows import Key
from lra.report.words import listing, shortened

if TYPE_CHECKING:
    import pandas as pd

_ACROSS = 5
_MOST = 12
"""Largest number of validations drawn of a line; of more, every second, third, ... and the last."""
_LETTERS = 88
"""Letters that fit side by side in titles or in the legend."""


def learning_figure(
    id: str, points: pd.DataFrame, keys: Sequence[Key], titles: dict[str, str], looks: Looks
) -> Figure:
    """Return validation accuracy against steps.

    `points` has a row for each validation: key, protocol, step and accuracy in percent; `titles`
    are those of protocols, in order.
    """
    down, across = -(-len(titles) // _ACROSS), min(_ACROSS, len(titles))
    texts = shortened(_names(keys), 40)
    ncols = max(1, min(5, _LETTERS // (4 + max(map(len, texts)))))
    heads = shortened([*titles.values()], _LETTERS // across)

    def paint(figure: Any) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.ticker import MaxNLocator

        panels = list(figure.subplots(down, across, squeeze=False).flat)
        for axes, protocol, head in zip(panels, titles, heads, strict=False):
            own = points[points["protocol"] == protocol]
            for key in keys:
                line = own[[one == key for one in own["key"]]]
                if line.empty:
                    continue
                means = line.groupby("step")["accuracy"].mean()
                kept = _thinned(len(means))
                style = _style(key, looks)
                axes.plot(means.index[kept], means.iloc[kept], **style)
            axes.set(title=head, xlabel="training step")
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        for axes in panels[len(titles) :]:
            axes.set_visible(False)
        for axes in panels[::across]:
            axes.set_ylabel("validation accuracy, %")
        handles = [Line2D([], [], **_style(key, looks)) for key in keys]
        figure.legend(
            handles, texts, loc="outside lower center", ncols=ncols, frameon=False, fontsize=8.5
        )

    names = listing([key.row(()).title for key in keys])
    return Figure(
        id=id,
        title="Validation accuracy while training",
        alt="Line plots of validation accuracy against training steps on "
        f"{listing([*titles.values()])} for {names}.",
        caption="Means over seeds.",
        svg=draw(paint, WIDTH, 0.8 + 1.9 * down + 0.21 * -(-len(keys) // ncols)),
    )


def _names(keys: Sequence[Key]) -> list[str]:
    """Mechanism of each row, with its whole title where several rows have the same."""
    known = Counter(key.mechanism for key in keys)
    return [key.name if known[key.mechanism] == 1 else key.row(()).title for key in keys]


def _thinned(number: int) -> list[int]:
    """Places to draw, the last always among them."""
    step = -(-number // _MOST)
    return sorted({*range(0, number, step), number - 1})


def _style(key: Key, looks: Looks) -> dict[str, Any]:
    look: Look = looks.of(key.mechanism, key.variant)
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "clip_on": False,
        "solid_capstyle": "butt",
        "linewidth": 0.9 if key.origin == "reference" else 1.3,
    }
