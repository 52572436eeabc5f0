"""Which of what a cell says of its progress its worker passes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lra.engine.jobs import Progress
from lra.engine.process import worker


def test_news_is_sent_at_once_and_the_rest_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, sent = 100.0, []
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: now))
    connection: Any = SimpleNamespace(
        send_bytes=lambda said: sent.append(msgspec.msgpack.decode(said, type=Progress))
    )
    report = worker._Phase(connection)

    begun, loss = Progress(phase="train", step=1), Progress(phase="train", step=2, loss=0.5)
    dull, later = Progress(phase="train", step=3), Progress(phase="train", step=4)
    for progress in (begun, loss, dull):
        report(progress)
    assert sent == [begun, loss]
    now += 1.1 * worker.REPORT_EVERY
    report(later)
    assert sent == [begun, loss, later]
