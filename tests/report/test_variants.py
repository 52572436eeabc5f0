"""Settings of a configuration in force, and those in which several differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.adapters.hugging_face import OPTIONS, HuggingFaceConfig
from lra.adapters.masks import MaskedConfig
from lra.adapters.module import ModuleConfig
from lra.report.load.select import join
from lra.report.load.variants import chosen, distinguishing_settings, in_force

from .sample import efficiency, mechanism, quality

NEWER = "2026-11-21T10:00:00Z"


_CONFIGURED: dict[str, Any] = {OPTIONS: {}}
ADAPTERS: list[dict[str, Any]] = [
    msgspec.to_builtins(MaskedConfig()),
    msgspec.to_builtins(ModuleConfig()),
    {**msgspec.to_builtins(ModuleConfig()), **_CONFIGURED},
    {**msgspec.to_builtins(HuggingFaceConfig()), **_CONFIGURED},
]


@pytest.mark.parametrize("defaults", ADAPTERS)
def test_switches_of_adapters_are_said_only_where_they_were_chosen(
    defaults: dict[str, Any],
) -> None:
    assert chosen(defaults) == {}
    assert chosen({**defaults, "temperature": 0.5}) == {"temperature": "0.5"}
    assert chosen({**defaults, "mask_form": "ignore"})["mask_form"] == "ignore"
    assert chosen({**defaults, "always_mask": True}) == {"always_mask": "yes"}
    if OPTIONS in defaults:
        assert chosen({**defaults, OPTIONS: {"layers": 2}}) == {"options.layers": "2"}


def test_how_masks_are_given_is_said_in_full_where_no_kind_of_adapter_has_it_so() -> None:
    for defaults in ADAPTERS[2:]:
        reformer = {**defaults, "mask_form": "keep", "mask_per_head": False, "pad_to": 8}
        options = {**reformer, "always_mask": True, OPTIONS: {"length": 8}}
        assert chosen(options) == {
            "mask_form": "keep",
            "mask_per_head": "no",
            "always_mask": "yes",
            "pad_to": "8",
            "options.length": "8",
        }
        half = {**defaults, "mask_form": "additive", "mask_per_head": False}
        assert chosen(half) == {"mask_form": "additive", "mask_per_head": "no"}
    assert chosen({**ADAPTERS[1], "mask_form": "keep"}) == {"mask_form": "keep"}


def test_settings_of_ours_are_all_said() -> None:
    assert chosen({"pad_to": 1, "window": 8}) == {"pad_to": "1", "window": "8"}
    assert chosen({"parity": "none", "kv_heads": None, "rank": 0}) == {
        "parity": "'none'",
        "rank": "0",
    }
    assert chosen({}) == {}


@pytest.mark.parametrize("defaults", ADAPTERS)
def test_a_record_from_before_a_switch_is_the_same_as_one_at_its_default(
    defaults: dict[str, Any],
) -> None:
    before = {key: value for key, value in defaults.items() if key != "cross"}
    assert "cross" in defaults and in_force(before) == in_force(defaults)
    old, new, other = (
        mechanism("peer:x", **config) for config in (before, defaults, {**defaults, "cross": False})
    )
    for records in (
        [quality(old, "text"), quality(new, "text", started=NEWER)],
        [efficiency(old, 512), efficiency(new, 512, started=NEWER)],
    ):
        (kept,) = join(records, []).measurements
        assert (kept.label, kept.record) == ("peer:x", records[1])
    labels = {
        one.label for one in join([quality(m, "text") for m in (old, other)], []).measurements
    }
    assert labels == {"peer:x (cross=yes)", "peer:x (cross=no)"}


def test_configurations_that_differ_stay_apart_in_force() -> None:
    """Adapters built from options have two defaults: a record does not say which."""
    for defaults in ADAPTERS[2:]:
        for key, value in (("mask_form", ""), ("mask_form", "additive"), ("mask_per_head", True)):
            other = {**defaults, key: value}
            assert (in_force(other) == in_force(defaults)) is (other == defaults)
    assert distinguishing_settings([ADAPTERS[0], {**ADAPTERS[0], "temperature": 2}]) == [
        "temperature=none",
        "temperature=2",
    ]


CYCLE = "sliding_window+peer:x"


def cycle(window: int, **switches: Any) -> dict[str, Any]:
    """A configuration of both members, each by its name."""
    return {"sliding_window": {"left": window}, "peer:x": {**ADAPTERS[1], **switches}}


def test_settings_of_a_cycle_are_those_of_its_members() -> None:
    assert chosen(cycle(3), CYCLE) == {"sliding_window.left": "3"}
    assert chosen(cycle(3, pad_to=8), CYCLE)["peer:x.pad_to"] == "8"
    assert in_force({**cycle(3), "sdpa": {}, "later": {"rank": None}}, CYCLE) == {
        "sliding_window": {"left": 3}
    }
    old = mechanism(CYCLE, **{**cycle(3), "peer:x": {**ADAPTERS[1], "later": None}})
    records = [quality(old, "text"), quality(mechanism(CYCLE, **cycle(3)), "text", started=NEWER)]
    (kept,) = join(records, []).measurements
    assert kept.record == records[1]


def test_two_settings_of_a_cycle_have_labels_of_their_own() -> None:
    assert distinguishing_settings([cycle(3), cycle(5)], CYCLE) == ["left=3", "left=5"]
    assert distinguishing_settings([cycle(3), cycle(3, pad_to=8)], CYCLE) == [
        "pad_to=1",
        "pad_to=8",
    ]
    # The same setting of two members is said with the member.
    twins = [{"a": {"left": one}, "b": {"left": other}} for one, other in ((3, 5), (5, 3))]
    assert distinguishing_settings(twins, "a+b") == [
        "a.left=3, b.left=5",
        "a.left=5, b.left=3",
    ]
    made = [quality(mechanism(CYCLE, **cycle(left)), "text") for left in (3, 5)]
    alone = quality(mechanism("sliding_window", left=7), "text")
    found = join([*made, alone], []).measurements
    assert {one.label for one in found} == {
        f"{CYCLE} (left=3)",
        f"{CYCLE} (left=5)",
        "sliding_window",
    }
    assert len({one.variant for one in found}) == 3
