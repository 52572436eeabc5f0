"""Mechanisms whose figures are of different versions of their source, in sentences."""

from __future__ import annotations

from report.answer.said import answered
from report.sample import edited, efficiency, quality


def test_an_edit_between_training_and_timing_is_told() -> None:
    def told(trained: int, timed: int) -> bool:
        records = [
            quality(edited("performer", trained, features=32), "text"),
            efficiency(edited("performer", timed, features=256), 512),
        ]
        sentence = "Accuracy and speed of performer are of different versions of the source"
        return any(one.startswith(sentence) for one in answered(records))

    assert told(1, 2)
    assert not told(2, 2)


def test_a_mean_over_tasks_of_two_versions_is_told() -> None:
    def told(image: int) -> bool:
        versions = {"text": 1, "image": image}
        records = [quality(edited("performer", own), task) for task, own in versions.items()]
        sentence = "Accuracies on different tasks of performer are of different versions of the"
        return any(one.startswith(sentence) for one in answered(records))

    assert told(2)
    assert not told(1)


def test_of_edits_ten_mechanisms_are_named() -> None:
    def told(number: int) -> str:
        records = []
        for name in (f"m{n:02}" for n in range(number)):
            records.append(quality(name, "text"))
            records.append(efficiency(edited(name), 512))
        (sentence,) = (one for one in answered(records) if "of the source" in one)
        return sentence

    assert told(4) == (
        "Accuracy and speed of m00, m01, m02 and m03 are of different versions of the source: "
        "running the same commands again measures what is out of date."
    )
    assert ", m08 and m09 are of" in told(10)
    assert ", m09 and 2 more are of" in told(12)
