"""Pathfinder from the folders of the Long Range Arena release, or of the original generator.

A set of images R pixels a side is a folder `pathfinderR` with one folder for each level, and in a
level lie images, `imgs/<k>/sample_<i>.png`, and what they show, `metadata/<k>.npy`; see
`tasks.sources.pathfinder_shard`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from lra.core.errors import DataError
from tasks.contract import Part
from tasks.sources.file_tree import FileTree, file_tree
from tasks.sources.pathfinder_shard import EASIEST, described_paddles, shard_examples

SIDES = (32, 64, 128, 256)
"""Pixels a side of the sets that there are."""

HARDEST = 14
"""Paddles in a path of the arena's level, which is read where no other is asked for."""

LEVELS = {HARDEST: "curv_contour_length_14", 9: "curv_contour_length_9", 6: EASIEST}
"""Folders by contour length in paddles."""

_SET = re.compile(r"pathfinder\d+")
_METADATA = re.compile(r"(\d+)\.npy")


def pathfinder_parts(source: str, side: int, contour_length: int | None) -> Sequence[Part]:
    """Return a part for each metadata file, in the order of their numbers.

    `source` is a folder `pathfinderR`, a level in it, a zip of either, also alone in a folder, or
    the release's folder with a `pathfinderR` for each R. A source that is a level is taken, unless
    `contour_length` says another. Tokens are grey values as stored, uint8, row by row. Raises
    `DataError` where there is no set.
    """
    tree, level = _found(source, side, contour_length or HARDEST)
    paddles = _paddles(tree, level)
    if None not in (paddles, contour_length) and paddles != contour_length:
        raise DataError(
            f"'{tree.called(level)}' holds paths of {paddles} paddles, contour_length is "
            f"{contour_length}; name the other level, or write parameters = "
            f"{{ contour_length = {paddles} }} in the task's table of a scale file",
            reached=False,
        )
    described = {_number(tree, level, name) for name in tree.names(level, "metadata")}
    drawn = {name for name in tree.names(level, "imgs") if name.isdecimal()}
    numbers = sorted(described | drawn, key=lambda number: (int(number), number))
    if not numbers:
        raise DataError(f"'{tree.called(level)}' holds no images; copy or unpack the set again")
    return [
        Part(f"metadata/{number}.npy", partial(shard_examples, tree, level, number, side))
        for number in [*_gaps(numbers), *numbers]
    ]


def paddles_of(source: str, side: int, contour_length: int) -> int:
    """Return how many paddles the paths of a set have: what it says itself, else as asked."""
    return _paddles(*_found(source, side, contour_length)) or contour_length


def _paddles(tree: FileTree, level: str) -> int | None:
    """Paddles by a level's name, else by its metadata; None where neither says."""
    name = tree.last(level)
    known = next((paddles for paddles, called in LEVELS.items() if called == name), None)
    numbers = [
        match[1] for match in map(_METADATA.fullmatch, tree.names(level, "metadata")) if match
    ]
    if known is not None or not numbers:
        return known
    return described_paddles(tree, level, min(numbers, key=int))


def _gaps(numbers: Sequence[str]) -> Iterator[str]:
    """The first number that is missing in each gap: its part then says that it is."""
    there = sorted(map(int, numbers))
    for one, following in pairwise(there):
        if following > one + 1:
            yield str(one + 1)


def level_files(source: str, side: int, contour_length: int) -> list[tuple[str, Path]]:
    """Return name and path of every file that `pathfinder_parts` reads: those of the level, under
    the names that they have in it, or the zip."""
    tree, level = _found(source, side, contour_length)
    if tree.packed:
        return [(tree.root.name, tree.root)]
    drawn = sorted(name for name in tree.names(level, "imgs") if name.isdecimal())
    folders = ["metadata", *(f"imgs/{name}" for name in drawn)]
    return [
        (f"{folder}/{name}", Path(tree.root, level, folder, name))
        for folder in folders
        for name in sorted(tree.names(level, folder))
    ]


def _found(source: str, side: int, contour_length: int) -> tuple[FileTree, str]:
    """The files of a source, and the level in them that is asked for."""
    if side not in SIDES:
        raise DataError(
            f"'{source}': real Pathfinder images have {', '.join(map(str, SIDES))} pixels a side, "
            f"here it is {side}; use a scale with pathfinder at length {SIDES[0] ** 2}: small, "
            f"compact, paper",
            reached=False,
        )
    tree = file_tree(source)
    alone = None if tree.packed or len(tree.names()) != 1 else next(iter(tree.names()))
    if alone is not None and alone.lower().endswith(".zip"):
        tree = file_tree(str(tree.root / alone))
    return tree, _level(tree, side, contour_length)


def _level(tree: FileTree, side: int, contour_length: int) -> str:
    """The folder that holds `imgs` and `metadata`, found by going down from the root."""
    folder = ""
    while not {"imgs", "metadata"} & (there := tree.names(folder)):
        if there & set(LEVELS.values()):
            # A zip of a level holds nothing but its folder.
            alone = tree.packed and not folder and len(there) == 1
            name = next(iter(there)) if alone else _named(tree, folder, contour_length)
        elif any(map(_SET.fullmatch, there)):
            name = f"pathfinder{side}"
            if name not in there:
                sets = ", ".join(sorted(filter(_SET.fullmatch, there)))
                raise DataError(
                    f"'{tree.called(folder)}' has no {name}, only {sets}; give the images of "
                    f"{side} x {side} pixels, or choose the task and length of those"
                )
        elif len(there) == 1:
            name = next(iter(there))
        else:
            raise DataError(
                f"'{tree.called(folder)}' is no Pathfinder set; give a folder or zip with "
                f"{', '.join(LEVELS.values())}, or with imgs and metadata"
            )
        folder = f"{folder}/{name}" if folder else name
    return folder


def _named(tree: FileTree, folder: str, contour_length: int) -> str:
    """The level of a contour length."""
    there = sorted(tree.names(folder) & set(LEVELS.values()))
    name = LEVELS.get(contour_length)
    if name not in there:
        wanted = name or f"level of contour length {contour_length}"
        known = ", ".join(f"{length} is {level}" for length, level in LEVELS.items())
        raise DataError(
            f"'{tree.called(folder)}' has no {wanted}, only {', '.join(there)}; "
            f"name one of these, or set contour_length ({known})"
        )
    return str(name)


def _number(tree: FileTree, level: str, name: str) -> str:
    """The number of a metadata file, as it is written."""
    match = _METADATA.fullmatch(name)
    if match is None:
        where = tree.called(level, "metadata", name)
        raise DataError(f"'{where}' is not named by a number as 0.npy is; rename or remove it")
    return match[1]
