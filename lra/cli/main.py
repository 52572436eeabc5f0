"""The group of verbs: a verb's file is imported when it is asked for, and errors become one
line."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

import click

from lra.cli.echo import echo
from lra.cli.exit_codes import CLOSED_PIPE, INTERRUPTED
from lra.core.errors import (
    LraError,
    UsageError,
    closest_names,
    system_reason,
    truncate,
    unknown_name,
)
from lra.core.escape import escape_controls
from lra.core.version import __version__

VERBS = (
    "run", "sweep", "verify", "report", "compare", "pack", "check", "baseline", "list", "show",
    "data", "doctor", "identity",
)  # fmt: skip
"""Verbs in the order of a user's day; a verb's name is its file's name."""


_NUMBERS = {
    "not a valid integer range": "not a whole number",
    "not a valid float": "not a number",
}
"""Click's words for a value that is no number, and plainer ones."""

_MECHANISMS = ("attention", "mechanism", "method", "model", "models")
"""Flags that may name a mechanism in other tools."""

_SURE = 0.8
"""Likeness from which on an unknown flag counts as a misspelling."""

_REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Error numbers of a disk that is full or read-only: never a fault of ours, wherever they come
up."""
_NO_TEMPORARY = "No usable temporary directory"
"""Python's message where no temporary folder can be written; its error number is that of a missing
file."""

_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)")


class _Verbs(click.Group):
    """A click group whose commands are imported by name, when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            raise unknown_name("command", cmd_name, VERBS)
        return _command(cmd_name)


def _command(verb: str) -> click.Command:
    command = importlib.import_module(f"lra.cli.{verb}").command
    assert isinstance(command, click.Command)
    return command


@click.command(
    cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="lra")
def lra_command() -> None:
    """Measure attention: quality, speed and memory of mechanisms on long sequences.

    \b
    First contact:   python -m lra run --impl performer
    Names:           python -m lra list impls
    """


def _show_warning_once() -> Callable[..., None]:
    """Return a printer of warnings, without the place in our code that raised them, and each once:
    a record that cannot be read comes up again and again."""
    shown = set[str]()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            _print_error(f"warning: {message}")

    return show


def _print_error(text: str) -> None:
    """Print an error, on one line whatever names are in it, and however long."""
    echo(f"lra: {truncate(escape_controls(text))}", err=True)


def _remedy(error: click.ClickException) -> str:
    """The remedy for a mistake that click names without one."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    flags = f"all flags: {error.ctx.command_path} --help"
    if isinstance(error, click.MissingParameter):
        # Click itself lists the values of a choice.
        return f" A{flags[1:]}" if error.format_message().endswith(".") else ""
    if isinstance(error, click.NoSuchOption) and not error.possibilities:
        # Before 8.4 click's message ends without a full stop.
        stop = "" if error.message.endswith(".") else "."
        if any("--set" in parameter.opts for parameter in error.ctx.command.params):
            return f"{stop} A mechanism's settings are --set NAME=VALUE; {flags}"
        return f"{stop} For {flags}"
    if _EXTRA.match(error.message):
        return f"; lists have commas and no spaces; {flags}"
    return ""


def _misplaced(error: click.ClickException) -> str | None:
    """The remedy for names given without their flag; None for other mistakes."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return None
    extra, parameters = _EXTRA.match(error.message), error.ctx.command.params
    if extra is None or any(isinstance(one, click.Argument) for one in parameters):
        return None
    from lra.cli.flags import known_names

    words = extra[1].split()
    if not words:
        return None
    known = {flag for one in parameters for flag in one.opts} & {"--impl", "--task"}
    if "--task" in known and ("--impl" not in known or words[0] in known_names("task")):
        flag, kind = "--task", "tasks"
    elif known:
        flag, kind = "--impl", "mechanisms"
    else:
        return None
    return (
        f"unexpected '{' '.join(words)}'; name {kind} with {flag} {','.join(words)}, several with "
        "commas and no spaces"
    )


