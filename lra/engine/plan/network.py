"""The network of a training: the body that its task asks for, in the form of a published model
where one is named, with mechanisms in its slots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import UNSET
from msgspec.structs import replace

from lra.core.cards import AttentionCard, Capabilities, TaskCard
from lra.core.errors import UsageError, unknown_name
from lra.core.forms import Preset, load_preset
from lra.core.protocol import SLOTS, Body, Mechanism, ModelSpec, SlotName

_BODIES: dict[str, Body] = {
    "example": "encoder",
    "token": "decoder",
    "sequence": "encoder_decoder",
    "query": "encoder_decoder",
}
"""Body for each kind of answer that a task asks for."""
_NOUNS: dict[Body, str] = {
    "encoder": "an encoder",
    "decoder": "a decoder",
    "encoder_decoder": "an encoder-decoder",
}


def body_of(card: TaskCard | None) -> Body:
    """Return the body that a task needs; an encoder where its card cannot be read."""
    return "encoder" if card is None else _BODIES[card.asks]


def refuse_contradictions(body: Body | None, preset: str | None, slots: Collection[str]) -> None:
    """Raise `UsageError` for flags that contradict each other or name no slot."""
    for slot in slots:
        if slot not in SLOTS:
            raise unknown_name("slot", slot, SLOTS)
    kind = None if preset is None else _kind(load_preset(preset))
    if body is not None and kind is not None and body != kind:
        raise UsageError(
            f"--preset {preset} is {_NOUNS[kind]}, and --body asks for {_NOUNS[body]}; leave one "
            "of them out"
        )
    one = body or kind
    if slots and one is not None and one != "encoder_decoder":
        raise UsageError(
            f"--slot is for an encoder-decoder, and {_NOUNS[one]} has one place; name its "
            "mechanism with --impl"
        )


def in_body(
    model: ModelSpec,
    card: TaskCard | None,
    task: str,
    *,
    body: Body | None,
    preset: Preset | None,
    slots: Mapping[SlotName, Mechanism],
) -> ModelSpec:
    """Return a network as the body that a task needs.

    Raises `UsageError` where a body, a preset or slots are asked for that the task has no use for.
    """
    needed = body_of(card)
    if body is not None and body != needed:
        raise UsageError(
            f"task '{task}' needs {_NOUNS[needed]}, and --body asks for {_NOUNS[body]}; name tasks "
            "that fit it with --task, or leave --body out"
        )
    if preset is not None and _kind(preset) != needed:
        raise UsageError(
            f"task '{task}' needs {_NOUNS[needed]}, and the preset {preset.name} is "
            f"{_NOUNS[_kind(preset)]}; choose another preset or another task"
        )
    if slots and needed != "encoder_decoder":
        raise UsageError(
            f"task '{task}' needs {_NOUNS[needed]}, which has no slots; leave slots out (--slot, "
            "or those of its scale or suite), or name a task from sequence to sequence"
        )
    if model.body is not UNSET and model.body != needed:
        raise UsageError(
            f"task '{task}' needs {_NOUNS[needed]}, and model.body asks for "
            f"{_NOUNS[model.body]}; leave it out"
        )
    if model.slots is not UNSET:
        raise UsageError(
            f"task '{task}': model.slots is filled by the plan; name mechanisms with --slot, or as "
            "slots of the task in a scale file"
        )
    if needed == "encoder" and model.form is not UNSET:
        raise UsageError(
            f"task '{task}' needs an encoder, whose form is the Long Range Arena's; leave "
            "model.form out"
        )
    if needed != "encoder_decoder" and model.decoder_position is not UNSET:
        raise UsageError(
            f"task '{task}' needs {_NOUNS[needed]}, which has one position scheme; name it as "
            "model.position, and leave model.decoder_position out"
        )
    if needed == "decoder":
        return model.by_token()
    if needed == "encoder_decoder":
        return replace(
            model,
            pooling="none",
            body=needed,
            # Queries are answered one by one; an answer that is generated goes on from itself.
            causal=card is not None and card.asks == "sequence",
            slots=dict(slots) or UNSET,
        )
    return model


def in_form(model: ModelSpec, preset: Preset) -> ModelSpec:
    """Return a network with a preset's form, positions and starts, at its own sizes."""
    first = (preset.encoder or preset.decoder).position
    target = preset.decoder.position
    return replace(
        model,
        form=preset.form,
        position=first,
        decoder_position=UNSET if target == first else target,
        projection_biases=preset.form.attention_biases,
        query_key_start="independent",
    )


def slots_of(
    asked: Mapping[SlotName, str],
    chosen: Callable[[str], tuple[Mechanism, AttentionCard]],
) -> dict[SlotName, Mechanism]:
    """Return the mechanisms of slots; `chosen` configures one by its name.

    Raises `UsageError` for one that cannot fill its slot, and where no slot is left.
    """
    found = {}
    for slot in SLOTS:
        if slot in asked:
            found[slot], card = chosen(asked[slot])
            why = why_unfit(slot, card.capabilities)
            if why:
                raise UsageError(f"--slot {slot}={asked[slot]}: {why}; choose another mechanism")
    if len(found) == len(SLOTS):
        raise UsageError(
            "all three slots are named, and no place is left for a mechanism of --impl; leave one "
            "--slot out"
        )
    return found


def why_unfit(slot: SlotName, can: Capabilities) -> str:
    """Return why a mechanism cannot fill a slot; empty where it can."""
    if slot == "encoder" and not can.bidirectional:
        return "it is causal only, and an encoder reads both ways"
    if slot == "decoder" and can.causal != "strict":
        return f"it is not strictly causal (causal: {can.causal}), and a decoder predicts"
    if slot == "cross" and not (can.cross and can.bidirectional):
        return "it cannot attend to another sequence"
    return ""


def _kind(preset: Preset) -> Body:
    return "decoder" if preset.encoder is None else "encoder_decoder"
