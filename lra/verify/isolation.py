"""Runs a function in a forked child with a time limit, and returns how the child ended if it gave
no answer.

The parent must not have computed with threads, nor touched a GPU: neither survives a fork.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Literal

import msgspec

from lra.core.findings import Finding
from lra.core.traceback_place import place_of


@dataclass(frozen=True)
class Ending:
    """End of a child that gave no answer."""

    ending: Literal["timeout", "crash"]
    words: str


def run_isolated(function: Callable[[], Finding], timeout: float) -> Finding | Ending:
    """Return the result of `function` in a child process, or how the child ended."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    with ours:
        child = context.Process(target=_answer, args=(function, theirs), daemon=True)
        child.start()
        theirs.close()
        try:
            if not ours.poll(timeout):
                return Ending("timeout", f"no answer within {timeout:g} s; the check was ended")
            answer = msgspec.msgpack.decode(ours.recv_bytes(), type=Finding | str)
            return answer if isinstance(answer, Finding) else Ending("crash", answer)
        except EOFError:
            child.join()
            return Ending("crash", _words(child.exitcode or 0))
        finally:
            child.kill()
            child.join()


def _answer(function: Callable[[], Finding], connection: Connection) -> None:
    answer: Finding | str
    try:
        answer = function()
    except SystemExit as error:
        # Without this an exit code 0 would look like success without an answer.
        answer = f"it calls exit({'' if error.code is None else repr(error.code)}){place_of(error)}"
    connection.send_bytes(msgspec.msgpack.encode(answer))


def _words(exit_code: int) -> str:
    if exit_code < 0:
        return f"the process was killed by {signal.Signals(-exit_code).name}"
    return f"it ended its process with exit code {exit_code}, as os._exit does, and gave no answer"
