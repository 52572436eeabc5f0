"""The network that a task needs, in the form of a preset, with mechanisms in slots and in turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from lra.core import catalogue
from lra.core.cells import EfficiencyCell, QualityCell
from lra.core.errors import UsageError
from lra.core.forms import load_preset
from lra.core.scales import load_suite
from lra.core.versions import declared
from lra.engine.plan.network import refuse_contradictions
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite

SUITE = """
title = "networks"
[[quality]]
scale = "mini"
tasks = ["text", "bytes"]
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> RunSpec:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "suite.toml").write_text(SUITE)
    suite = load_suite(str(folder / "suite.toml"))
    return RunSpec(suite=suite, mechanisms=("sdpa",), device="cpu", cache=str(folder))


def trained(spec: RunSpec, **changes: object) -> QualityCell:
    """The only training of a run."""
    jobs = plan_suite(replace(spec, **changes))
    (cell,) = (job.cell for job in jobs if isinstance(job.cell, QualityCell))
    return cell


def test_a_task_has_the_network_that_it_needs(spec: RunSpec) -> None:
    text, letters = (trained(spec, tasks=(task,)).model for task in ("text", "bytes"))
    assert (text.causal, text.pooling) == (False, "mean")
    assert (letters.causal, letters.pooling) == (True, "none")
    assert text.body is UNSET and letters.body is UNSET, "as records of today have it"
    assert trained(spec, tasks=("bytes",), body="decoder").model == letters
    assert trained(spec, tasks=("text",), body="encoder").model == text


def test_a_preset_brings_form_and_positions_at_the_scales_sizes(spec: RunSpec) -> None:
    usual = trained(spec, tasks=("bytes",))
    cell = trained(spec, tasks=("bytes",), preset="gpt2")
    assert cell.model.form == load_preset("gpt2").form
    assert (cell.model.position, cell.model.decoder_position) == ("learned", UNSET)
    sizes = ("layers", "width", "qkv_width", "heads", "mlp_width")
    assert [getattr(cell.model, one) for one in sizes] == [
        getattr(usual.model, one) for one in sizes
    ]
    assert "train/form" in cell.versions and "train/form" not in usual.versions
    assert cell.id != usual.id


def test_a_persons_setting_beats_the_presets(spec: RunSpec) -> None:
    cell = trained(spec, tasks=("bytes",), preset="gpt2", settings={"model.position": "rope"})
    assert cell.model.position == "rope" and "position/rope" in cell.versions


def test_a_cycle_is_configured_member_by_member(spec: RunSpec) -> None:
    cell = trained(
        spec,
        tasks=("bytes",),
        mechanisms=("performer+sliding_window",),
        settings={"left": "3", "performer.features": "8"},
    )
    alone = trained(spec, tasks=("bytes",), mechanisms=("sliding_window",))
    assert cell.mechanism.name == "performer+sliding_window"
    assert cell.mechanism.config["performer"]["features"] == 8
    assert cell.mechanism.config["sliding_window"] == {**alone.mechanism.config, "left": 3}
    versions = declared(["mechanism/performer", "mechanism/sliding_window"])
    assert versions.items() <= cell.versions.items()


def test_a_cycle_is_trained_and_no_layer_of_it_timed(spec: RunSpec) -> None:
    suite = load_suite("mini")
    jobs = plan_suite(replace(spec, suite=suite, mechanisms=("sdpa+full", "performer")))
    timed = {job.cell.mechanism.name for job in jobs if isinstance(job.cell, EfficiencyCell)}
    assert timed == {"identity", "sdpa", "performer"}
    with pytest.raises(UsageError, match=r"sdpa\+full"):
        plan_suite(replace(spec, suite=load_suite("sweep"), mechanisms=("sdpa+full",)))


def test_a_cycle_has_the_claims_that_its_members_share(spec: RunSpec) -> None:
    from lra.engine.plan.describe import Describer

    describer = Describer(Path(spec.cache))
    found = describer.describe(catalogue.find("mechanism", "sdpa+reformer")).card
    assert found is not None
    assert found.capabilities.causal == "values-only" and not found.capabilities.cross  # type: ignore[union-attr]


def test_a_mechanism_reads_the_source_and_exact_attention_stands_elsewhere(spec: RunSpec) -> None:
    cell = trained(spec, tasks=("reverse",), mechanisms=("linear",))
    model = cell.model
    assert (model.body, model.pooling, model.causal) == ("encoder_decoder", "none", True)
    assert model.slots is not UNSET and model.open_slots == ("cross",)
    assert {slot: one.name for slot, one in model.slots.items()} == {
        "encoder": "sdpa",
        "decoder": "sdpa",
    }
    used = {"train/encoder_decoder", "mechanism/sdpa", "mechanism/linear"}
    assert used <= set(cell.versions) and "train/pairs" not in cell.versions
    queries = trained(spec, tasks=("lookup",), mechanisms=("linear",)).model
    assert not queries.causal, "queries are answered one by one"


