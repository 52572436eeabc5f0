"""One metadata file of Pathfinder with the folder of images that it describes.

Despite its name `metadata/<k>.npy` is text, a line for each image with 11 fields parted by single
spaces: folder, file, number, label (1: one path joins the discs), continuity, contour length,
distractor length, paddle length, paddle thickness, paddle margin and number of contrasts. The
generator of today writes the same fields as a numpy array of strings.

Splits are 8 : 1 : 1 by the hash of the pixels, under either rules: the original cut a TFDS build by
its order, which nobody can make again, and every port since has cut in another way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lra.core.errors import DataError
from tasks.contract import Example, OnDefect
from tasks.sources.file_tree import FileTree
from tasks.sources.holdout import assigned, content_key
from tasks.sources.npy import MAGIC, read_npy
from tasks.sources.png import png_pixels
from tasks.sources.tables import bad_row, read_label, shown, sound

EASIEST = "curv_baseline"
"""The level of contour length 6."""

_KNOWN_EMPTY = (32, EASIEST, "imgs/0/sample_172.png")
"""Side, level and name of an image of the release that has no bytes; the original, too, leaves it
out."""

_FIELDS = 11


def shard_examples(
    tree: FileTree, level: str, number: str, side: int, on_defect: OnDefect
) -> Iterator[Example]:
    """Yield the images that `metadata/<number>.npy` of a level names, in its order.

    Faults of a line, an image or the whole file go to `on_defect`.
    """
    where, folder = tree.called(level, "metadata", f"{number}.npy"), f"imgs/{number}"
    there = tree.names(level, folder)
    try:
        described = f"{number}.npy" in tree.names(level, "metadata")
        what = ""
        if not described and not there:
            what = f"and {folder} are missing, though later ones are there"
        elif not described:
            what = f"is missing beside {folder}"
        elif not there:
            what = f"has no images {folder}"
        if what:
            raise DataError(f"'{where}' {what}; copy or unpack the set again")
        rows = _rows(where, tree.read(level, "metadata", f"{number}.npy"))
    except DataError as defect:
        on_defect(defect)
        return
    named: set[str] = set()

    def read(row: int, fields: list[str]) -> Example | None:
        image = _image(where, row, fields, folder)
        name = shown(f"{folder}/{image}")
        if image in named:
            raise bad_row(where, row, f"{name} is named twice; remove a line")
        named.add(image)
        label = read_label(where, row, fields[3].encode("utf-8", "replace"), classes=2)
        if image not in there:
            raise bad_row(where, row, f"{name} is missing; unpack the set again")
        return _example(tree, (level, folder, image), side, label)

    yield from filter(None, sound(enumerate(rows, 1), read, on_defect))
    unnamed = sorted(image for image in there - named if image.endswith(".png"))
    # A line that names no image of its own was told, and is the one that some image lacks.
    if len(unnamed) > len(rows) - len(named & there):
        on_defect(
            DataError(
                f"'{tree.called(level, folder)}' has images that '{where}' does not name: "
                f"{len(unnamed)}, the first {unnamed[0]}; copy or unpack the set again"
            )
        )


def described_paddles(tree: FileTree, level: str, number: str) -> int | None:
    """Return the contour length on the first line of `metadata/<number>.npy`; None where there is
    no such line, which reading it then tells."""
    try:
        where = tree.called(level, "metadata", f"{number}.npy")
        fields = _rows(where, tree.read(level, "metadata", f"{number}.npy"))[0]
        return int(fields[5])
    except (DataError, IndexError, ValueError):
        return None


def _rows(where: str, content: bytes) -> list[list[str]]:
    """The fields of each image, whichever way they are written."""
    if not content.startswith(MAGIC):
        return [line.split(" ") for line in content.decode("utf-8", "replace").splitlines()]
    table = read_npy(where, content)
    if table.dtype.kind not in "US" or table.ndim != 2:
        raise DataError(
            f"'{where}' holds {table.dtype} of {table.shape}; give strings of (N, {_FIELDS})"
        )
    texts = np.char.decode(table, "utf-8", "replace") if table.dtype.kind == "S" else table
    rows: list[list[str]] = texts.tolist()
    return rows


def _image(where: str, row: int, fields: list[str], folder: str) -> str:
    """The name of the image that a line describes."""
    if len(fields) != _FIELDS:
        raise bad_row(where, row, f"{len(fields)} fields, not {_FIELDS}; unpack the set again")
    if fields[0] != folder:
        raise bad_row(where, row, f"the folder is {shown(fields[0])}, not {folder}; correct it")
    return fields[1]


def _example(tree: FileTree, place: tuple[str, str, str], side: int, label: int) -> Example | None:
    """An image at its level, folder and name; None for the one that is known to be empty."""
    content = tree.read(*place)
    level, folder, image = place
    if not content and (side, tree.last(level), f"{folder}/{image}") == _KNOWN_EMPTY:
        return None
    try:
        tokens = png_pixels(content, side, ("L",)).reshape(-1)
    except ValueError as error:
        raise DataError(f"'{tree.called(*place)}' {error}") from error
    return Example(assigned(content_key(tokens.tobytes())), (tokens,), label)