def _of_mechanisms(error: click.ClickException) -> str | None:
    """The remedy for a flag of other tools that names mechanisms; None for other mistakes."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    asked, known = error.option_name.removeprefix("--"), _long_flags(error.ctx.command)
    if asked not in _MECHANISMS or "impl" not in known:
        return None
    path = error.ctx.command_path
    model = ""
    if asked == "model" and {"set", "task"} <= known:
        model = ", and fields of the model around them set with --set model.layers=2"
    return (
        f"{path.rpartition('lra ')[2]} has no --{asked}; mechanisms are named with --impl{model}; "
        f"all flags: {path} --help"
    )


def _of_another_verb(error: click.ClickException) -> str | None:
    """The remedy for a flag that another verb has, or nearly so; None for other mistakes."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    # Without their dashes, which make all of them alike.
    asked, own = error.option_name.removeprefix("--"), _long_flags(error.ctx.command) | {"help"}
    others = {verb: _long_flags(_command(verb)) for verb in VERBS}
    found = closest_names(asked, own.union(*others.values()))
    if not found or found[0] in own or not _is_slip(asked, found[0]):
        return None
    verbs = [verb for verb, flags in others.items() if found[0] in flags]
    path = error.ctx.command_path
    return (
        f"{path.rpartition('lra ')[2]} has no --{asked}; --{found[0]} is of {', '.join(verbs)}; "
        f"all flags: {path} --help"
    )


def _is_slip(asked: str, flag: str) -> bool:
    """Whether a flag is surely a misspelling of another: many a setting of a mechanism resembles
    one a little."""
    swapped = sorted(asked) == sorted(flag)
    return swapped or SequenceMatcher(None, asked, flag).ratio() >= _SURE


def _long_flags(command: click.Command) -> set[str]:
    return {flag[2:] for one in command.params for flag in one.opts if flag.startswith("--")}


def _refuse_undecoded(arguments: Sequence[str]) -> None:
    """Raise `UsageError` for a word that is not UTF-8: a job with such a name in it could not be
    sent to a worker."""
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"'{word}' is not UTF-8; rename what it names") from error


def _is_of_output(error: OSError) -> bool:
    """Whether an error came up where a line was printed."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code is click.echo.__code__ for frame, _ in frames)


def _let_go_of_output() -> None:
    """Discard the output still to be written, so that Python does not try again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code.

    0 pass, 1 broken claims, a regression or defects of data, 2 usage, 3 inconclusive, 4 cells
    failed, 130 interrupted, 141 nobody reads on, as the README has them. An error that a user
    cannot mend keeps its traceback.
    """
    warnings.showwarning = _show_warning_once()
    out = sys.stdout
    try:
        _refuse_undecoded(arguments)
        code = lra_command.main(
            list(arguments),
            prog_name="python -m lra" if sys.argv[0].endswith("__main__.py") else "lra",
            complete_var="_LRA_COMPLETE",
            standalone_mode=False,
        )
    except SystemExit:
        if sys.stdout is out:
            raise
        # Click has found that nobody reads on, as behind `| head`, and puts a dummy there.
        return CLOSED_PIPE
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        # Click tells a missing choice in several lines.
        text = " ".join(error.format_message().split())
        for theirs, ours in _NUMBERS.items():
            text = text.replace(theirs, ours)
        known = _misplaced(error) or _of_mechanisms(error) or _of_another_verb(error)
        _print_error(known or f"{text}{_remedy(error)}")
        return error.exit_code
    except click.Abort:
        # Click's exception for Ctrl-C, with the line of ^C ended.
        echo("lra: interrupted; finished cells are kept, run again to continue", err=True)
        return INTERRUPTED
    except LraError as error:
        _print_error(str(error))
        return error.exit_code
    except OSError as error:
        if not _is_of_output(error):
            if error.errno not in _REFUSED and _NO_TEMPORARY not in str(error):
                raise
            where = f" '{error.filename}'" if error.filename else ""
            _print_error(
                f"cannot write{where}: {system_reason(error)}; make room, then run the same "
                "command again"
            )
            return LraError.exit_code
        _let_go_of_output()
        _print_error(
            f"cannot write the output: {system_reason(error)}; make room or send it elsewhere"
        )
        return UsageError.exit_code
    return code if isinstance(code, int) else 0
