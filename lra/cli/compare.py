"""`lra compare`: changes between two stores or revisions, or differences between mechanisms."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags, options
from lra.cli.echo import echo, echo_json, on_stderr
from lra.cli.exit_codes import INCONCLUSIVE, REGRESSION
from lra.core.errors import LraError, UsageError
from lra.engine.plan.spec import OutputSpec, RunSpec

if TYPE_CHECKING:
    from lra.changes.compare import Changes
    from lra.report.load.select import Evidence

_SHOWN = 20
"""Rows of the table in a terminal."""


class _IncomparableError(LraError):
    """Two revisions that no timing can compare."""

    exit_code = INCONCLUSIVE


@click.command("compare", short_help="Changes between two stores, revisions or mechanisms.")
@click.argument("before", metavar="A", type=flags.Folder(str))
@click.argument("after", metavar="B", type=flags.Folder(str))
@options.option(OutputSpec, "store")
@options.option(RunSpec, "mechanisms")
@click.option(
    "--pairs",
    type=click.IntRange(min=2),
    metavar="N",
    help="Two revisions: pairs of processes for each cell. Default: 12, and up to 48 where "
    "their noise asks for more.",
)
@click.option(
    "--fail", is_flag=True, help="Exit code 1 where something is worse; what is ambiguous is not."
)
@options.option(OutputSpec, "as_json")
@click.pass_context
def command(
    ctx: click.Context,
    before: str,
    after: str,
    store: Path,
    mechanisms: tuple[str, ...],
    pairs: int | None,
    fail: bool,
    as_json: bool,
) -> int:
    """Say of every figure that A and B share whether B is better, worse or the same.

    A and B are folders of records; or two mechanisms of one store (always so when --store is
    given); or two git revisions, which are built side by side, each with its own sources and
    packages, and timed in turns: what --impl names, by default the mechanisms whose sources differ.
    The exit code is 0 whatever changed, unless --fail is given, and 3 where nothing could be
    compared.

    \b
    python -m lra compare results/runs/monday results/runs/tuesday
    python -m lra compare results/runs/accepted results/runs/new --fail
    python -m lra compare performer linear
    python -m lra compare v1.2 main --impl performer
    """
    from lra.changes.comparison_report import changed_table, sentences
    from lra.report.write.markdown import plain_text

    named = ctx.get_parameter_source("store") is not click.core.ParameterSource.DEFAULT
    changes = None if named else _of_folders(before, after)
    meant = bool(mechanisms or pairs)
    if changes is None and not named and _are_revisions(before, after, meant=meant):
        changes = _of_revisions(before, after, mechanisms, pairs, quiet=as_json)
    elif meant:
        raise UsageError("--impl and --pairs are for two git revisions; leave them out")
    changes = changes or _of_mechanisms(before, after, store)
    if as_json:
        _print_json(changes)
    else:
        for sentence in sentences(changes):
            echo(sentence)
        table = changed_table(changes)
        if table is not None:
            echo(f"\n{plain_text(table, _SHOWN)}")
    if fail and changes.of("worse"):
        return REGRESSION
    known = any(line.change.verdict != "incomparable" for line in changes.lines)
    return 0 if known else INCONCLUSIVE


def stores(before: Path, after: Path) -> Changes:
    """Compare two stores; refuse folders that are none."""
    from lra.changes.compare import between_stores
    from lra.core.escape import escape_controls

    first, second = _evidence(before), _evidence(after)
    names = (escape_controls(before.resolve().name), escape_controls(after.resolve().name))
    if names[0] == names[1]:
        names = (escape_controls(str(before)), escape_controls(str(after)))
    return between_stores(first, second, names)


def _of_folders(before: str, after: str) -> Changes | None:
    """Compare two folders, with a note where they hide mechanisms of these names; None where
    neither is a folder."""
    from lra.core import catalogue

    folders = [Path(name) for name in (before, after)]
    kinds = dict(zip(folders, map(_kind, folders), strict=True))
    for folder, other in (folders, reversed(folders)):
        if kinds[folder] == "folder" != kinds[other]:
            what = f"'{folder}' is a folder and '{other}' is not one"
            if kinds[other] is None:
                what = f"'{folder}' is a folder, and there is no such folder '{other}'"
            raise UsageError(
                f"{what}; give two stores, or two mechanisms with the --store that has them"
            )
    if kinds[folders[0]] != "folder":
        return None
    if {before, after} <= set(catalogue.names("mechanism")):
        words = f"'{before}' and '{after}' are folders here; for the mechanisms give their --store"
        echo(f"lra: {words}", err=True)
    return stores(*folders)


def _kind(path: Path) -> str | None:
    from lra.core.errors import ensure_readable
    from lra.core.paths import path_kind

    with ensure_readable(f"'{path}'"):
        return path_kind(path)


def _are_revisions(before: str, after: str, *, meant: bool) -> bool:
    """Whether git knows both names, and neither is a mechanism of ours.

    Raises `UsageError` for an unknown name where git knows the other one, or where both are `meant`
    to be revisions.
    """
    from lra.core import catalogue
    from lra.engine.gate.revision import commit_of

    if {before, after} & set(catalogue.names("mechanism")):
        return False
    unknown = []
    for name in (before, after):
        try:
            commit_of(name)
        except LraError as error:
            unknown.append(error)
    if unknown and (meant or len(unknown) == 1):
        raise unknown[0]
    return not unknown


def _of_revisions(
    before: str, after: str, mechanisms: tuple[str, ...], pairs: int | None, *, quiet: bool
) -> Changes:
    """Build two revisions, time them in turns, and keep both stores."""
    from lra.core.catalogue import expand
    from lra.engine.gate.affected import changed_mechanisms, hash_sources
    from lra.engine.gate.interleave import differences
    from lra.engine.gate.revision import build, work_tree
    from lra.engine.gate.times import TimeComparison
    from lra.engine.machine.host import default_device
    from lra.engine.process.signals import raise_terminated

    log = on_stderr(quiet=quiet)
    with raise_terminated(), work_tree(before) as one, work_tree(after) as other:
        names = [target.reference for target in expand("mechanism", mechanisms)]
        first, second = hash_sources(one), hash_sources(other)
        names = names or [n for n in changed_mechanisms(first, second) if n in first.mechanisms]
        if not names:
            raise UsageError(
                f"no mechanism's sources differ between {before} and {after}; name what to time "
                "all the same with --impl"
            )
        if first.timing != second.timing:
            raise _IncomparableError(f"the code that times differs between {before} and {after}")
        sides = (build(before, one, log), build(after, other, log))
        if why := differences(sides):
            raise _IncomparableError(why)
        keep = Path("results/runs") / f"{one.name}..{other.name}"
        # Records already there belong to another comparison of the two.
        shutil.rmtree(keep, ignore_errors=True)
        found = TimeComparison(sides, default_device(), pairs, {}, log).changes(names, keep)
    log(f"records: {keep / 'A'} and {keep / 'B'}")
    return found


def _of_mechanisms(before: str, after: str, store: Path) -> Changes:
    from lra.changes.compare import between_mechanisms

    for name in (before, after):
        if "/" in name and _kind(Path(name)) is None:
            raise UsageError(
                f"no folder '{name}', and no such revision or mechanism; give two stores, or two "
                f"mechanisms of '{store}'"
            )
    found = _evidence(store)
    names = (_require_known(before, found, store), _require_known(after, found, store))
    return between_mechanisms(found, names)


def _evidence(folder: Path) -> Evidence:
    from lra.report.load.select import join
    from lra.store import Store

    return join(Store(folder).existing().records(), [])


def _require_known(name: str, found: Evidence, store: Path) -> str:
    """Refuse a name without a mechanism or row in the store."""
    from lra.core import catalogue
    from lra.core.errors import unknown_name

    mechanisms = set(found.figures["mechanism"]) - {""}
    if name not in mechanisms and name not in set(found.figures["label"]):
        if name in catalogue.names("mechanism"):
            raise UsageError(
                f"the store '{store}' has no record of '{name}'; first: python -m lra run "
                f"--impl {name} --store {store}"
            )
        if not mechanisms:
            raise UsageError(
                f"'{name}' is neither a folder of records nor a mechanism, and the store "
                f"'{store}' holds none; check the spelling"
            )
        raise UsageError(f"the store '{store}': {unknown_name('mechanism', name, mechanisms)}")
    return name


def _print_json(changes: Changes) -> None:
    import msgspec

    from lra.changes.comparison_report import sentences
    from lra.changes.words import line_cell, line_label, reason_words, side_words

    lines = []
    for line in changes.lines:
        before, after = side_words(line)
        said = {
            "mechanism": line_label(line),
            "cell": line_cell(line),
            "figure": line.quantity.name,
            "before": before,
            "after": after,
            "why": reason_words(line),
        }
        lines.append({**said, **msgspec.to_builtins(line.change)})
    echo_json({"sentences": sentences(changes), "figures": lines}, indented=True)
