"""One rendering of the sample store that several tests read."""

from __future__ import annotations

import pytest

from lra.report import Rendered, render

from .sample import store


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    return render(*store(), tmp_path_factory.mktemp("report"), title="performer at mini")
