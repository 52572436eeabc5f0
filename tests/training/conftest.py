from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def toy() -> ModuleType:
    """The module beside this file, under any import mode."""
    spec = importlib.util.spec_from_file_location("training_toy", Path(__file__).parent / "toy.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def on_one_thread(one_thread: None) -> None:
    """Models and inputs are small throughout."""
