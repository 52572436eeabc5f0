"""Place in somebody's code where an exception came up, by the file's bare name."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(_ROOT / room for room in ("attention_impls", "lra", "tasks"))


def place_of(error: BaseException, module: str = "") -> str:
    """Return ` (mine.py, line 12)`: the innermost frame in a module, its siblings or its package;
    empty where none is there.

    `module` is dotted, or the path of a Python file; without one every frame counts.
    """
    homes = _source_folders(module)
    frames = [
        f" ({Path(frame.f_code.co_filename).name}, line {line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not module or any(_is_inside(Path(frame.f_code.co_filename), home) for home in homes)
    ]
    return frames[-1] if frames else ""


def _source_folders(module: str) -> list[Path]:
    """Folder of a file, folders of a package, or the single file of a module of ours."""
    if module.endswith(".py"):
        return [Path(module).parent]
    top = module.partition(".")[0]
    ours = top in {room.name for room in _OURS}
    places: Iterable[str | None] = []
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(module if ours else top)
        if spec is not None:
            places = (not ours and spec.submodule_search_locations) or [spec.origin]
    return [Path(place) for place in places if place is not None]


def _is_inside(file: Path, home: Path) -> bool:
    """Whether a file belongs to `home`; files of an environment inside it, and ours, do not."""
    if file != home and any(file.is_relative_to(room) for room in _OURS):
        return False
    return file.is_relative_to(home) and "site-packages" not in file.relative_to(home).parts
