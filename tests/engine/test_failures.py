"""Status and reason of a cell that raised in a worker."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine_jobs import TOYS, timing

from attention_impls.contract import Context, Dims
from attention_impls.recurrent.s4d import S4d
from lra.core.errors import LraError, UnsupportedError
from lra.engine.jobs import Job, Outcome
from lra.engine.process.failures import _TOO_OFTEN, outcome_of_exception


def ended(error: BaseException, job: Job) -> Outcome:
    try:
        raise error
    except BaseException as raised:
        return outcome_of_exception(raised, "train", job)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("boom"), "error"),
        (MemoryError("boom"), "oom"),
        (RuntimeError("boom"), "error"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "oom"),
        (torch.OutOfMemoryError("boom"), "oom"),
        (torch.AcceleratorError("CUDA error: out of memory"), "oom"),
        (torch.AcceleratorError("CUDA error: unspecified launch failure"), "error"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"), "oom"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "oom"),
        (RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"), "oom"),
        (UnsupportedError("boom"), "unsupported"),
        (LraError("boom"), "error"),
    ],
)
def test_an_exception_is_a_status_with_its_words(
    tmp_path: Path, error: BaseException, status: str
) -> None:
    outcome = ended(error, timing("Toy", tmp_path))
    assert outcome.status == status and outcome.failure is not None
    kind, message = type(error).__name__, outcome.failure.message
    if isinstance(error, LraError):
        assert message == "boom"
    else:
        assert message.startswith(f"{kind}: {error} (test_failures.py, ")
    assert (outcome.failure.type, outcome.failure.phase) == (kind, "train")


def test_what_the_compiler_refuses_is_told_in_our_words(tmp_path: Path) -> None:
    error = type("FailOnRecompileLimitHit", (Exception,), {})("Hard failure")
    outcome = ended(error, timing("Toy", tmp_path))
    assert outcome.status == "error" and outcome.failure is not None
    assert outcome.failure.message.startswith("torch.compile gave up: ")
    assert "(test_failures.py, " in outcome.failure.message
    assert outcome.failure.type == "FailOnRecompileLimitHit"


def test_the_compilers_error_has_that_name() -> None:
    from torch._dynamo.exc import FailOnRecompileLimitHit

    assert FailOnRecompileLimitHit.__name__ == _TOO_OFTEN


@pytest.mark.parametrize("gone", ["gone.py:Toy", "no_such_module_here:Toy", "nothing-of-this-name"])
def test_what_cannot_be_found_any_more_hides_no_error(tmp_path: Path, gone: str) -> None:
    job = timing("Toy", tmp_path)
    job = Job(cell=job.cell, mechanism=gone, cache=job.cache)
    outcome = ended(ValueError("boom"), job)
    assert outcome.failure is not None
    assert outcome.failure.message.startswith("ValueError: boom (test_failures.py, line ")


def test_the_line_of_whoever_wrote_the_mechanism_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"import runpy\n\nrunpy.run_path({str(TOYS)!r})['Toy'](None)\n")
    job = Job(cell=timing("Toy", tmp_path).cell, mechanism=f"{file}:Mine", cache=str(tmp_path))
    with pytest.raises(Exception) as caught:
        exec(compile(file.read_text(), str(file), "exec"))
    outcome = outcome_of_exception(caught.value, "build", job)
    assert outcome.failure is not None and outcome.failure.message.endswith(" (mine.py, line 3)")


def test_a_line_of_our_own_mechanism_comes_before_torchs(tmp_path: Path) -> None:
    layer = S4d(Dims(width=4, qkv_width=4, heads=1, max_length=8))
    job = Job(cell=timing("Toy", tmp_path).cell, mechanism="s4d", cache=str(tmp_path))
    with pytest.raises(RuntimeError) as caught:
        layer.mix(torch.zeros(1, 8, 3), Context())
    outcome = outcome_of_exception(caught.value, "train", job)
    assert outcome.failure is not None and " (s4d.py, line " in outcome.failure.message
