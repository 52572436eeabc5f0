"""Energy of a call, also net of what the idle board takes; and why there is none where it is so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from lra.report.entries import Entry, Origin
from lra.report.words import listing

NET = "net_energy"
"""What `energies` calls the metric; no record has it."""
BOARD = (
    "By the GPU board's own counter: the board alone, without processor, main memory, cooling and "
    "power supply."
)


def energies(group: Iterable[Entry]) -> list[Entry]:
    """Return the energy of each record that was timed, or how it ended; and the same net.

    Net is less idle power times the call's time in the same pass.
    """
    # What is measured again has the id of the committed record.
    by_record: dict[tuple[Origin, str], dict[str, Entry]] = defaultdict(dict)
    for entry in group:
        by_record[entry.origin, entry.record][entry.metric] = entry
    found = []
    for parts in by_record.values():
        if "latency" not in parts:
            continue
        energy = parts.get("energy") or _lost(parts["latency"])
        found += [energy, _net(energy, parts)]
    return found


def _lost(timed: Entry) -> Entry:
    """Of a record that has no energy: its own ending, or that nothing is said."""
    word, reason = timed.word, timed.reason
    if timed.status == "ok":
        word, reason = "not measured", "not in the record"
    return replace(timed, metric="energy", value=None, word=word, reason=reason)


def _net(energy: Entry, parts: Mapping[str, Entry]) -> Entry:
    if energy.value is None:
        return replace(energy, metric=NET)
    seconds, idle = (
        parts[name].value if name in parts else None for name in ("energy_seconds", "idle_power")
    )
    if seconds is None or idle is None:
        word, reason = "not measured", "the record lacks idle power or the time of a call"
        return replace(energy, metric=NET, value=None, word=word, reason=reason)
    net = energy.value - idle * seconds
    if net <= 0.0:
        return replace(energy, metric=NET, value=None, word="not above idle")
    return replace(energy, metric=NET, value=net)


def why_no_energy(entries: Sequence[Entry]) -> list[str]:
    """Return for each machine of the run on which no energy was measured a sentence that says why.

    Nothing where records say nothing of energy.
    """
    reasons: dict[tuple[str, str], set[str]] = defaultdict(set)
    measured = set()
    for entry in entries:
        if entry.origin == "run" and entry.metric == "energy":
            place = (entry.machine, entry.device)
            reasons[place].add(entry.reason)
            if entry.value is not None:
                measured.add(place)
    return [
        f"No energy was measured on {machine} ({device}): {listing(sorted(why))}."
        for (machine, device), why in sorted(reasons.items())
        if (machine, device) not in measured
    ]
