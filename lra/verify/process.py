"""Settings of the process that a mechanism has no business to change."""

from __future__ import annotations

import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.modules import module as hooks

STEERING = ("CUDA", "CUBLAS", "KMP", "MKL", "NUMEXPR", "OMP", "OPENBLAS", "PYTORCH", "TORCH")
"""Beginnings of the names of variables that steer libraries of computation."""
FILTERS = "filters of warnings"
_FUNCTIONS = [
    (owner, name)
    for owner in (torch, F, torch.Tensor)
    for name, one in vars(owner).items()
    if callable(one)
]
"""Functions and classes that somebody could replace for everybody, by their owner."""
LEVEL = logging.ERROR + 1
"""Level of logging that nobody sets."""


def settings() -> dict[str, object]:
    """Return the settings of this process, by a name that a finding can show."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    log = logging.getLogger()
    return {
        "the number of threads": torch.get_num_threads(),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "the default dtype": torch.get_default_dtype(),
        "the default device": str(torch.get_default_device()),
        "deterministic algorithms": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "the filling of empty tensors": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "gradient mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "anomaly detection": torch.is_anomaly_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "fused kernels": (
            cuda.flash_sdp_enabled(),  # type: ignore[no-untyped-call]
            cuda.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
            cuda.math_sdp_enabled(),  # type: ignore[no-untyped-call]
            cuda.cudnn_sdp_enabled(),  # type: ignore[no-untyped-call]
            torch.backends.mkldnn.enabled,
        ),
        "cuDNN": (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32),
        "products on a GPU": (
            cuda.matmul.allow_tf32,
            cuda.matmul.allow_fp16_reduced_precision_reduction,
            cuda.matmul.allow_bf16_reduced_precision_reduction,
        ),
        "numpy's floating-point errors": np.geterr(),
        "numpy's and torch's print options": (
            np.get_printoptions()["precision"],
            vars(torch._tensor_str.PRINT_OPTS).copy(),
        ),
        "the environment": dict(os.environ),
        "the limit of recursion": sys.getrecursionlimit(),
        FILTERS: (list(warnings.filters), torch.is_warn_always_enabled()),
        "the root logger": (
            log.level,
            list(log.handlers),
            log.disabled,
            logging.root.manager.disable,
        ),
        "the garbage collector": (gc.isenabled(), gc.get_threshold()),
        "the folder of work": Path.cwd(),
        "standard output": (sys.stdout, sys.stderr, sys.excepthook),
        "numbers too small for an exponent": _keeps_denormals(),
        "hooks of all modules": _hooks(),
        "functions of torch": [getattr(owner, name) for owner, name in _FUNCTIONS],
    }


def _keeps_denormals() -> bool:
    """Return whether torch keeps numbers below the least normal one: no function tells."""
    return bool(torch.tensor(2.0**-130, dtype=torch.float32) * 1.5 != 0)


def _hooks() -> list[int]:
    """Return how many hooks there are for every module."""
    return [
        len(table)
        for name, table in sorted(vars(hooks).items())
        if name.startswith("_global_") and isinstance(table, dict)
    ]


@contextmanager
def unusual(*, double: bool) -> Iterator[None]:
    """Set what no mechanism would set: setting the usual value shows against it, also where it was
    set before anybody looked. `double` makes float64 the default dtype."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    precision, errors = torch.get_float32_matmul_precision(), np.geterr()
    flags, environment, log = _flags(), dict(os.environ), logging.getLogger()
    logs: tuple[Any, ...] = (log.level, log.handlers, logging.root.manager.disable)
    torch.set_num_threads(2 if threads != 2 else 3)
    torch.set_float32_matmul_precision("high" if precision != "high" else "highest")
    np.seterr(under="warn")
    _set_flags([not flag for flag in flags])
    if double:
        torch.set_default_dtype(torch.float64)
    log.level, log.handlers, logging.root.manager.disable = LEVEL, [], logging.DEBUG - 1
    for name in environment:
        if name.startswith(STEERING):
            del os.environ[name]
    collects, keeps = gc.isenabled(), _keeps_denormals()
    gc.enable()
    torch.set_flush_denormal(False)
    try:
        with warnings.catch_warnings(record=True):
            warnings.resetwarnings()
            yield
    finally:
        torch.set_flush_denormal(not keeps)
        if not collects:
            gc.disable()
        os.environ.clear()
        os.environ.update(environment)
        log.level, log.handlers, logging.root.manager.disable = logs
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        np.seterr(**errors)
        _set_flags(flags)
        torch.set_default_dtype(dtype)


def _flags() -> list[bool]:
    """Return flags that change no result on a processor."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    return [
        cuda.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
        cudnn.benchmark,
        cudnn.deterministic,
        cuda.matmul.allow_fp16_reduced_precision_reduction,
        cuda.matmul.allow_bf16_reduced_precision_reduction,
    ]


def _set_flags(flags: list[bool]) -> None:
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    cuda.enable_mem_efficient_sdp(flags[0])
    cudnn.benchmark, cudnn.deterministic = flags[1:3]
    cuda.matmul.allow_fp16_reduced_precision_reduction = flags[3]
    cuda.matmul.allow_bf16_reduced_precision_reduction = flags[4]
