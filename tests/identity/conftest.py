from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.identity.toy import FILE


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[str], Path]:
    def tree(text: str) -> Path:
        (tmp_path / FILE).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / FILE).write_text(text, encoding="utf-8")
        return tmp_path

    return tree
