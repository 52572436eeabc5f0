"""The folders of the Long Range Arena release, and which task each is for."""

from __future__ import annotations

from pathlib import Path

from lra.core.errors import DataError
from tasks.sources.files import existing, readable

FOLDERS = {
    "listops-1000": "listops",
    "tsv_data": "retrieval",
    "pathfinder32": "pathfinder",
    "pathfinder64": "pathfinder64",
    "pathfinder128": "path_x",
    "pathfinder256": "pathfinder256",
}
_ARCHIVES = (".tar.gz", ".tgz", "lra_release.gz")


def release_sets(source: str) -> dict[str, Path]:
    """Return the sets of an unpacked release by task; `DataError` where there is none."""
    path = existing(source)
    if path.is_file():
        if _is_archive(path):
            raise _packed(path)
        raise DataError(f"'{source}' is no release; name its folder, or the task that it is for")
    with readable(path):
        found = {task: path / name for name, task in FOLDERS.items() if (path / name).is_dir()}
        archives = sorted(file for file in path.iterdir() if file.is_file() and _is_archive(file))
    if found:
        return found
    if archives:
        raise _packed(archives[0])
    raise DataError(
        f"'{source}' holds no set of a release ({', '.join(FOLDERS)}); name the folder that does, "
        f"or the task that this one is for"
    )


def _is_archive(file: Path) -> bool:
    return file.name.lower().endswith(_ARCHIVES)


def _packed(file: Path) -> DataError:
    # The release's archive is a tar, though its name says .gz alone.
    return DataError(
        f"'{file}' is packed; unpack it: tar -xzf '{file}' -C '{file.parent}', and name the folder "
        f"that this makes"
    )
