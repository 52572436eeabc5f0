from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """As many threads as the file's `THREADS` says."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.module.THREADS)
    yield
    torch.set_num_threads(before)
