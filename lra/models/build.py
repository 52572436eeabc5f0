"""Build a model around its mechanisms, given as classes.

Every part draws its parameters from a generator keyed by (seed, part), so that two mechanisms under
one seed start from the same embedding, projections, MLPs and head: a mechanism's own draws shift
nothing else.
"""

from __future__ import annotations

import torch
from torch import nn

from attention_impls.contract import Attention, Dims, Position
from lra.core.errors import UnsupportedError, UsageError
from lra.core.protocol import ModelSpec, Rules
from lra.models.block import NORM_EPSILON, Block, Mlp
from lra.models.bodies.encoder import Encoder
from lra.models.draws import drawing
from lra.models.embedding import Embedding
from lra.models.head import build_head, feature_width
from lra.models.layers import Layers
from lra.models.model import Model


def build_model(
    spec: ModelSpec,
    *,
    layers: Layers,
    position: type[Position],
    vocabulary: int,
    classes: int,
    inputs: int = 1,
    length: int,
    picture_width: int | None = None,
    rules: Rules = "fixed",
    seed: int = 0,
) -> Model:
    """Return a classifier (or, with two inputs, a matcher) on the CPU, in float32.

    Its `forward(tokens_SN, mask_SN | None)` gives logits (examples, classes). `layers` are the
    mechanisms; `length` is the
    longest input in tokens; a class token comes on top. `picture_width` is that of the rows of a
    picture, for mechanisms that tell rows from columns. torch's default generator is left as it
    was found.

    `fixed` rules: the class token is real, the mean is over real tokens. `lra2021` rules repeat the
    original's code: the class token inherits the mask of token 0, the mean runs over padding too,
    and masks are `id > 0`, made with the batches. One deviation stays: a fully masked row attended
    uniformly to everything there; here, as everywhere in this project, it gives zero.

    Raises `UsageError` for another number of inputs, and for two with an answer at each token;
    `UnsupportedError` where each token is predicted from those up to it, and a mechanism is not
    strictly causal: it would have seen the answer.
    """
    if inputs not in (1, 2):
        raise UsageError(f"a model takes one or two sequences per example, not {inputs}")
    if inputs == 2 and spec.pooling == "none":
        raise UsageError(
            "a model that pools nothing answers for each token of one sequence, not of two; choose "
            "another pooling or inputs = 1"
        )
    for member in layers.cycle:
        causality = member.mechanism.card.capabilities.causal
        if spec.pooling == "none" and causality != "strict":
            raise UnsupportedError(
                f"{member.name} is not strictly causal (causal: {causality}), and this task asks "
                "for each token; choose a mechanism that is"
            )
    class_token = spec.pooling == "cls"
    dims = Dims(
        width=spec.width,
        qkv_width=spec.qkv_width,
        heads=spec.heads,
        max_length=length + class_token,
        layers=spec.layers,
        dropout=spec.attention_dropout,
        projection_biases=spec.projection_biases,
        picture_width=picture_width,
    )
    with drawing(seed, "position"):
        positions = position(dims)
    with drawing(seed, "embedding"):
        embedding = Embedding(
            vocabulary,
            spec.width,
            position=positions,
            class_token=class_token,
            dropout=spec.dropout,
            rules=rules,
        )
    built = layers.build(dims, seed=seed)
    blocks = []
    for index, layer in enumerate(built.layers):
        with drawing(seed, f"mlp {index}"):
            mlp = Mlp(spec.width, spec.mlp_width, spec.dropout)
        blocks.append(Block(spec.width, mechanism=layer, mlp=mlp, dropout=spec.dropout))
    norm = nn.LayerNorm(spec.width, eps=NORM_EPSILON)
    body = Encoder(blocks, norm=norm, shared=built.shared)
    with drawing(seed, "head"):
        features = feature_width(spec.width, inputs, spec.pair_features)
        head = build_head(features, spec.classifier_widths, classes)
    if spec.query_key_start == "tied":
        tie_queries_and_keys(body)
    return Model(
        embedding,
        body,
        head,
        pooling=spec.pooling,
        rules=rules,
        causal=spec.causal,
        inputs=inputs,
        pair_features=spec.pair_features,
    )


def parameter_count(model: nn.Module) -> int:
    """Return the number of trainable parameters, shared ones once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


@torch.no_grad()
def tie_queries_and_keys(model: nn.Module) -> None:
    """Start W_k as a copy of W_q, both doubled, in each pair of them that a layer has.

    Without it, small models often miss same-token matches in the steps given. It favours
    dot-product attention, so a protocol must ask for it.
    """
    for layer in model.modules():
        if not isinstance(layer, Attention):
            continue
        for query, key in layer.matched:
            query.weight.mul_(2.0)
            # Where several heads share keys, the first of them is tied.
            heads_HKD = query.weight.view(layer.dims.heads, -1, layer.dims.width)
            firsts_GKD = heads_HKD[:: layer.dims.heads // layer.kv_heads]
            key.weight.copy_(firsts_GKD.flatten(0, 1))
