"""Every number that the Pathfinder generator needs, resolved for one resolution and checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from lra.core.errors import UsageError

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Above = Annotated[float, msgspec.Meta(gt=0.0, le=100.0)]
Contrast = Annotated[float, msgspec.Meta(gt=0.0, le=4.0)]
"""Bounded, so that brightnesses are counted in 32 bits."""

SMALLEST = 8
"""Pixels a side; below there is no room for two paths."""

_TINY = {
    "padding": 0,
    "contour_length": 2,
    "distractor_length": 2,
    "paddle_length": 1,
    "paddle_thickness": 0.5,
    "paddle_margins": (1,),
    "marker_radius": 1.0,
    "continuity": 1.0,
    "snake_contrast": 2.0,
    "paddle_contrast": 0.75,
    "levels": 8,
    "probe": "centred",
}
PRESETS: dict[int, dict[str, Any]] = {
    8: {**_TINY, "seed_distance": 5, "band": 1, "distractors": 0},
    12: {**_TINY, "seed_distance": 7, "band": 2, "distractors": 2},
    32: {
        "padding": 1,
        "seed_distance": 7,
        "paddle_length": 2,
        "paddle_thickness": 0.5,
        "paddle_margins": (1,),
        "marker_radius": 1.5,
        "continuity": 1.0,
        "snake_contrast": 2.0,
        "paddle_contrast": 0.75,
        "distractor_paddles": 20,
    },
    64: {
        "padding": 1,
        "seed_distance": 12,
        "paddle_thickness": 1.0,
        "paddle_margins": (1,),
        "marker_radius": 2.5,
        "snake_contrast": 0.8,
        "distractor_paddles": 22,
    },
    128: {
        "padding": 1,
        "seed_distance": 20,
        "paddle_thickness": 1.5,
        "paddle_margins": (2, 3),
        "marker_radius": 3.0,
        "snake_contrast": 0.9,
        "distractor_paddles": 35,
    },
    256: {
        "padding": 22,
        "seed_distance": 27,
        "paddle_thickness": 2.0,
        "paddle_margins": (3,),
        "marker_radius": 5.0,
        "snake_contrast": 1.0,
        "distractor_paddles": 30,
    },
}
"""Defaults of the parameters from a side upwards: 32 and more as the Long Range Arena set them,
8 and 12 small enough to be learned in seconds."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of `tasks.pathfinder`, every one filled in; lengths in pixels."""

    side: Annotated[int, msgspec.Meta(ge=SMALLEST)]
    padding: Count
    seed_distance: Positive
    band: Count
    contour_length: Annotated[int, msgspec.Meta(ge=2)]
    distractor_length: Positive
    distractors: Count
    paddle_length: Positive = 5
    paddle_thickness: Above
    paddle_margins: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]
    marker_radius: Above
    continuity: Above = 1.8
    snake_contrast: Contrast
    paddle_contrast: Contrast = 1.0
    antialias: Positive = 2
    levels: Annotated[int, msgspec.Meta(ge=2, le=256)] = 256
    probe: Literal["original", "centred"] = "original"
    paddle_retries: Count = 2
    distractor_retries: Count = 4

    @property
    def fine_thickness(self) -> int:
        """Thickness of a line on the finer grid that it is drawn on."""
        return round(self.paddle_thickness * self.antialias)


def resolve(side: int, given: dict[str, Any]) -> Settings:
    """Return the settings at a resolution: what is given, else the preset's.

    Raises `UsageError` naming the parameter that does not fit.
    """
    if side < SMALLEST:
        raise UsageError(
            f"pathfinder: {side} x {side} pixels is too small; use length {SMALLEST**2} or more"
        )
    values = {**PRESETS[max(size for size in PRESETS if size <= side)], **given, "side": side}
    values.setdefault("contour_length", 14)
    values.setdefault("band", 2 * int(values["seed_distance"]))
    values.setdefault("distractor_length", max(1, int(values["contour_length"]) // 3))
    paddles = values.pop("distractor_paddles", 0)
    values.setdefault("distractors", paddles // max(1, int(values["distractor_length"])))
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"pathfinder: {error}; change that parameter") from error
    if settings.fine_thickness < 1 or (
        settings.fine_thickness != settings.paddle_thickness * settings.antialias
    ):
        raise UsageError(
            f"pathfinder: paddle_thickness {settings.paddle_thickness} times antialias "
            f"{settings.antialias} is no whole number of fine pixels; change one of them"
        )
    if 2 * settings.band >= side or 2 * settings.padding >= side:
        raise UsageError(
            f"pathfinder: a band of {settings.band} and a padding of {settings.padding} on each "
            f"side leave no place for a seed in {side} x {side} pixels; set a smaller band"
        )
    return settings
