"""The protocol of a measurement as frozen values: data, model, training. Every field is hashed.

A scale file (`lra/scales/*.toml`) fills these in; a cell holds them fully resolved, so that a
record states every choice.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")

Rules = Literal["fixed", "lra2021"]
"""fixed: explicit masks, masked pooling, literal vocabularies, validation held out of train.
lra2021: the choices of the original code, faults included. The two are never in one table."""

Order = Literal["given", "shuffled"]
"""shuffled: the tokens of each sequence in a random order, drawn once for each sequence, in all
splits: which tokens there are is left, and not where."""

Track = Literal["matched", "tuned"]
"""matched: the same training around every mechanism. tuned: the learning rate is searched for each
mechanism and task, and chosen by validation. The two are never in one table."""
MOST = 2**31
"""Largest count that fits any machine."""
REPEATS = 10_000
"""Largest number of seeds or processes of one cell."""
Body = Literal["encoder", "decoder", "encoder_decoder"]
"""encoder: each position from all others, then one answer per example. decoder: an answer at each
position, from those up to it. encoder_decoder: a decoder whose layers read an encoder's output."""
SlotName = Literal["encoder", "decoder", "cross"]
"""Places for mechanisms in an encoder-decoder; cross reads the encoder's output."""
SLOTS: tuple[SlotName, ...] = ("encoder", "decoder", "cross")
Positive = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Repeats = Annotated[int, msgspec.Meta(ge=1, le=REPEATS)]
Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Above0 = Annotated[float, msgspec.Meta(gt=0.0)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]


class Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value without a hidden field: unknown keys are refused, nothing changes after creation."""


class Rows(Frozen, frozen=True, kw_only=True):
    """Numbers of examples of each split, to make or at most to read."""

    train: Positive
    validation: Positive
    test: Positive

    def of(self, split: SplitName) -> int:
        """Return the number for one split."""
        return int(getattr(self, split))


class DataSpec(Frozen, frozen=True, kw_only=True):
    """Data of a training: task, source, length, number of rows."""

    task: str
    source: Literal["generated", "file", "hub"] = "generated"
    hash: str = ""
    """Hash of real data's content; empty for generated data, which task, parameters and the
    generator's version determine."""
    rules: Rules = "fixed"
    length: Positive
    rows: Rows
    parameters: dict[str, Any] = {}
    """The task's own configuration, every default filled in."""
    order: Order = "given"


class Mechanism(Frozen, frozen=True, kw_only=True):
    """A mechanism with its configuration, every default filled in."""

    name: str
    config: dict[str, Any] = {}


class BlockForm(Frozen, frozen=True, kw_only=True):
    """Norms, biases and starts of a network, s being a mechanism or an MLP, D the model width.

    The default is the Long Range Arena's encoder.
    """

    norm: Literal["pre", "post"] = "pre"
    """pre: x + s(norm(x)). post: norm(x + s(x))."""
    norm_kind: Literal["layer", "rms"] = "layer"
    """rms: without mean and bias."""
    final_norm: bool = True
    embedding_norm: bool = False
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu_tanh"
    attention_biases: bool = True
    mlp_biases: bool = True
    hidden_dropout: bool = True
    """Dropout after the MLP's activation, beside that on its output."""
    start: Literal["lra", "xavier", "normal", "fan_in"] = "lra"
    """Weights at the start. lra and xavier: uniform, tables N(0, 1) or N(0, 1 / D). normal: all
    N(0, .02^2). fan_in: N(0, 1 / inputs), tables N(0, 1)."""
    scaled_residual: bool = False
    """Weights that write to the residual stream start divided by the root of the number of
    additions to it."""
    scaled_input: bool = False
    """Embedded tokens times sqrt(D)."""
    tied: bool = True
    """The table of tokens gives the logits too."""
    scaled_output: bool = False
    """Vectors times 1 / sqrt(D) before they meet the tied table."""


