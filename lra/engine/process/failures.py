"""Outcome of a cell that raised: the status, the reason in one line, the traceback.

Apart from the worker, since a measurement's hash covers the worker: words are no part of a
measurement.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress

import msgspec
import torch

from lra.core import catalogue
from lra.core.catalogue import Kind
from lra.core.errors import LraError, UnsupportedError, UsageError
from lra.core.records import Failure
from lra.core.traceback_place import place_of
from lra.engine.jobs import Job, Outcome
from lra.engine.process.error_text import named_line

_OUT_OF_MEMORY = (
    "DefaultCPUAllocator",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUFFT_ALLOC_FAILED",
)
"""Messages of torch for memory errors without a class: on a CPU, and on a GPU outside of its
allocator."""

_TOO_OFTEN = "FailOnRecompileLimitHit"
"""Exception of torch's compiler; by name, since importing it takes seconds."""
_GAVE_UP = (
    "torch.compile gave up: the model had to be compiled anew too often, as for inputs of many "
    "lengths; leave execution=compiled out"
)


def outcome_of_exception(error: BaseException, phase: str, job: Job) -> Outcome:
    """Return the outcome of a cell that raised; print the traceback, unless it is only
    unsupported."""
    short = Failure(type=type(error).__name__, message=named_line(error), phase=phase)
    if isinstance(error, UnsupportedError):
        return Outcome(status="unsupported", failure=short)
    # The record keeps the end of this process's standard error.
    traceback.print_exception(error, file=sys.stderr)
    words = _GAVE_UP if short.type == _TOO_OFTEN else short.message
    words += "" if isinstance(error, LraError) else _place(error, job)
    failure = msgspec.structs.replace(short, message=words)
    if _is_out_of_memory(error):
        return Outcome(status="oom", failure=failure)
    if isinstance(error, SystemExit):
        message = f"the worker called sys.exit({error.code!r}) before it had a result"
        return Outcome(status="error", failure=msgspec.structs.replace(failure, message=message))
    return Outcome(status="error", failure=failure)


def _place(error: BaseException, job: Job) -> str:
    """Place of an exception: in the mechanism's or the task's code, if it passed there, else its
    origin."""
    references: dict[Kind, str] = {"mechanism": job.mechanism, "task": job.task}
    for kind, reference in references.items():
        # A file that is gone by now must not hide the error.
        with suppress(UsageError):
            target = catalogue.find(kind, reference) if reference else None
            if target and (inside := place_of(error, target.module)):
                return inside
    return place_of(error)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY)
