"""Data hubs that are not to be asked, which libraries are told by variables of the environment."""

from __future__ import annotations

import os

VARIABLES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


def go_offline() -> None:
    """Tell the libraries that fetch data not to try; child processes inherit it."""
    for name in VARIABLES:
        os.environ[name] = "1"
