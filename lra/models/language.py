"""Build a model of language in a given form: from tokens to the logits of the next ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
from torch import nn

from attention_impls.contract import Dims, Layer, Position
from lra.core import catalogue
from lra.core.errors import UsageError
from lra.core.forms import BlockForm, Size
from lra.core.protocol import Mechanism
from lra.models.block import Block, Mlp, build_norm
from lra.models.bodies.decoder import Decoder
from lra.models.draws import drawing
from lra.models.embedding import Embedding
from lra.models.head import TableHead
from lra.models.layers import Layers, Member
from lra.models.model import Model
from lra.models.start import start_blocks, start_table


def named_layers(cycle: Sequence[Mechanism]) -> Layers:
    """Return the layers of a preset; raises `UsageError` for an unknown name or setting."""
    members = []
    for one in cycle:
        kind = cast(type[Layer], catalogue.load(catalogue.find("mechanism", one.name)))
        try:
            members.append(Member(kind, msgspec.convert(one.config, kind.Config)))
        except msgspec.ValidationError as error:
            raise UsageError(f"mechanism '{one.name}': {error}; fix its settings") from error
    return Layers(tuple(members))


def build_decoder(
    size: Size,
    form: BlockForm,
    *,
    layers: Layers,
    position: type[Position],
    dropout: float = 0.0,
    seed: int = 0,
) -> Model:
    """Return a decoder on the CPU, in float32: its `forward(tokens_SN)` gives logits (S, N, V) of
    the token after each.

    Raises `UnsupportedError` for a mechanism that is not strictly causal.
    """
    dims = stack_dims(size, form, dropout)
    with drawing(seed, "position"):
        positions = position(dims)
    embedding = build_embedding(size, form, positions, dropout=dropout, seed=seed)
    built = layers.build(dims, seed=seed)
    blocks = []
    for index, layer in enumerate(built.layers):
        mlp = build_mlp(size, form, dropout=dropout, seed=seed, part=f"mlp {index}")
        blocks.append(Block(size.width, mechanism=layer, mlp=mlp, dropout=dropout, form=form))
    with drawing(seed, "start"):
        start_blocks(blocks, form)
    norm = build_norm(form, size.width) if form.final_norm else None
    return Model(
        embedding,
        Decoder(blocks, norm=norm, shared=built.shared),
        build_output(size, form, embedding, seed=seed),
        pooling="none",
        rules="fixed",
        causal=True,
        inputs=1,
        pair_features="four",
    )


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


def build_mlp(size: Size, form: BlockForm, *, dropout: float, seed: int, part: str) -> Mlp:
    """Return the MLP of one block, drawn from the stream of its part."""
    with drawing(seed, part):
        return Mlp(size.width, size.mlp_width, dropout, form)


def build_embedding(
    size: Size, form: BlockForm, position: Position, *, dropout: float, seed: int
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
        )
        start_table(embedding.tokens, form)
    return embedding


def build_output(size: Size, form: BlockForm, embedding: Embedding, *, seed: int) -> nn.Module:
    """Return the head: the table of tokens again, or a table of its own."""
    table = embedding.tokens
    if not form.tied:
        with drawing(seed, "head"):
            table = nn.Embedding(size.vocabulary, size.width)
            start_table(table, form)
    return TableHead(table, scale=size.width**-0.5 if form.scaled_output else 1.0)
