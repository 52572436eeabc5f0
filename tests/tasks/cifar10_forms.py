"""Small sets of pictures in every form of CIFAR-10."""

import gzip
import io
import lzma
import pickle
import re
import struct
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image as Pillow

from tasks.image import Image, ImageConfig
from tasks.sources.cifar10_pixels import grey

TRAIN, TEST = 60, 20
IMAGE = Image(ImageConfig(), length=1024)
BATCHES = [f"data_batch_{number}" for number in range(1, 6)]
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def drawn(rows, seed):
    """Colours, (rows, 3, 1024), and labels."""
    random = np.random.default_rng(seed)
    colours = random.integers(0, 256, (rows, 3, 1024), dtype=np.uint8)
    return colours, (np.arange(rows) * 7 % 10).astype(np.uint8)


SPLITS = {"train": drawn(TRAIN, 1), "test": drawn(TEST, 2)}
GREY = {split: grey(colours) for split, (colours, _) in SPLITS.items()}
FILES = {
    name: tuple(part[12 * i : 12 * i + 12] for part in SPLITS["train"])
    for i, name in enumerate(BATCHES)
} | {"test_batch": SPLITS["test"]}
"""The official files' colours and labels."""


def records(colours, labels):
    return np.concatenate([labels[:, None], colours.reshape(len(labels), -1)], axis=1).tobytes()


class Python2(pickle._Pickler):
    """Writes bytes and texts as Python 2 wrote its strings."""

    def save_string(self, value):
        content = value if isinstance(value, bytes) else value.encode("latin-1")
        self.write(pickle.BINSTRING + struct.pack("<i", len(content)) + content)
        self.memoize(value)

    dispatch = pickle._Pickler.dispatch | {bytes: save_string, str: save_string}


def python2(value):
    """The pickle that Python 2 and the numpy of its time would have written."""
    stream = io.BytesIO()
    Python2(stream, protocol=2).dump(value)
    old = stream.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    # A dtype's flags were numbers then.
    return re.sub(rb"(u1q.)\x89\x88", rb"\1" b"K\x00K\x01", old, count=1, flags=re.DOTALL)


def batch(colours, labels, /, **changes):
    names = [f"{i}.png" for i in range(len(labels))]
    held = {"data": colours.reshape(-1, 3072), "labels": labels.tolist(), "filenames": names}
    return {"batch_label": "a batch", **held, **changes}


def write_binary(folder, packed=""):
    for name, held in FILES.items():
        (folder / f"{name}.bin{packed}").write_bytes(PACK[packed](records(*held)))


def write_pickles(folder, dump=python2):
    for name, held in FILES.items():
        (folder / name).write_bytes(dump(batch(*held)))
    (folder / "batches.meta").write_bytes(dump({"label_names": ["airplane"]}))


def write_archive(path, members):
    """A tar of (name, content) in that order."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def png(picture, mode="RGB", side=32):
    """The PNG of a picture, (3, pixels) or, of one channel, (pixels,)."""
    pixels = picture.T.reshape(side, side, *picture.shape[:-1])
    stream = io.BytesIO()
    Pillow.fromarray(pixels).convert(mode).save(stream, "PNG")
    return stream.getvalue()


def table(colours, labels, column="img"):
    pictures = [{"bytes": png(picture), "path": f"{i}.png"} for i, picture in enumerate(colours)]
    return pa.table({column: pictures, "label": pa.array(labels, pa.int64())})


def write_table(path, made):
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(made, path)


def write_arrays(folder, colour=False, stem="", packed=""):
    for split, (colours, labels) in SPLITS.items():
        shape = colours.transpose(0, 2, 1).reshape(-1, 32, 32, 3)
        images = shape if colour else GREY[split].reshape(-1, 32, 32)
        for content, array in (("images", images), ("labels", labels)):
            stream = io.BytesIO()
            np.save(stream, array)
            path = folder / f"{stem}{split}_{content}.npy{packed}"
            path.write_bytes(PACK[packed](stream.getvalue()))
