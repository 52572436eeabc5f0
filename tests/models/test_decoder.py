"""Laws of decoders: nothing later counts, cycles, tied tables, and a stream that does not grow."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Context, Dims
from lra.core.catalogue import find
from lra.core.errors import UnsupportedError, UsageError
from lra.core.forms import BlockForm, Size, load_preset
from lra.core.loading import load
from lra.core.protocol import Mechanism
from lra.models.bodies.decoder import Decoder
from lra.models.body import Stream
from lra.models.embedding import Embedding
from lra.models.head import TableHead
from lra.models.language import build_decoder, named_layers
from lra.models.model import Model

SIZE = Size(
    layers=4, width=16, qkv_width=16, heads=2, mlp_width=32, vocabulary=13, length=24
)  # fmt: skip
FORMS = {name: load_preset(name).form for name in ("gpt", "gpt2", "gpt3")}


def built(
    *mechanisms: Mechanism,
    form: BlockForm = FORMS["gpt2"],
    size: Size = SIZE,
    position: str = "learned",
) -> Model:
    cycle = mechanisms or (Mechanism(name="full"),)
    return build_decoder(
        size, form, layers=named_layers(cycle), position=load(find("position", position)), seed=1
    ).eval()


def tokens(rows: int = 2, length: int = 24) -> Tensor:
    return torch.randint(0, 13, (rows, length), generator=torch.manual_seed(0))


@pytest.mark.parametrize("form", FORMS)
def test_logits_do_not_change_with_later_tokens_bit_for_bit(form: str) -> None:
    model, before = built(form=FORMS[form]), tokens()
    for place in (1, 7, 23):
        after = before.clone()
        after[:, place:] = (after[:, place:] + 1) % 13
        one, other = model(before).logits_LC, model(after).logits_LC
        assert torch.equal(one[:, :place], other[:, :place])
        assert not torch.equal(one[:, place:], other[:, place:])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("padded", [False, True])
def test_a_row_of_a_batch_is_the_row_alone(form: str, padded: bool) -> None:
    model, rows = built(form=FORMS[form]).double(), tokens(3)
    mask = torch.arange(24) < torch.tensor([24, 9, 1])[:, None] if padded else None
    batch = model(rows, mask).logits_LC
    for row, length in enumerate((24, 9, 1) if padded else (24,) * 3):
        alone = model(rows[row : row + 1, :length]).logits_LC
        assert torch.allclose(batch[row, :length], alone[0], atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_stepping_gives_the_logits_of_teacher_forcing(form: str) -> None:
    banded = Mechanism(name="sliding_window", config={"left": 5, "right": 0})
    model, rows = built(Mechanism(name="sdpa"), banded, form=FORMS[form]).double(), tokens()
    states, parts = model.init_states(2, length=24), []
    for first, last in ((0, 10), *((n, n + 1) for n in range(10, 24))):
        found = model(rows[:, first:last], states=states, first=first)
        parts.append(found.logits_LC)
        states = found.states
    assert torch.allclose(torch.cat(parts, dim=1), model(rows).logits_LC, atol=1e-12)


def test_a_band_as_wide_as_the_input_is_dense_and_a_narrow_one_is_not() -> None:
    def banded(left: int) -> Model:
        window = Mechanism(name="sliding_window", config={"left": left, "right": 0})
        return built(Mechanism(name="full"), window, form=FORMS["gpt3"]).double()

    dense = built(form=FORMS["gpt2"]).double()(tokens()).logits_LC
    assert torch.allclose(banded(24)(tokens()).logits_LC, dense, atol=1e-12)
    assert not torch.allclose(banded(2)(tokens()).logits_LC, dense, atol=1e-4)


def test_untied_with_the_same_rows_is_tied_and_gradients_add_up() -> None:
    tied = built().double()
    untied = built(form=msgspec.structs.replace(FORMS["gpt2"], tied=False)).double()
    given, read = untied.embedding.tokens.weight, untied.head.table.weight
    assert given is not read and tied.head.table.weight is tied.embedding.tokens.weight
    with torch.no_grad():
        read.copy_(given)
    losses = []
    for model in (tied, untied):
        logits = model(tokens()).logits_LC
        losses.append(F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens()[:, 1:].flatten()))
        losses[-1].backward()
    assert torch.equal(losses[0], losses[1])
    found = tied.embedding.tokens.weight.grad
    assert torch.allclose(found, given.grad + read.grad, atol=1e-14)
    assert min(one.abs().max() for one in (given.grad, read.grad)) > 1e-3


def test_without_layers_it_is_a_table_of_bigrams() -> None:
    embedding = Embedding(
        13, 16, position=load(find("position", "none"))(Dims(16, 16, 2, 24)),
        class_token=False, dropout=0.0, rules="fixed",
    )  # fmt: skip
    model = Model(
        embedding, Decoder([], norm=None), TableHead(embedding.tokens),
        pooling="none", rules="fixed", causal=True, inputs=1, pair_features="four",
    )  # fmt: skip
    table = embedding.tokens.weight
    assert torch.allclose(model(tokens()).logits_LC, (table @ table.T)[tokens()], atol=1e-5)


def growth(layers: int, form: BlockForm) -> float:
    """The stream's variance after the last block over that after the embedding."""
    sizes = msgspec.structs.replace(SIZE, layers=layers, width=64, qkv_width=64, mlp_width=256)
    model, seen = built(form=form, size=sizes), []
    model.embedding.register_forward_hook(lambda module, given, out: seen.append(out[0]))
    model.body.norm.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    with torch.no_grad():
        model(tokens(8))
    return float(seen[1].var() / seen[0].var())


