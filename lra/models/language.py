"""Build a model of language in a given form: a decoder, or an encoder-decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec
from torch import nn

from attention_impls.contract import Dims, Layer, Position
from lra.core import catalogue, loading
from lra.core.errors import UsageError, unknown_name
from lra.core.forms import Preset, Size, Slot
from lra.core.protocol import BlockForm, Mechanism
from lra.models.block import Block, Mlp, build_norm
from lra.models.bodies.decoder import Decoder
from lra.models.bodies.encoder import Encoder
from lra.models.bodies.encoder_decoder import EncoderDecoder
from lra.models.draws import drawing
from lra.models.embedding import Embedding
from lra.models.head import TableHead, build_head
from lra.models.layers import Built, Layers, Member
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
from lra.models.start import start_blocks, start_table


class Slots(NamedTuple):
    """Mechanisms of an encoder-decoder, by their places."""

    encoder: Layers
    decoder: Layers
    cross: Layers


class Answers(NamedTuple):
    """Classes of a task, which are fewer than its tokens, and the parts of a token."""

    classes: int
    first: int | None
    """Token of class 0, the others following; None where classes are no tokens."""
    widths: Sequence[int] | None = None
    """Hidden widths of a head of linear layers; None for a table of tokens or classes."""
    parts: tuple[int, ...] = ()
    """Sizes of the parts that a token consists of, as in `Dataset.parts`."""


def named_layers(cycle: Sequence[Mechanism]) -> Layers:
    """Return the layers of a preset; raises `UsageError` for an unknown name or setting."""
    members = []
    for one in cycle:
        kind = cast(type[Layer], loading.load(catalogue.find("mechanism", one.name)))
        try:
            members.append(Member(kind, msgspec.convert(one.config, kind.Config)))
        except msgspec.ValidationError as error:
            raise UsageError(f"mechanism '{one.name}': {error}; fix its settings") from error
    return Layers(tuple(members))


def build_preset(preset: Preset, size: str, *, seed: int = 0) -> Model | SequenceModel:
    """Return a published model at one of its sizes, as it is trained, on the CPU, in float32.

    Raises `UsageError` for an unknown size.
    """
    if size not in preset.sizes:
        raise unknown_name(f"size of {preset.name}", size, list(preset.sizes))
    sizes, form, dropout = preset.sizes[size], preset.form, preset.dropout
    decoder = named_layers(preset.decoder.mechanisms)
    position = _position(preset.decoder)
    if preset.encoder is None or preset.cross is None:
        return build_decoder(
            sizes, form, layers=decoder, position=position, dropout=dropout, seed=seed
        )
    encoder, cross = (named_layers(slot.mechanisms) for slot in (preset.encoder, preset.cross))
    return build_encoder_decoder(
        sizes,
        form,
        slots=Slots(encoder, decoder, cross),
        positions=(_position(preset.encoder), position),
        dropout=dropout,
        seed=seed,
    )


def build_decoder(
    size: Size,
    form: BlockForm,
    *,
    layers: Layers,
    position: type[Position],
    dropout: float = 0.0,
    attention_dropout: float | None = None,
    answers: Answers | None = None,
    seed: int = 0,
) -> Model:
    """Return a decoder on the CPU, in float32: its `forward(tokens_SN)` gives logits (S, N, V) of
    the token after each, or of the classes of a task.

    Attention has the same dropout where none is named. Raises `UnsupportedError` for a mechanism
    that is not strictly causal.
    """
    dims = stack_dims(size, form, dropout if attention_dropout is None else attention_dropout)
    with drawing(seed, "position"):
        positions = position(dims)
    parts = () if answers is None else answers.parts
    embedding = build_embedding(size, form, positions, dropout=dropout, seed=seed, parts=parts)
    decoder = _decoder(size, form, layers.build(dims, seed=seed), dropout=dropout, seed=seed)
    return Model(
        embedding,
        decoder,
        build_output(size, form, embedding, answers=answers, seed=seed),
        pooling="none",
        rules="fixed",
        causal=True,
        inputs=1,
        pair_features="four",
    )


def build_encoder_decoder(
    size: Size,
    form: BlockForm,
    *,
    slots: Slots,
    positions: tuple[type[Position], type[Position]],
    dropout: float = 0.0,
    attention_dropout: float | None = None,
    answers: Answers | None = None,
    seed: int = 0,
) -> SequenceModel:
    """Return an encoder-decoder on the CPU, in float32, with one table of tokens for source, target
    and, where the form is tied, output.

    `positions` are those of source and target. Attention has the same dropout where none is named.
    Raises `UnsupportedError` for a mechanism that cannot fill its slot.
    """
    dims = stack_dims(size, form, dropout if attention_dropout is None else attention_dropout)
    embeddings = []
    parts = () if answers is None else answers.parts
    for stack, position in zip(("encoder", "decoder"), positions, strict=True):
        with drawing(seed, f"{stack} position"):
            placed = position(dims)
        own = build_embedding(size, form, placed, dropout=dropout, seed=seed, parts=parts)
        embeddings.append(own)
    source, target = embeddings
    target.tokens = source.tokens
    encoding, decoding, crossing = (
        layers.build(dims, seed=seed, stack=stack)
        for stack, layers in zip(Slots._fields, slots, strict=True)
    )
    blocks = _blocks(size, form, encoding, None, dropout=dropout, seed=seed, stack="encoder")
    encoder = Encoder(blocks, norm=_final_norm(size, form), shared=encoding.shared)
    decoder = _decoder(size, form, decoding, crossing, dropout=dropout, seed=seed, stack="decoder")
    body = EncoderDecoder(encoder, decoder)
    head = build_output(size, form, source, answers=answers, seed=seed)
    return SequenceModel(source, target, body, head)


def _decoder(
    size: Size,
    form: BlockForm,
    own: Built,
    cross: Built | None = None,
    *,
    dropout: float,
    seed: int,
    stack: str = "",
) -> Decoder:
    blocks = _blocks(size, form, own, cross, dropout=dropout, seed=seed, stack=stack)
    shared = [*own.shared, *([] if cross is None else cross.shared)]
    return Decoder(blocks, norm=_final_norm(size, form), shared=shared)


def _blocks(
    size: Size,
    form: BlockForm,
    own: Built,
    cross: Built | None,
    *,
    dropout: float,
    seed: int,
    stack: str,
) -> list[Block]:
    """Return the blocks of one stack; a decoder's read a memory by the layers of `cross`."""
    prefix = f"{stack} " if stack else ""
    readers = [None] * size.layers if cross is None else cross.layers
    blocks = []
    for index, (layer, reader) in enumerate(zip(own.layers, readers, strict=True)):
        with drawing(seed, f"{prefix}mlp {index}"):
            mlp = Mlp(size.width, size.mlp_width, dropout, form)
        blocks.append(
            Block(size.width, mechanism=layer, mlp=mlp, dropout=dropout, form=form, cross=reader)
        )
    with drawing(seed, f"{prefix}start"):
        start_blocks(blocks, form)
    return blocks


