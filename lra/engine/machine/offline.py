"""Offline mode: environment variables that keep libraries from asking data hubs."""

from __future__ import annotations

import os

VARIABLES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


def go_offline() -> None:
    """Set the libraries that fetch data to offline; child processes inherit it."""
    for name in VARIABLES:
        os.environ[name] = "1"
