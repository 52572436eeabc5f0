"""`lra list`: mechanisms, tasks, positions, suites and scales, from their cards and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lra.cli import flags, options
from lra.cli.echo import echo, echo_json
from lra.engine.plan.spec import OutputSpec

LEGEND = """\
time: growth with n queries, m keys and the width d; other letters are settings of the mechanism
causal: strict (no output feels a later input), values-only (later inputs may choose keys), or no
padding: content (it changes nothing), length (how much there is may), none (takes no padded rows)
decode: step by step, exact (as in one pass), approximate, none"""
"""Columns of `lra list impls`, by field of `lra.core.cards`."""

_FILES = ("presets", "suites", "scales")
KINDS = ("impls", "tasks", "positions", "presets", "suites", "scales")


@click.command("list", short_help="Names: impls, tasks, positions, presets, suites, scales.")
@click.argument("what", metavar="WHAT", type=flags.Choice(KINDS))
@click.option("--verbose", is_flag=True, help="All that is declared, settings and defaults too.")
@options.option(OutputSpec, "as_json")
def command(what: str, verbose: bool, as_json: bool) -> None:
    """List names with what they declare; WHAT is impls, tasks, positions, presets, suites or
    scales."""
    rows = _files(what) if what in _FILES else _cards(what)
    if as_json:
        echo_json(rows, indented=True)
    elif verbose:
        for row in rows:
            echo(f"{row['name']}")
            for key, value in row.items():
                if key == "protocols":
                    for scale, protocol in value.items():
                        echo(f"    at scale {scale}:")
                        for part, chosen in protocol.items():
                            echo(f"        {part}: {_text(chosen)}")
                elif key != "name" and value not in (None, ""):
                    echo(f"    {key}: {_text(value)}")
    else:
        from tabulate import tabulate

        columns = {
            "impls": ("name", "title", "year", "time", "causal", "padding", "decode"),
            "tasks": ("name", "title", "classes", "inputs", "source"),
            "positions": ("name", "title", "year", "acts_on"),
            "presets": ("name", "title", "paper"),
        }.get(what, ("name", "title"))
        # Titles of these files begin with their names.
        table = [
            [_text(row.get(column, "")).removeprefix(f"{row['name']}: ") for column in columns]
            for row in rows
        ]
        echo(tabulate(table, headers=columns, tablefmt="simple"))
        if what == "impls":
            echo(f"\n{LEGEND}")


def _files(what: str) -> list[dict[str, Any]]:
    import msgspec

    from lra.core import forms, scales

    load: Callable[[str], msgspec.Struct] = {
        "presets": forms.load_preset,
        "suites": scales.load_suite,
        "scales": scales.load_scale,
    }[what]
    return [msgspec.to_builtins(load(name)) for name in scales.names(what)]


def _cards(what: str) -> list[dict[str, Any]]:
    """Cards flattened to one level, with the configuration's defaults."""
    import msgspec

    from lra.core import catalogue
    from lra.engine.machine.host import cache_folder
    from lra.engine.plan.describe import Describer

    kind: catalogue.Kind = {"impls": "mechanism", "tasks": "task", "positions": "position"}[what]  # type: ignore[assignment]
    describer = Describer(cache_folder())
    rows: list[dict[str, Any]] = []
    doubled = catalogue.ambiguous_names(kind)
    for name in dict.fromkeys([*catalogue.names(kind), *catalogue.entry_point_names(kind)]):
        if name in doubled:
            rows.append({"name": name, "title": f"unavailable: {doubled[name]}"})
            continue
        target = catalogue.find(kind, name)
        found = describer.describe(target)
        card = {} if found.card is None else msgspec.to_builtins(found.card)
        capabilities = card.pop("capabilities", {})
        row: dict[str, Any] = {"name": name, **card, **capabilities}
        if found.unavailable is not None:
            row["title"] = f"unavailable: {found.unavailable}"
        if found.defaults:
            row["defaults"] = found.defaults
        if kind == "task":
            row["protocols"] = _protocols(name, found.card)
        rows.append(row)
    return rows


def _protocols(task: str, card: Any) -> dict[str, dict[str, Any]]:
    """Every choice that a scale makes for a task, by the name of each scale that names it."""
    import msgspec

    from lra.core import scales
    from lra.engine.plan.network import in_body

    found = {}
    for name in scales.names("scales"):
        scale = scales.load_scale(name)
        if task not in scale.tasks:
            continue
        settings = scale.tasks[task]
        plain = scale.model_spec(task)
        model = in_body(plain, card, task, body=None, preset=None, slots={})
        training = scale.train_spec(task)
        chosen = sorted({*scale.mechanisms, *scale.lra2021, *settings.lra2021})
        mechanisms = {each: scale.settings(each, scale.rules, task) for each in chosen}
        found[name] = {
            "length": settings.length,
            "rows": msgspec.to_builtins(settings.rows),
            "rules": scale.rules,
            "generator": settings.parameters or "defaults",
            "model": msgspec.to_builtins(model),
            **({"slots": settings.slots} if settings.slots else {}),
            "training": msgspec.to_builtins(training),
            # Under these rules nothing is tuned.
            "tuned": "not"
            if scale.rules == "lra2021" or not scale.rates
            else [float(f"{rate * training.learning_rate:g}") for rate in scale.rates],
            "mechanisms": {each: own for each, own in mechanisms.items() if own} or "defaults",
        }
    return found


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            f"{key} ({_text(entry)})" if isinstance(entry, dict) else f"{key}={_text(entry)}"
            for key, entry in value.items()
        )
    if isinstance(value, list | tuple):
        tables = any(isinstance(entry, dict) for entry in value)
        own = (f"({_text(entry)})" if tables else _text(entry) for entry in value)
        return f"[{', '.join(own)}]"
    return str(value)
