"""dask-jobqueue, whose import would make an exit without a word of every Ctrl-C."""

from __future__ import annotations

import signal

_before = signal.getsignal(signal.SIGINT)

import dask_jobqueue as dask_jobqueue  # noqa: E402

signal.signal(signal.SIGINT, _before)
