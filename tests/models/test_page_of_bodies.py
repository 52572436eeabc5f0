"""Tables of `docs/bodies.md`, read as data: forms are those of the presets, and parameters are
counted; nothing is allocated."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest
import torch

from lra.core.forms import BlockForm, Preset, Size, load_preset
from lra.core.scales import names
from lra.models.build import parameter_count
from lra.models.language import build_preset

PAGE = (Path(__file__).parents[2] / "docs/bodies.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
Line = dict[str, str]


def table(section: str) -> list[Line]:
    """Return the rows of the one table of a section, by column."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    head, _, *rows = (
        [cell.strip().strip("`") for cell in line[1:-1].split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    )
    return [dict(zip(head, row, strict=True)) for row in rows]


PUBLISHED = table("Published and counted")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def changed(line: Line, **more: object) -> torch.nn.Module:
    """Build what a line names, with its changes and some more."""
    preset, changes = load_preset(line["preset"]), line["changed"].replace(", ", "\n")
    asked = {**tomllib.loads(changes), **more}
    form = {name: value for name, value in asked.items() if name in BlockForm.__struct_fields__}
    size = {name: value for name, value in asked.items() if name in Size.__struct_fields__}
    assert len(form) + len(size) == len(asked)
    return built(
        msgspec.structs.replace(
            preset,
            form=msgspec.structs.replace(preset.form, **form),
            sizes={"it": msgspec.structs.replace(preset.sizes[line["size"]], **size)},
        ),
        "it",
    )


def built(preset: Preset, size: str) -> torch.nn.Module:
    with torch.device("meta"):
        return build_preset(preset, size)


def published(line: Line) -> float:
    return float(line["published"][:-1]) * {"M": 1e6, "B": 1e9}[line["published"][-1]]


def words(preset: Preset) -> Line:
    """Return a preset's line of the page, but for its paper."""
    form, biases = preset.form, (preset.form.attention_biases, preset.form.mlp_biases)
    return {
        "preset": preset.name,
        "slots": "1" if preset.encoder is None else "3",
        "norm": form.norm,
        "kind": form.norm_kind,
        "final norm": "yes" if form.final_norm else "no",
        "positions": (preset.encoder or preset.decoder).position,
        "activation": form.activation,
        "biases": {(True, True): "both", (False, True): "MLP", (False, False): "none"}[biases],
        "tied": "yes" if form.tied else "no",
    }


def test_the_forms_are_those_of_the_presets() -> None:
    lines = {line["preset"]: line for line in table("Presets")}
    assert sorted(lines) == names("presets")
    for name, line in lines.items():
        preset = load_preset(name)
        author, year = line.pop("paper").split(" et al., ")
        assert preset.paper.startswith(author) and re.search(rf"\b{year}\b", preset.paper)
        assert line == words(preset)


def test_the_sizes_are_those_of_the_presets_and_their_parameters_counted() -> None:
    lines = {(line["preset"], line["size"]): line for line in table("Sizes")}
    assert set(lines) == {
        (name, size) for name in names("presets") for size in load_preset(name).sizes
    }
    for (name, size), line in lines.items():
        preset = load_preset(name)
        heads, head_width = map(number, line["heads"].split(" x "))
        assert preset.sizes[size] == Size(
            layers=number(line["layers"]),
            width=number(line["width"]),
            qkv_width=heads * head_width,
            heads=heads,
            mlp_width=number(line["MLP"]),
            vocabulary=number(line["tokens"]),
            length=number(line["positions"]),
        )
        assert parameter_count(built(preset, size)) == number(line["parameters"])


@pytest.mark.parametrize("line", PUBLISHED, ids=lambda line: " ".join(line.values()))
def test_what_is_beside_a_published_count_is_counted(line: Line) -> None:
    counted = parameter_count(changed(line))
    assert counted == number(line["counted"])
    assert line["difference"] == f"{100 * (counted / published(line) - 1):+.1f} %"


def test_one_vocabulary_gives_all_published_rows_of_2017_but_the_big_one() -> None:
    ((tokens, millions),) = re.findall(r"With ([\d,]+) tokens .+ at (\d+) million", TEXT)
    lines = [line for line in PUBLISHED if line["preset"] == "transformer2017"]
    assert len(lines) == 9
    for line in lines:
        counted = parameter_count(changed(line, vocabulary=number(tokens))) / 1e6
        wanted = float(millions) if line["size"] == "big" else published(line) / 1e6
        assert round(counted) == wanted


@pytest.mark.parametrize("size", ["base", "big"])
def test_the_bodies_of_2017_are_counted_alone(size: str) -> None:
    body = built(load_preset("transformer2017"), size).body
    (stated,) = re.findall(rf"`{size}`(?: has)? (\d+,\d+,\d+)", TEXT)
    assert parameter_count(body) == number(stated)
