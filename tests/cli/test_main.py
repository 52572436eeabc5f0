"""How the command line ends when it is not a verb that ends it."""

from __future__ import annotations

import pytest

from lra.engine import host

INTERRUPTED = 130


def test_ctrl_c_outside_the_pool_is_one_line_and_exit_130(
    lra_here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(host, "gpus", interrupted)
    ran = lra_here("doctor")
    assert ran.returncode == INTERRUPTED
    # The empty line ends the one on which the terminal has shown ^C.
    assert ran.stderr == "\nlra: interrupted; finished cells are kept, run again to continue\n"