def test_named_slots_replace_the_scales(spec: RunSpec) -> None:
    def asked(**slots: str) -> QualityCell:
        return trained(spec, tasks=("reverse",), mechanisms=("linear",), slots=slots)

    cell = asked(cross="sdpa+full", decoder="performer")
    model = cell.model
    assert model.slots is not UNSET and model.open_slots == ("encoder",)
    assert model.slots["cross"].name == "sdpa+full"
    alone = trained(spec, tasks=("bytes",), mechanisms=("performer",))
    assert model.slots["decoder"] == alone.mechanism, "with the scale's settings"
    assert {"mechanism/full", "mechanism/performer"} <= set(cell.versions)
    assert len({asked(cross="full").id, asked(encoder="full").id, cell.id}) == 3


def test_a_preset_of_two_stacks_has_positions_for_each(spec: RunSpec) -> None:
    model = trained(spec, tasks=("reverse",), preset="t5").model
    assert (model.position, model.decoder_position) == (
        "relative_buckets",
        "relative_buckets_causal",
    )
    assert model.form == load_preset("t5").form
    assert trained(spec, tasks=("reverse",), preset="bart").model.decoder_position is UNSET


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tasks": ("text",), "body": "decoder"}, "text"),
        ({"tasks": ("bytes",), "preset": "bart"}, "bart"),
        ({"tasks": ("bytes",), "preset": "gpt5"}, "gpt"),
        ({"tasks": ("bytes",), "slots": {"cross": "full"}}, "bytes"),
        ({"tasks": ("reverse",), "preset": "gpt"}, "gpt"),
        ({"tasks": ("reverse",), "body": "encoder"}, "reverse"),
        ({"slots": {"cross": "reformer"}}, "cross=reformer"),
        ({"slots": {"decoder": "linformer"}}, "decoder=linformer"),
        ({"slots": {"decoder": "nobody"}}, "nobody"),
        ({"slots": dict.fromkeys(("encoder", "decoder", "cross"), "full")}, "--impl"),
        ({"mechanisms": ("sdpa+",)}, "sdpa"),
        ({"mechanisms": ("sdpa+nobody",)}, "nobody"),
        (
            {"tasks": ("reverse",), "settings": {"model.slots": '{cross = {name = "mean"}}'}},
            "--slot",
        ),
        ({"tasks": ("text",), "settings": {"model.form": "{}"}}, "model.form"),
        ({"tasks": ("text",), "settings": {"model.decoder_position": "none"}}, "model.position"),
        ({"tasks": ("bytes",), "settings": {"model.decoder_position": "none"}}, "model.position"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    spec: RunSpec, wrong: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as found:
        plan_suite(replace(spec, **wrong))
    assert words in str(found.value) and "\n" not in str(found.value)


def test_a_mechanism_of_a_slot_that_cannot_be_imported_is_one_line(
    spec: RunSpec, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import nowhere_at_all\n")
    with pytest.raises(UsageError, match=r"^[^\n]*broken[^\n]*nowhere_at_all[^\n]*$"):
        plan_suite(replace(spec, tasks=("reverse",), slots={"cross": str(broken)}))


@pytest.mark.parametrize(
    ("body", "preset", "slots"),
    [
        ("decoder", "bart", ()),
        ("encoder_decoder", "gpt", ()),
        ("decoder", None, ("cross",)),
        (None, "gpt2", ("cross",)),
        (None, None, ("middle",)),
    ],
)
def test_flags_that_contradict_each_other(
    body: str | None, preset: str | None, slots: tuple[str, ...]
) -> None:
    refuse_contradictions(None, "bart", ("cross", "encoder"))
    with pytest.raises(UsageError):
        refuse_contradictions(body, preset, slots)  # type: ignore[arg-type]


def test_a_body_that_is_set_has_to_be_the_one_that_the_task_needs(spec: RunSpec) -> None:
    for task, wrong in (("reverse", "decoder"), ("bytes", "encoder"), ("text", "encoder_decoder")):
        with pytest.raises(UsageError, match=task):
            trained(spec, tasks=(task,), settings={"model.body": wrong})
    same = trained(spec, tasks=("reverse",), settings={"model.body": "encoder_decoder"})
    assert same.id == trained(spec, tasks=("reverse",)).id
