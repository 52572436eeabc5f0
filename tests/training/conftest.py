from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch


@pytest.fixture(scope="session")
def toy() -> ModuleType:
    """The module beside this file, under any import mode."""
    spec = importlib.util.spec_from_file_location("training_toy", Path(__file__).parent / "toy.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums on several threads may add in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
