"""Every law of the kit, for the arena's own forms that hold less than their cards claim.

Whoever claims as much in parity has it among its `trials`. The others are asked here under a card
cut down to what their form holds; what it lost is refused, or said in the field's docstring.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from attention_impls.contract import Context, Layer, MechanismConfig
from lra.core.catalogue import find, names
from lra.core.errors import UnsupportedError
from lra.core.loading import load
from lra.verify import kit
from lra.verify.subject import Subject

AS_THEY_ARE = (
    "another_process",
    "memory_growth",
    "operation_growth",
    "time_growth",
    "convergence",
    "exact_softmax",
    "setting_felt",
)
"""Laws that small blocks would falsify, one that has blocks as they are, one about a configuration
that is not parity's, and one about settings, of which parity reads few."""

LAWS = [law for law in kit.select() if law.name not in AS_THEY_ARE]

BY_LENGTH = {"causal": "no", "decode": "none", "padding": "length"}
"""Claims of sets that depend on how many positions there are."""

LESS: dict[str, dict[str, Any]] = {
    "block_local": {"config": {"block": 4}, "claims": BY_LENGTH},
    "sinkhorn": {"config": {"block": 4}, "claims": BY_LENGTH, "card": {"weights": "free"}},
    "bigbird": {"config": {"block": 2, "random": 1}, "constants": {"ARENA_REACH": 12}},
    "longformer": {
        "config": {"window": 6},
        "unused": ("global_query", "global_key", "global_value"),
        "card": {"linear": True},
    },
}
"""For each the configuration, and what differs from the mechanism's own class and module."""


class Alone(Subject):
    """The parity configuration and no other, at few lengths."""

    lengths = (1, 2, 7, 37)  # type: ignore[assignment]

    @property
    def configs(self) -> tuple[MechanismConfig, ...]:
        return (self.config,)


def subject(name: str, less: dict[str, Any]) -> Alone:
    """Return the mechanism in parity, under the card that it holds there."""
    mechanism: type[Layer] = load(find("mechanism", name))
    can = msgspec.structs.replace(mechanism.card.capabilities, **less.get("claims", {}))
    card = msgspec.structs.replace(mechanism.card, capabilities=can, **less.get("card", {}))
    cut = {"card": card, "unused": less.get("unused", ()), "__module__": mechanism.__module__}
    narrower = type(mechanism.__name__, (mechanism,), cut)
    config = mechanism.Config(**less["config"], parity="lra2021")  # type: ignore[call-arg]
    return Alone(narrower, config)


def in_parity(name: str) -> list[MechanismConfig]:
    """Return the mechanism's trials that are parity's."""
    trials = load(find("mechanism", name)).trials
    return [config for config in trials if getattr(config, "parity", "none") == "lra2021"]


@pytest.mark.parametrize("name", names("mechanism"))
def test_every_parity_is_tried_by_the_kit_or_here(name: str) -> None:
    has_it = hasattr(load(find("mechanism", name)).Config(), "parity")
    assert has_it == (name in LESS or bool(in_parity(name))), (
        f"nothing tries the parity of {name}: add a configuration with it to `trials` in its file, "
        "or, if it holds less there than its card claims, say what in LESS of "
        "tests/attention_impls/test_parity.py"
    )


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("name", LESS)
def test_parity_keeps_the_law(name: str, law: kit.Law, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = subject(name, LESS[name])
    for constant, value in LESS[name].get("constants", {}).items():
        monkeypatch.setattr(f"{asked.mechanism.__module__}.{constant}", value)
    found = kit.try_law(law, asked)
    assert found.verdict != "failed", found


@pytest.mark.parametrize("name", ["block_local", "sinkhorn"])
def test_what_parity_lost_is_refused_in_one_line(name: str, build, draw) -> None:
    layer = build((name, {**LESS[name]["config"], "parity": "lra2021"}))
    for refused in (layer.attend, layer.oracle):
        with pytest.raises(UnsupportedError, match=f"{name}.*parity"):
            refused(*draw(1, 9), Context(causal=True))
