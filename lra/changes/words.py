"""Words for measurements and their changes; nothing reads them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean, median

from lra.changes.compare import Line
from lra.changes.measurements import CONDITIONS, Ending, Measurement
from lra.report.load.versions import named
from lra.report.rows import missing
from lra.report.words import TIMES, between, figures, listing, percent, quantity
from lra.verdict.change import Change

_WHERE = {
    "rules": "{} rules", "track": "{} track", "source": "data: {}", "machine": "on {}",
    "threads": "{} threads", "torch": "torch {}",
}  # fmt: skip


def cell_words(one: Measurement) -> str:
    """Return the question in as few words as tell cells of most stores apart."""
    asked = one.row
    if asked.kind == "quality":
        shuffled = ", tokens shuffled" if asked.order == "shuffled" else ""
        return f"{asked.task}, scale {asked.scale}{shuffled}"
    parts = [
        asked.mode or "error",
        f"{asked.length}",
        f"on {asked.device}" if asked.device == "cuda" else "",
        f"scale {asked.scale}" if asked.scale != "mini" else "",
        f"{asked.level} {asked.task}".strip() if asked.level not in ("", "layer") else "",
        asked.direction if asked.direction == "causal" and asked.mode != "decode" else "",
        f"batch {asked.batch:.0f}" if asked.batch not in (None, 1) else "",
        f"heads {asked.heads:.0f} x {asked.head_width:.0f}",
        asked.dtype if asked.dtype != "float32" else "",
        asked.execution if asked.execution not in ("", "eager") else "",
        f"inputs {TIMES} {asked.input_scale:g}" if asked.input_scale is not None else "",
    ]
    return " ".join(part for part in parts if part)


def line_cell(line: Line) -> str:
    """Return the cell of a line, with the columns that tell it from others of its kind."""
    row = line.after.row
    where = [_WHERE[name].format(own) for name in line.varying if (own := getattr(row, name))]
    return ", ".join([cell_words(line.after), *where])


def line_label(line: Line) -> str:
    """Return the mechanism of a line; empty where two are compared."""
    return line.after.row.label if line.same_mechanism else ""


def line_name(line: Line) -> str:
    """Return mechanism and cell."""
    return f"{line_label(line)} {line_cell(line)}".strip()


def verdict_words(line: Line) -> str:
    """Return the verdict in the quantity's own words."""
    if line.has_ended:
        return reason_words(line)
    words = {"worse": line.quantity.worse, "better": line.quantity.better}
    return words.get(line.change.verdict, line.change.verdict)


def reason_words(line: Line) -> str:
    """Return why nothing is compared, or how cells without a figure ended; empty elsewhere."""
    names = [CONDITIONS[name] for name in line.differing]
    if line.features:
        names.append(f"{CONDITIONS['measuring']}: {named(line.features)}")
    if names:
        return listing(names)
    if line.lost or line.won:
        lost, won = _share(line.lost, line.after), _share(line.won, line.before)
        if lost and won:
            return f"{lost} now, {won} no more"
        return f"{lost} now" if lost else f"no {won} any more"
    without = [side for side in (line.before, line.after) if not side.values]
    if without:
        return listing(list(dict.fromkeys(ending_words(one.endings.values()) for one in without)))
    return "no replicate or seed in common" if line.change.verdict == "incomparable" else ""


def ending_words(endings: Iterable[Ending]) -> str:
    """Return how replicates or seeds without a figure ended."""
    return missing(list(endings)).text


def _share(endings: Sequence[Ending], side: Measurement) -> str:
    """`OOM`, or how many of the side: `2 of 3 crash (SIGKILL)`."""
    if not endings:
        return ""
    word = ending_words([Counter(endings).most_common(1)[0][0]])
    asked = len(side.values) + len(side.endings)
    return word if len(endings) == asked else f"{len(endings)} of {asked} {word}"


def change_words(change: Change) -> str:
    """Return the change with its bounds: `1.12 x (1.05 to 1.19)`, `+1.2 points`."""
    bounded = change.low is not None and change.high is not None
    low, high = change.low or 0.0, change.high or 0.0
    if change.ratio is not None:
        bounds = f" ({between(low, high)})" if bounded else ""
        return f"{figures(change.ratio)} {TIMES}{bounds}"
    if change.difference is not None:
        bounds = f" ({100 * low:+.1f} to {100 * high:+.1f})" if bounded else ""
        return f"{100 * change.difference:+.1f} points{bounds}"
    return ""


def side_words(line: Line) -> tuple[str, str]:
    """Return both sides' figures: over the replicates or seeds that both have, as the change is."""
    shared = line.before.values.keys() & line.after.values.keys()
    return _middle(line.before, shared), _middle(line.after, shared)


def _middle(side: Measurement, shared: Collection[int]) -> str:
    """Middle of a side's figures in its unit, the mean of shares and else the median, or how it
    ended."""
    values = [value for number, value in side.values.items() if not shared or number in shared]
    if not values:
        return ending_words(side.endings.values())
    unit = side.row.unit
    if unit == "share":
        return f"{percent(fmean(values))} %"
    middle = median(values)
    if unit in ("s", "B"):
        return quantity(middle, unit)
    return f"{middle:,.0f}" if side.row.metric == "operations" else figures(middle)
