"""Small Pathfinder sets as the release lays them out, written for the tests of its reader."""

import io
import zipfile

import numpy as np
from PIL import Image as Pillow

from tasks.pathfinder import Pathfinder, PathfinderConfig

HARD, MIDDLE, EASY = "curv_contour_length_14", "curv_contour_length_9", "curv_baseline"
SHARDS = range(11)
"""More than ten, so that their order is not that of their names as texts."""
IN_SHARD = 30
WHOLE = len(SHARDS) * IN_SHARD


def image(level, shard, number, side=32):
    seed = [*level.encode(), shard, number]
    return np.random.default_rng(seed).integers(0, 256, (side, side), dtype=np.uint8)


def label(shard, number):
    return (shard + number * number) % 2


def png(pixels, mode="L"):
    stream = io.BytesIO()
    Pillow.fromarray(pixels).convert(mode).save(stream, "PNG")
    return stream.getvalue()


def lines(shard):
    rest = "1.0 14 4 2 0.5 1 1"
    names = ((n, f"imgs/{shard} sample_{n}.png {n}") for n in range(IN_SHARD))
    return [f"{name} {label(shard, n)} {rest}" for n, name in names]


def text(rows):
    return "".join(f"{row}\n" for row in rows).encode()


def saved(array, **more):
    stream = io.BytesIO()
    np.save(stream, array, **more)
    return stream.getvalue()


def array(rows):
    return saved(np.array([row.split(" ") for row in rows]))


def level_files(level, side=32, metadata=text):
    """Name and content of each file of a level."""
    made = {f"metadata/{shard}.npy": metadata(lines(shard)) for shard in SHARDS}
    for shard in SHARDS:
        for n in range(IN_SHARD):
            made[f"imgs/{shard}/sample_{n}.png"] = png(image(level, shard, n, side))
    return made


def below(folder, files):
    return {f"{folder}/{name}": content for name, content in files.items()}


def set_files(*levels, metadata=text):
    made = {}
    for level in levels or (HARD, EASY):
        made |= below(level, level_files(level, metadata=metadata))
    return made


def write_folder(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def write_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def task(side=32, kind=Pathfinder, rules="fixed", **config):
    return kind(PathfinderConfig(**config), length=side * side, rules=rules)
