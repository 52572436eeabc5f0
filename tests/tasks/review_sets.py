"""Small reviews as a source, prepared, hashed and opened as a run does."""

from pathlib import Path

from review_forms import write_csv
from set_reader import ALL

import tasks.text
from lra.core.protocol import DataSpec
from tasks.sources.data_hash import content_hash, prepared_name
from tasks.sources.opening import open_or_prepare
from tasks.sources.whole_sets import prepare_whole
from tasks.text import Text, TextConfig

FILE = Path(tasks.text.__file__)


def review(index):
    return f"Film {index}: " + "very " * (index % 7) + "fine"


def write_reviews(folder):
    """Write 300 reviews to learn from and 60 to test on, and return the path of the first."""
    for word, numbers in (("train", range(300)), ("test", range(300, 360))):
        write_csv(folder / f"r_{word}.csv", [(review(i), i % 2) for i in numbers])
    return folder / "r_train.csv"


def text(length=1000, rules="fixed"):
    return Text(TextConfig(), length=length, rules=rules)


def prepare(source, folder, task=None):
    return prepare_whole(task or text(), "text", FILE, str(source), folder)


def asked(source, length=1000, rows=ALL):
    content = content_hash(str(source), "text", length=length, rules="fixed", parameters={})
    return DataSpec(task="text", source="file", hash=content, length=length, rows=rows)


def hashed(source, **changes):
    return prepared_name(FILE, asked(source, **changes))


def opened(source, cache, task, rows=ALL):
    spec = asked(source, task.length, rows)
    return open_or_prepare(task, spec, str(source), cache / prepared_name(FILE, spec))
