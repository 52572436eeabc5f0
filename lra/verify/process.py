"""Settings of the process that a mechanism has no business to change."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def settings() -> dict[str, object]:
    """Return the settings of this process, by a name that a finding can show."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
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
    }


@contextmanager
def unusual(*, double: bool) -> Iterator[None]:
    """Set what no mechanism would set: setting the usual value shows against it, also where it was
    set before anybody looked. `double` makes float64 the default dtype."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    precision, errors = torch.get_float32_matmul_precision(), np.geterr()
    flags = _flags()
    torch.set_num_threads(2 if threads != 2 else 3)
    torch.set_float32_matmul_precision("high" if precision != "high" else "highest")
    np.seterr(under="warn")
    _set_flags([not flag for flag in flags])
    if double:
        torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
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