def test_with_scaled_writes_the_stream_grows_no_more_in_deep_models() -> None:
    unscaled = msgspec.structs.replace(FORMS["gpt2"], scaled_residual=False)
    assert growth(48, FORMS["gpt2"]) < 1.5 * growth(3, FORMS["gpt2"])
    assert growth(48, unscaled) > 5 * growth(3, unscaled)


@pytest.mark.parametrize("form", FORMS)
def test_the_first_loss_is_that_of_chance(form: str) -> None:
    sizes = msgspec.structs.replace(SIZE, width=64, qkv_width=64, vocabulary=200)
    logits = built(form=FORMS[form], size=sizes)(tokens(8)).logits_LC
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens(8)[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(200), abs=0.1)


def test_the_forms_differ_where_they_should() -> None:
    post, pre = built(form=FORMS["gpt"]), built(form=FORMS["gpt2"])
    assert post.body.norm is None and isinstance(pre.body.norm, nn.LayerNorm)
    with torch.no_grad():
        x = torch.randn(2, 5, 16)
        y = post.body(Stream(x), Context(causal=True)).x_BND
    # After a norm every vector has mean 0 and variance 1.
    assert torch.allclose(y.mean(-1), torch.zeros(2, 5), atol=1e-5)
    assert torch.allclose(y.var(-1, unbiased=False), torch.ones(2, 5), atol=1e-2)


@pytest.mark.parametrize("mechanism", ["linformer", "reformer"])
def test_a_mechanism_that_is_not_strictly_causal_is_refused(mechanism: str) -> None:
    with pytest.raises(UnsupportedError, match=mechanism):
        built(Mechanism(name=mechanism))


def test_a_decoder_asked_for_later_positions_refuses() -> None:
    with pytest.raises(UsageError):
        built().body(Stream(torch.zeros(1, 3, 16)), Context(causal=False))


def test_a_setting_that_a_mechanism_lacks_and_an_unknown_preset_are_one_line_each() -> None:
    with pytest.raises(UsageError, match="sdpa"):
        built(Mechanism(name="sdpa", config={"left": 3}))
    with pytest.raises(UsageError, match="gpt2"):
        load_preset("gpt22")
