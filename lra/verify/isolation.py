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
            return msgspec.msgpack.decode(ours.recv_bytes(), type=Finding)
        except EOFError:
            child.join()
            return Ending("crash", _words(child.exitcode or 0))
        finally:
            child.kill()
            child.join()


def _answer(function: Callable[[], Finding], connection: Connection) -> None:
    connection.send_bytes(msgspec.msgpack.encode(function()))


def _words(exit_code: int) -> str:
    if exit_code < 0:
        return f"the process was killed by {signal.Signals(-exit_code).name}"
    return f"the process ended with exit code {exit_code} and no answer"
