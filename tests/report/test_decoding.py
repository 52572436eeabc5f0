"""Decoding: prompt, state, time of a token, and how exact a step is."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pandas as pd
import pytest

from lra.core.records import Metric, Record
from lra.report.model import Section
from lra.report.sections import decoding
from lra.report.words import TIMES
from report.sample import efficiency, with_metrics
from report.sweeps import LENGTHS, analysed, tables, texts, titles, value


def step(name: str, length: int, state: float = 4e3, error: float = 1e-7, **more: Any) -> Record:
    made = efficiency(name, length, "decode", 1e-4, direction="causal", **more)
    if made.status != "ok":
        return made
    return with_metrics(made, prefill=0.02, state_bytes=state, decode_error=error)


def section(*records: Record) -> Section:
    found, *others = decoding.sections(analysed(records))
    tables = (table for section in (found, *others) for table in section.tables)
    return msgspec.structs.replace(found, tables=tuple(tables))


def test_decoding_has_step_prompt_and_state_and_how_exact_it_is() -> None:
    found = section(
        step("linear", 512, 4e3, 2e-7),
        step("linear", 1024, 4e3, 4e-7),
        step("sdpa", 512, 1e6, 1e-8),
        step("sdpa", 1024, 2e6, 3e-8),
    )
    known = tables([found])
    assert known["decode-prefill-1"].title == "Time to take in the prompt, in ms"
    assert value(known["decode-prefill-1"], "linear", "512").text == "20.0"
    assert known["decode-time-1"].title == "Time of a decoding step, in µs"
    state = known["decode-state-1"]
    assert [value(state, "linear", n).note for n in ("512", "1024")] == [
        f"0.0040{TIMES}",
        f"0.0020{TIMES}",
    ]
    assert [value(state, "sdpa", n).number for n in ("512", "1024")] == [1e6, 2e6]
    assert "4e-07" in found.text[0] and "(linear after 1024 positions)" in found.text[0]


def test_state_and_time_have_the_length_from_which_they_pay() -> None:
    known = tables(
        [
            section(
                *(step("linear", n) for n in LENGTHS), *(step("sdpa", n, 4.0 * n) for n in LENGTHS)
            )
        ]
    )
    assert value(known["decode-state-1"], "linear", "pays from").number == pytest.approx(1000)
    assert known["decode-time-1"].columns[-1] == "pays from"
    assert "pays from" not in known["decode-prefill-1"].columns


def test_a_failed_step_says_how_in_every_table() -> None:
    known = tables(
        [
            section(
                *(step(name, n) for name in ("linear", "sdpa") for n in (512, 1024)),
                step("linear", 2048),
                step("sdpa", 2048, status="oom"),
                *(step("bigbird", n, status="unsupported") for n in (512, 1024, 2048)),
            )
        ]
    )
    assert len(known) == 3
    for table in known.values():
        assert value(table, "sdpa", "2048").text == "OOM"
        assert titles(table) == ["linear", "sdpa"]
        assert "bigbird (unsupported)" in table.notes[0] and "2048 (OOM)" in table.notes[1]


def test_a_step_whose_difference_is_no_number_is_named() -> None:
    def lost(length: int) -> Record:
        made = step("linear", length)
        metrics = {**made.metrics, "decode_error": Metric(value=None, unit="ratio")}
        return msgspec.structs.replace(made, metrics=metrics)

    (sentence,) = section(lost(512), lost(1024)).text
    assert sentence.endswith("not finite: linear after 512 and 1024 positions.")
    assert section(lost(512), lost(1024), step("sdpa", 512)).text[1] == sentence


def test_two_settings_of_one_label_are_two_in_the_sentence_on_lost_differences() -> None:
    rows = [("linear", variant, n, math.nan, "ok") for variant in "ab" for n in (512, 1024)]
    errors = pd.DataFrame(rows, columns=["label", "variant", "length", "value", "status"])
    (sentence,) = decoding.exactness(errors)
    assert sentence.count("linear after 512 and 1024 positions") == 2


def test_the_picture_has_time_and_state_with_their_exponents() -> None:
    records = [step("linear", n) for n in LENGTHS]
    for n in LENGTHS:
        made = efficiency("sdpa", n, "decode", 1e-7 * n, direction="causal")
        records.append(with_metrics(made, state_bytes=1e3 * n))
    (figure,) = section(*records).figures
    written = texts(figure)
    assert {"time of one token", "state after the prompt", "context length"} <= set(written)
    # Once in each panel; a zero has no sign.
    assert written.count("linear  n^0.0") == 2 and written.count("sdpa  n^1.0") == 2
    assert section(step("linear", 512), step("sdpa", 512)).figures == ()


def test_without_decoding_there_is_no_section() -> None:
    assert decoding.sections(analysed([efficiency("linear", 512)])) == []
