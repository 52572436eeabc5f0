"""Meetings as QMSum's release has them: passages, parts, cuts, and how a file may break."""

import json
from pathlib import Path

import numpy as np
import pytest
from set_reader import ALL, noted, read_set, refused

import tasks.query_span
from lra.core.dataset import SPLITS
from lra.core.errors import DataError
from lra.core.protocol import DataSpec, Rows
from tasks.query_span import SEPARATOR, QuerySpan, QuerySpanConfig
from tasks.sources.checking import check_source
from tasks.sources.data_hash import hashed_files
from tasks.sources.opening import open_or_prepare
from tasks.sources.whole_sets import prepare_whole

FILE = Path(tasks.query_span.__file__)
WORDS = {"train": "train", "validation": "val", "test": "test"}
TURNS = [{"speaker": "Ö", "content": f"turn {n:02}"} for n in range(20)]
"""Each is a line of 12 bytes."""
TEXT = "".join(f"{turn['speaker']}: {turn['content']}\n" for turn in TURNS).encode()
"""240 bytes."""


def asked(query, *stretches):
    spans = [[str(first), str(last)] for first, last in stretches]
    return {"query": query, "answer": "It is.", "relevant_text_span": spans}


QUERIES = [
    asked("first", (0, 0)),  # bytes 0 to 11, the middle 6
    asked("across", (4, 6)),  # 48 to 83, 66
    asked("most at the end", (17, 19), (0, 0)),  # 0 to 11 and 204 to 239, 216
    asked("twice the same", (9, 12), (10, 11)),  # 108 to 155, 132
    asked("later", (8, 12)),  # 96 to 155, 126
]
PARTS = [0, 1, 3, 2, 2]
"""Numbers of four in which the middles lie."""


def meeting(queries=QUERIES, turns=TURNS):
    return {
        "topic_list": [{"topic": "x", "relevant_text_span": [["0", "99"]]}],
        "general_query_list": [{"query": "Summarize the meeting", "answer": "No."}],
        "specific_query_list": queries,
        "meeting_transcripts": turns,
    }


def write(path, *meetings):
    path.write_text("".join(json.dumps(one) + "\n" for one in meetings))


def release(folder, stem=""):
    for word in WORDS.values():
        write(folder / f"{stem}{word}.jsonl", meeting(), meeting(QUERIES[:1]))
    return folder


def task(length=1000, parts=4):
    return QuerySpan(QuerySpanConfig(parts=parts), length=length)


def rows(split):
    """Query, meeting and label of each row."""
    found = []
    for row in range(len(split)):
        tokens = split.sequence(row)
        place = tokens.tolist().index(SEPARATOR)
        halves = (tokens[:place], tokens[place + 1 :])
        query, text = (bytes((half - 1).astype(np.uint8)) for half in halves)
        found.append((query.decode(), text, int(split.labels[row])))
    return found


def test_rows_are_query_and_whole_meeting_with_the_part_of_the_passage_s_middle(tmp_path):
    data = read_set(task(), release(tmp_path))
    assert (data.classes, data.vocabulary, data.inputs) == (4, 258, 1)
    due = [(one["query"], TEXT, part) for one, part in zip(QUERIES, PARTS, strict=True)]
    for _, split in data:
        assert split.tokens.dtype == np.uint16
        assert rows(split) == [*due, due[0]]
    assert read_set(task(parts=240), tmp_path).train.labels.tolist() == [6, 66, 216, 132, 126, 6]


def test_a_cut_moves_the_parts_and_leaves_out_what_begins_beyond_it(tmp_path):
    """A query of 8 bytes and the separator take 9 of 129 tokens: 120 bytes are kept."""
    passages = {"question": [(8, 12)], "in parts": [(17, 19), (0, 0)],
                "too late": [(10, 12)], "half out": [(9, 9)]}  # fmt: skip
    queries = [asked(query, *stretches) for query, stretches in passages.items()]
    for word in WORDS.values():
        write(tmp_path / f"{word}.jsonl", meeting(queries))
    found = rows(read_set(task(length=129), tmp_path).test)
    # 96 to 119: 108 is in the last part. 0 to 11: 6. 120 is beyond. 108 to 119: 114.
    due = {"question": 3, "in parts": 0, "half out": 3}
    assert found == [(query, TEXT[:120], part) for query, part in due.items()]
    assert task(length=129).left_out(str(tmp_path)) == dict.fromkeys(SPLITS, 1)
    assert task(length=9).left_out(str(tmp_path)) == dict.fromkeys(SPLITS, 4)
    tallies = check_source(task(length=129), str(tmp_path), pytest.fail)
    assert [(tally.rows, tally.left_out) for tally in tallies.values()] == [(3, 1)] * 3


@pytest.mark.parametrize("stem", ["", "QMSum_"])
def test_a_folder_or_one_of_its_files(tmp_path, stem):
    release(tmp_path, stem)
    for name in ("notes.txt", "train.json", "._val.jsonl"):
        (tmp_path / name).write_text("not read")
    names = [f"{stem}{word}.jsonl" for word in ("test", "train", "val")]
    for source in ("", *names):
        assert len(read_set(task(), tmp_path / source).train) == 6
    assert [name for name, _ in hashed_files(str(tmp_path), "query_span")] == names


