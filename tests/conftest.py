"""Tests that run side by side (`-n`) leave each other the cores: one thread each, set before torch
is imported."""

from __future__ import annotations

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
