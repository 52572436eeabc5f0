"""Mechanisms that stand for all: every family is among them, and whoever declares something new."""

from __future__ import annotations

from code_paths import cover, declarations, loaded, others, representatives

from lra.core.catalogue import names


def test_they_declare_all_that_any_mechanism_does() -> None:
    standing = representatives()
    everything = {name: declarations(mechanism) for name, mechanism in loaded()}
    between_them = set().union(*(everything[name] for name in standing))
    assert all(declared <= between_them for declared in everything.values())
    assert {kind.__module__.split(".")[1] for _, kind in loaded()} == {
        kind.__module__.split(".")[1] for name, kind in loaded() if name in standing
    }


def test_the_others_are_all_that_remain() -> None:
    assert sorted([*representatives(), *others(names("mechanism"))]) == names("mechanism")


def test_a_new_one_is_chosen_if_it_declares_something_new() -> None:
    known = {"a": {1, 2}, "b": {2, 3}, "c": {1, 2}}
    assert cover(known) == ["a", "b"]
    assert cover({**known, "d": {1, 3}}) == ["a", "b"]
    assert cover({**known, "d": {4}}) == ["a", "b", "d"]