def test_blank_lines_do_not_count_and_integers_are_spans_too(tmp_path):
    release(tmp_path)
    path = tmp_path / "val.jsonl"
    one = {"query": "x", "relevant_text_span": [[4, 6]]}
    path.write_text("\n" + json.dumps(meeting([one])) + "\n\n")
    assert rows(read_set(task(), tmp_path).validation) == [("x", TEXT, 1)]


def with_test(content):
    """Write a sound release with another test file."""

    def make(folder):
        release(folder)
        held = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / "test.jsonl").write_bytes(held)

    return make


def without(*keys):
    return {key: value for key, value in meeting().items() if key not in keys}


def second_copy(folder):
    release(folder)
    release(folder, "other_")


FAULTS = [
    (with_test(b""), "test.jsonl' is empty; copy"),
    (with_test(b"\n \n"), "test.jsonl' is empty; copy"),
    (with_test(b"Speaker: hello\n"), "test.jsonl', row 1: it is no meeting: JSON is malformed"),
    (with_test(json.dumps(meeting()).encode()[:-9]), "row 1: it is no meeting: .*truncated"),
    (with_test(b"[]"), "row 1: it is no meeting: Expected `object`, got `array`"),
    (with_test(without("meeting_transcripts")), "row 1: .* field `meeting_transcripts`"),
    (with_test(without("specific_query_list")), "row 1: .* field `specific_query_list`"),
    (with_test(meeting([{"query": "x"}])), r"field `relevant_text_span` - at `\$.specific_query"),
    (with_test(meeting([asked("x", ("a", "b"))])), "Expected `int`, got `str` - at"),
    (with_test(meeting(turns=[{"speaker": "A"}])), "field `content` - at `.*transcripts"),
    (
        with_test(json.dumps(meeting(), ensure_ascii=False).encode("latin-1")),
        "row 1: it is no meeting: .*utf-8",
    ),
    (with_test(meeting(turns=[])), "row 1: the meeting has no turns; remove"),
    (with_test(meeting([QUERIES[0], asked(" \n")])), "row 1: specific query 2 is blank; remove"),
    (with_test(meeting([asked("x")])), "specific query 1 has no relevant_text_span; remove"),
    (with_test(meeting([asked("x", (0, 20))])), "span 0 to 20, and the meeting the turns 0 to 19;"),
    (with_test(meeting([asked("x", (-1, 2))])), "query 1 has the span -1 to 2, and"),
    (with_test(meeting([asked("x", (0, 1), (5, 4))])), "query 1 has the span 5 to 4, and"),
    (lambda folder: None, "has no meetings for train; add the file train.jsonl"),
    (lambda folder: release(folder).joinpath("val.jsonl").unlink(), "for validation; .* val.jsonl"),
    (second_copy, r"several sets \(other_val.jsonl, val.jsonl\); name a file"),
    (lambda folder: write(release(folder) / "dev.jsonl", meeting()), "several validation splits"),
]


@pytest.mark.parametrize(("make", "says"), FAULTS, ids=[says for _, says in FAULTS])
def test_a_fault_is_one_line_with_file_and_row(tmp_path, make, says):
    make(tmp_path)
    refused(says, read_set, task(), tmp_path)


def test_a_file_of_another_name(tmp_path):
    (tmp_path / "meetings.jsonl").write_text("{}")
    refused("meetings.jsonl' is not named as", read_set, task(), tmp_path / "meetings.jsonl")


def test_every_fault_is_noted_once_and_the_rest_is_read(tmp_path):
    release(tmp_path)
    with (tmp_path / "val.jsonl").open("a") as file:
        file.write("{}\n")
        file.write(json.dumps(meeting([asked(""), asked("sound", (1, 1)), asked("x")])) + "\n")
    defects, examples = noted(task(), tmp_path)
    assert len(examples) == 6 + 7 + 6
    for defect, (place, fault) in zip(
        defects, [("row 3", "no meeting"), ("row 4", "query 1"), ("row 4", "query 3")], strict=True
    ):
        assert f"val.jsonl', {place}: " in defect and fault in defect


def test_a_prepared_set_is_for_its_length_and_its_parts(tmp_path):
    release(tmp_path)
    folder = tmp_path / "prepared"
    assert prepare_whole(task(), "query_span", FILE, str(tmp_path), folder)

    def opened(length=1000, parts=4):
        asking = task(length, parts)
        few = Rows(train=4, validation=ALL.validation, test=ALL.test)
        spec = DataSpec(
            task="query_span", length=length, rows=few, parameters={"parts": parts}, source="file"
        )
        return open_or_prepare(asking, spec, str(folder), tmp_path / f"cut {length} {parts}")

    data = opened()
    assert rows(data.train) == rows(read_set(task(), tmp_path).train)[:4] and data.classes == 4
    with pytest.raises(DataError, match="holds sequences of 1000 tokens, which cannot be cut"):
        opened(length=500)
    with pytest.raises(DataError, match="was prepared for 4 classes, not for 8; prepare it again"):
        opened(parts=8)