def _final_norm(size: Size, form: BlockForm) -> nn.Module | None:
    return build_norm(form, size.width) if form.final_norm else None


def _position(slot: Slot) -> type[Position]:
    return cast(type[Position], loading.load(catalogue.find("position", slot.position)))


def stack_dims(size: Size, form: BlockForm, dropout: float) -> Dims:
    """Return the sizes that a stack's mechanisms share."""
    return Dims(
        width=size.width,
        qkv_width=size.qkv_width,
        heads=size.heads,
        max_length=size.length,
        layers=size.layers,
        dropout=dropout,
        projection_biases=form.attention_biases,
    )


def build_embedding(
    size: Size,
    form: BlockForm,
    position: Position,
    *,
    dropout: float,
    seed: int,
    parts: tuple[int, ...] = (),
) -> Embedding:
    """Return the embedding of tokens with their positions."""
    with drawing(seed, "embedding"):
        embedding = Embedding(
            size.vocabulary,
            size.width,
            position=position,
            class_token=False,
            dropout=dropout,
            rules="fixed",
            scale=size.width**0.5 if form.scaled_input else 1.0,
            norm=build_norm(form, size.width) if form.embedding_norm else None,
            parts=parts,
        )
        start_table(embedding.tokens, form)
    return embedding


def build_output(
    size: Size,
    form: BlockForm,
    embedding: Embedding,
    *,
    answers: Answers | None = None,
    seed: int,
) -> nn.Module:
    """Return the head: the table of tokens again, the rows of it that are answers, or a head of its
    own."""
    table, rows, scale = embedding.tokens, None, size.width**-0.5 if form.scaled_output else 1.0
    if answers is not None and form.tied and answers.first is not None:
        rows = slice(answers.first, answers.first + answers.classes)
    elif answers is not None or not form.tied:
        classes = size.vocabulary if answers is None else answers.classes
        with drawing(seed, "head"):
            if answers is not None and answers.widths is not None:
                return build_head(size.width, answers.widths, classes)
            table = nn.Embedding(classes, size.width)
            start_table(table, form)
    return TableHead(table, scale=scale, rows=rows)
