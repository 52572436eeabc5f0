"""Small Pathfinder sets as the release lays them out, written for the tests of its reader."""

import io
import zipfile

import numpy as np
from PIL import Image as Pillow

from lra.core.protocol import Rows
from tasks.pathfinder import Pathfinder, PathfinderConfig

ALL = Rows(train=1000, validation=1000, test=1000)
HARD, MIDDLE, EASY = "curv_contour_length_14", "curv_contour_length_9", "curv_baseline"
SHARDS = tuple(range(11))
"""More than ten, so that their order is not that of their names as texts."""
IN_SHARD = 30


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
    return [
        f"imgs/{shard} sample_{n}.png {n} {label(shard, n)} 1.0 14 4 2 0.5 1 1"
        for n in range(IN_SHARD)
    ]


def text(rows):
    return "".join(f"{row}\n" for row in rows).encode()


def array(rows):
    stream = io.BytesIO()
    np.save(stream, np.array([row.split(" ") for row in rows]))
    return stream.getvalue()


def level_files(level, side=32, metadata=text):
    """Name and content of each file of a level."""
    made = {}
    for shard in SHARDS:
        made[f"metadata/{shard}.npy"] = metadata(lines(shard))
        for n in range(IN_SHARD):
            made[f"imgs/{shard}/sample_{n}.png"] = png(image(level, shard, n, side))
    return made


def below(folder, files):
    return {f"{folder}/{name}": content for name, content in files.items()}


def set_files(side=32, levels=(HARD, EASY), metadata=text):
    made = {}
    for level in levels:
        made |= below(level, level_files(level, side, metadata))
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


def task(side=32, kind=Pathfinder, **config):
    return kind(PathfinderConfig(**config), length=side * side)


def noted(source, **config):
    """What a reader says that goes on, and how many images it yields."""
    defects = []
    parts = task(**config).parts(str(source))
    count = sum(1 for part in parts for _ in part.examples(defects.append))
    return [str(defect) for defect in defects], count
