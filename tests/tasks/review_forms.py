"""Reviews in every form that labelled texts are read in."""

import csv
import gzip

import pyarrow as pa
import pyarrow.parquet as pq


def review(index):
    return f'Film {index}: "déjà vu", said\nthe critic, {index * 7919 % 1000} times <br />'


# Sorted by label, as the archive and the hub have them.
TRAIN = sorted(((review(i), i % 2) for i in range(400)), key=lambda row: row[1])
TEST = sorted(((review(i), i % 2) for i in range(400, 500)), key=lambda row: row[1])
WITH_SPLIT = [(*row, "train") for row in TRAIN] + [(*row, "test") for row in TEST]


def write_parquet(path, rows, **more):
    texts, labels = zip(*rows, strict=True)
    pq.write_table(pa.table({"text": list(texts), "label": list(labels), **more}), path)


def write_csv(path, rows, header=("text", "label")):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])


def write_reviews(folder):
    for part, rows in (("train", TRAIN), ("test", TEST)):
        for side in ("neg", "pos", "unsup"):
            (folder / part / side).mkdir(parents=True)
        (folder / part / "unsup" / "0_0.txt").write_text("no label")
        for index, (text, label) in enumerate(rows):
            path = folder / part / ("pos" if label else "neg") / f"{index}_7.txt"
            path.write_bytes(text.encode())


def as_csv(folder):
    write_csv(folder / "imdb_train.csv", TRAIN)
    write_csv(folder / "imdb_test.csv", TEST)
    return folder / "imdb_test.csv"


def as_parquet(folder):
    write_parquet(folder / "imdb_train.parquet", TRAIN)
    write_parquet(folder / "imdb_test.parquet", TEST)
    return folder


def as_shards(folder):
    write_parquet(folder / "train-00000-of-00002.parquet", TRAIN[:150])
    write_parquet(folder / "train-00001-of-00002.parquet", TRAIN[150:])
    write_parquet(folder / "test-00000-of-00001.parquet", TEST)
    write_parquet(folder / "unsupervised-00000-of-00001.parquet", [("x", -1)])
    return folder


def as_one_parquet(folder):
    words = [word for _, _, word in WITH_SPLIT]
    write_parquet(folder / "reviews.parquet", TRAIN + TEST, split=words)
    return folder / "reviews.parquet"


def as_packed_csv(folder):
    write_csv(folder / "a.csv", WITH_SPLIT, ("text", "label", "split"))
    (folder / "reviews.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    return folder / "reviews.csv.gz"


def as_reviews(folder):
    write_reviews(folder / "aclImdb")
    return folder / "aclImdb"


FORMS = [as_parquet, as_csv, as_shards, as_one_parquet, as_packed_csv, as_reviews]