class ModelSpec(Frozen, frozen=True, kw_only=True):
    """The network around a mechanism."""

    layers: Positive
    width: Positive
    """Width of embeddings and of the residual stream (D)."""
    qkv_width: Positive
    """Width of all heads' queries, keys or values together."""
    heads: Positive
    mlp_width: Positive
    dropout: Fraction = 0.0
    attention_dropout: Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)] = 0.0
    """Dropout of attention weights. Below 1: kept weights are divided by the share that is kept."""
    position: str = "sinusoidal"
    pooling: Literal["cls", "mean", "first", "none"] = "mean"
    """cls: a learned vector prepended to the input. first: the first token's output, which the
    original's retrieval model calls CLS. none: each token's output by itself, where each has a
    label."""
    classifier_widths: tuple[int, ...] = ()
    """Hidden widths of the head; () is one linear layer."""
    pair_features: Literal["four", "two"] = "four"
    """A two-tower matcher's: (x1, x2, x1 * x2, x1 - x2), or (x1, x2) as the original ran it."""
    projection_biases: bool = True
    query_key_start: Literal["independent", "tied"] = "independent"
    """tied: in each layer W_k starts as a copy of W_q and both are doubled; helps small models to
    find same-token matches in few steps, and favours dot-product attention."""
    causal: bool = False
    """Whether no position sees later ones; of an encoder-decoder, whether its target is an answer
    that goes on from itself."""
    body: Body | UnsetType = UNSET
    """Network between embedding and head; unset, an encoder or, causal and without pooling, a
    decoder in the encoder's form."""
    form: BlockForm | UnsetType = UNSET
    """Norms, biases and starts of a published model; unset, those of the Long Range Arena."""
    decoder_position: str | UnsetType = UNSET
    """Position scheme of an encoder-decoder's target; unset, that of the source."""
    slots: dict[SlotName, Mechanism] | UnsetType = UNSET
    """Mechanisms of an encoder-decoder by slot; in those that are not named stands the cell's."""

    def __post_init__(self) -> None:
        """Refuse heads that do not share the width evenly."""
        if self.qkv_width % self.heads:
            raise ValueError(f"qkv_width {self.qkv_width} is no multiple of {self.heads} heads")

    @property
    def open_slots(self) -> tuple[SlotName, ...]:
        """Slots of an encoder-decoder in which the cell's mechanism stands; () for one stack."""
        if self.body != "encoder_decoder":
            return ()
        named = () if self.slots is UNSET else self.slots
        return tuple(slot for slot in SLOTS if slot not in named)

    def by_token(self) -> ModelSpec:
        """Return the same network answering at each token, from those up to it alone."""
        return msgspec.structs.replace(self, causal=True, pooling="none")


class TrainSpec(Frozen, frozen=True, kw_only=True):
    """Training of the model."""

    steps: Positive
    batch: Positive
    """Examples per optimiser step, all micro-batches together."""
    learning_rate: Above0
    schedule: Literal["linear", "cosine", "rsqrt", "constant"] = "cosine"
    warmup: Count = 0
    """Steps of linear warm-up from 0."""
    flat: Fraction = 0.0
    """Share of the steps at the peak rate, before a cosine or linear decay."""
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    epsilon: Above0 = 1e-8
    weight_decay: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0
    clip: Above0 | None = None
    """Largest global gradient norm; None clips nothing."""
    evaluate_every: Positive
    """Steps between validations."""
    tested: Literal["best", "last"] = "best"
    """Weights that are tested, once: the best by validation, or those of the last step."""
    evaluation_batch: Positive = 256
    micro_batches: Positive = 1
    """Gradient accumulation: pieces that one batch is cut into."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16: autocast; weights and optimiser stay float32."""
    recompute: bool = False
    """Keep no more of a block than its input, and compute it again on the way back: less memory,
    about a third more time, the same numbers."""
    execution: Literal["eager", "compiled", "graphed"] = "eager"
    """compiled: the model by torch.compile, for inputs of any length where there are several; it
    takes a minute before the first step, and sums in another order. graphed: on one GPU, the eager
    step's kernels from a CUDA graph for each shape of batch."""
    bucketed: bool = True
    """Batches of similar length, cut to their longest row (on a GPU, to the next multiple of 64);
    False pads every row to the length."""


class Machine(Frozen, frozen=True, kw_only=True):
    """The kind of machine that a cell is for; no clock, no host name."""

    processor: str
    """Model of the processor or GPU."""
    cores: Positive
    """Cores this process may use."""
    driver: str | None = None
    """Major version of the GPU driver; None on CPU."""

    @property
    def name(self) -> str:
        """Folder name for this class of machine."""
        parts = [
            self.processor,
            f"{self.cores}c",
            *([f"driver{self.driver}"] if self.driver else []),
        ]
        text = "-".join(parts).lower()
        return "-".join("".join(c if c.isalnum() else " " for c in text).split())
