"""Laws of generation, each a function that fails where generation breaks it, and plain references
without caches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import msgspec
import torch
from models import sequence_laws
from torch import Tensor, nn

from lra.core.catalogue import find
from lra.core.forms import Size, load_preset
from lra.core.loading import load
from lra.core.protocol import Mechanism
from lra.models.language import build_decoder, named_layers
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
from lra.training.generate import beam, greedy
from lra.training.generate.search import Sequences, search

SIZE = Size(layers=2, width=16, qkv_width=16, heads=2, mlp_width=32, vocabulary=11, length=24)
START, END, PAD, LIMIT, WIDTH = 10, 3, 0, 8, 3
Network = Model | SequenceModel


class Unlikely(nn.Module):
    """A head under which one token hardly ever comes."""

    def __init__(self, head: nn.Module, token: int) -> None:
        super().__init__()
        self.head, self.token = head, token

    def forward(self, x: Tensor) -> Tensor:
        logits = self.head(x)
        return logits - 60.0 * torch.eye(logits.shape[-1], dtype=x.dtype)[self.token]


def speaker(**slots: str) -> SequenceModel:
    """An encoder-decoder, whose source matters."""
    form = msgspec.structs.replace(load_preset("pegasus").form, tied=False)
    return lively(sequence_laws.built("pegasus", size=SIZE, form=form, **slots))


def writer(*mechanisms: str) -> Model:
    """A decoder."""
    layers = named_layers([Mechanism(name=one) for one in mechanisms or ("full",)])
    form = msgspec.structs.replace(load_preset("gpt2").form, tied=False)
    position = load(find("position", "learned"))
    return lively(build_decoder(SIZE, form, layers=layers, position=position, seed=1).double())


def lively(model: Any) -> Any:
    """The same with weights so large that tokens and sources differ much in what comes next."""
    with torch.no_grad():
        for number, (name, weight) in enumerate(model.named_parameters()):
            if weight.dim() == 2:
                is_table = "tokens" in name or "table" in name
                std = 0.7 if is_table else 1.5 * weight.shape[1] ** -0.5
                nn.init.normal_(weight, std=std, generator=torch.manual_seed(number))
    return model.eval()


def given(model: Network, rows: int = 3) -> tuple[Tensor, Tensor | None]:
    """Sources with padding, or beginnings."""
    tokens = torch.randint(0, 10, (rows, 7), generator=torch.manual_seed(5))
    if isinstance(model, Model):
        return tokens, None
    return tokens, torch.arange(7) < torch.tensor([7, 4, 2, 6])[:rows, None]


def options(model: Network, **changes: Any) -> dict[str, Any]:
    own = {"end": END, "limit": LIMIT, "pad": PAD, **changes}
    return own if isinstance(model, Model) else {"start": START, **own}


@torch.no_grad()
def next_log_p(model: Network, tokens: Tensor, mask: Tensor | None, new: Sequence[int]) -> Tensor:
    """Log probabilities of what follows one row, all of it computed at once and nothing kept."""
    if isinstance(model, Model):
        logits = model(torch.cat([tokens, torch.tensor(new, dtype=torch.int64)])[None]).logits_LC
    else:
        rows = torch.tensor([START, *new])[None]
        logits = model(tokens[None], rows, None if mask is None else mask[None]).logits_LC
    return logits[0, -1].log_softmax(-1)


def plain_beam(
    after: Callable[[Sequence[int]], Tensor],
    *,
    width: int,
    alpha: float,
    end: int | None,
    limit: int,
) -> list[tuple[float, list[int]]]:
    """Beam search of one example in plain Python, to its limit, without stopping before."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, limit + 1):
        grown = [
            (total + float(log_p), [*tokens, token])
            for total, tokens in live
            for token, log_p in enumerate(after(tokens))
        ]
        grown = sorted(grown, key=lambda one: -one[0])[: 2 * width]
        ended = [one for one in grown if one[1][-1] == end or length == limit]
        penalty = ((5 + length) / 6) ** alpha
        finished += [(total / penalty, tokens) for total, tokens in ended]
        finished = sorted(finished, key=lambda one: -one[0])[:width]
        live = [one for one in grown if one not in ended][:width]
    return finished


def told(found: Any, row: int) -> list[int]:
    """The tokens of one row up to its length."""
    return found.tokens_BN[row, : int(found.lengths_B[row])].tolist()


def without_seen(log_p: Tensor, tokens: Sequence[int]) -> Tensor:
    """Log probabilities without tokens that complete a trigram again."""
    seen = {tuple(tokens[n : n + 3]) for n in range(len(tokens) - 2)}
    bans = [(*tokens[-2:], token) in seen for token in range(len(log_p))]
    return log_p.masked_fill(torch.tensor(bans), -math.inf)


def reference(
    model: Network, row: int, *, ban: bool = False, **search: Any
) -> list[tuple[float, list[int]]]:
    tokens, mask = given(model)
    before = tokens[row].tolist() if isinstance(model, Model) else [START]

    def after(new: Sequence[int]) -> Tensor:
        log_p = next_log_p(model, tokens[row], None if mask is None else mask[row], new)
        return without_seen(log_p, [*before, *new]) if ban else log_p

    return plain_beam(after, **{"end": END, "limit": LIMIT, **search})


def greedy_is_the_same_without_caches(model: Network) -> None:
    found, (tokens, mask) = greedy(model, *given(model), **options(model)), given(model)
    for row in range(len(tokens)):
        new: list[int] = []
        total = 0.0
        while len(new) < LIMIT and END not in new:
            log_p = next_log_p(model, tokens[row], None if mask is None else mask[row], new)
            new.append(int(log_p.argmax()))
            total += float(log_p.max())
        assert told(found, row) == new
        assert abs(float(found.scores_B[row]) - total) < 1e-10


def a_beam_is_the_same_without_caches(model: Network, *, alpha: float = 0.6) -> None:
    found = beam(model, *given(model), **options(model, width=WIDTH, alpha=alpha))
    for row in range(len(found.tokens_EWN)):
        wanted = reference(model, row, width=WIDTH, alpha=alpha)
        for place, (score, tokens) in enumerate(wanted):
            length = int(found.lengths_EW[row, place])
            assert found.tokens_EWN[row, place, :length].tolist() == tokens
            assert abs(float(found.scores_EW[row, place]) - score) < 1e-10


def a_beam_of_one_is_greedy(model: Network) -> None:
    """For an end that is unlikely: a beam of one may end sooner than greedy does."""
    plain, model.head = model.head, Unlikely(model.head, END)
    try:
        wanted = greedy(model, *given(model), **options(model))
        assert wanted.lengths_B.tolist() == [LIMIT] * 3
        for alpha in (0.0, 0.6, 2.0):
            found = beam(model, *given(model), **options(model, width=1, alpha=alpha)).best
            assert torch.equal(found.tokens_BN, wanted.tokens_BN)
    finally:
        model.head = plain


def a_score_is_that_of_its_tokens(model: Network) -> None:
    tokens, mask = given(model)
    for alpha in (0.0, 0.6, 1.5):
        found = beam(model, tokens, mask, **options(model, width=WIDTH, alpha=alpha))
        for row, place in product(range(len(tokens)), range(WIDTH)):
            length = int(found.lengths_EW[row, place])
            new, own = (
                found.tokens_EWN[row, place, :length].tolist(),
                mask if mask is None else mask[row],
            )
            steps = [next_log_p(model, tokens[row], own, new[:n])[new[n]] for n in range(length)]
            wanted = float(sum(steps)) / ((5 + length) / 6) ** alpha
            assert abs(float(found.scores_EW[row, place]) - wanted) < 1e-10


def what_ended_is_not_extended(model: Network) -> None:
    one = greedy(model, *given(model), **options(model, limit=12))
    many = beam(model, *given(model), **options(model, limit=12, width=WIDTH))
    rows = [*zip(one.tokens_BN, one.lengths_B, strict=True)]
    rows += zip(many.tokens_EWN.flatten(0, 1), many.lengths_EW.flatten(), strict=True)
    ended = 0
    for tokens, length in rows:
        new, rest = tokens[: int(length)].tolist(), tokens[int(length) :].tolist()
        assert END not in new[:-1] and set(rest) <= {PAD}
        assert new[-1] == END or len(new) == 12
        ended += new[-1] == END
    assert 0 < ended < len(rows)


def a_row_is_generated_as_if_alone(model: Network) -> None:
    tokens, mask = given(model)
    order = torch.tensor([0, 0, 1, 2, 1])
    twice = mask if mask is None else mask[order]
    batch = beam(model, tokens[order], twice, **options(model, width=WIDTH)).best
    rows = greedy(model, tokens[order], twice, **options(model))
    for place, row in enumerate(order.tolist()):
        own = mask if mask is None else mask[row : row + 1]
        alone = beam(model, tokens[row : row + 1], own, **options(model, width=WIDTH)).best
        assert told(batch, place) == told(alone, 0)
        assert torch.allclose(batch.scores_B[place], alone.scores_B[0], atol=1e-10)
        single = greedy(model, tokens[row : row + 1], own, **options(model))
        assert told(rows, place) == told(single, 0)
    assert len({tuple(told(batch, place)) for place in range(5)}) > 1


def no_trigram_comes_twice(model: Network) -> None:
    asked = options(model, end=None, limit=14)
    free, banned = (
        greedy(model, *given(model), **asked, ban_trigrams=ban) for ban in (False, True)
    )
    begun = given(model)[0] if isinstance(model, Model) else torch.full((3, 1), START)
    repeats = []
    for found in (free, banned):
        rows = torch.cat([begun, found.tokens_BN], dim=1).unfold(1, 3, 1).tolist()
        repeats.append(sum(len(row) - len({*map(tuple, row)}) for row in rows))
    assert repeats[0] > 0 and repeats[1] == 0
    found = beam(model, *given(model), **asked, width=2, ban_trigrams=True).best
    for row in range(3):
        wanted = reference(model, row, ban=True, width=2, alpha=0.6, end=None, limit=14)
        assert told(found, row) == wanted[0][1]


class Table:
    """A model of random numbers: what comes next follows from all tokens before."""

    def __init__(self, seed: int, vocabulary: int = 5, limit: int = 5, scale: float = 2.0) -> None:
        self.vocabulary, self.limit, self.calls = vocabulary, limit, 0
        rows = sum(vocabulary**n for n in range(limit))
        drawn = torch.randn(rows, vocabulary, generator=torch.manual_seed(seed)).double()
        self.log_p = (scale * drawn).log_softmax(-1)

    def after(self, tokens: Sequence[int]) -> Tensor:
        return self(torch.tensor([tokens], dtype=torch.int64), None)[0]

    def __call__(self, new: Tensor, parents: Tensor | None) -> Tensor:
        self.calls += 1
        place = torch.zeros(len(new), dtype=torch.int64)
        for column in new.T:
            place = place * self.vocabulary + column + 1
        return self.log_p[place]

    def found(self, width: int, alpha: float, end: int | None = 0) -> Sequences:
        first = self.log_p[:1].expand(width, -1)
        return search(first, self, width=width, alpha=alpha, end=end, limit=self.limit, pad=0)

    def best(self, alpha: float, end: int = 0) -> tuple[float, list[int]]:
        """The best of all sequences."""
        every = []
        for length in range(1, self.limit + 1):
            inner = [token for token in range(self.vocabulary) if token != end]
            lasts = range(self.vocabulary) if length == self.limit else [end]
            for tokens in product(*[inner] * (length - 1), lasts):
                steps = [self.log_p[self._row(tokens[:n]), tokens[n]] for n in range(length)]
                every.append((float(sum(steps)) / ((5 + length) / 6) ** alpha, [*tokens]))
        return max(every)

    def _row(self, tokens: Sequence[int]) -> int:
        row = 0
        for token in tokens:
            row = row * self.vocabulary + token + 1
        return row


def a_beam_as_wide_as_all_sequences_finds_the_best(_: Network | None = None) -> None:
    for seed, alpha in zip(range(6), (0.0, 0.6, 1.5) * 2, strict=True):
        table = Table(seed, vocabulary=4, limit=4)
        found, (score, tokens) = table.found(4**3, alpha), table.best(alpha)
        length = int(found.lengths_EC[0, 0])
        assert found.tokens_ECN[0, 0, :length].tolist() == tokens
        assert abs(float(found.scores_EC[0, 0]) - score) < 1e-12


def a_narrow_beam_is_the_plain_one(_: Network | None = None) -> None:
    stopped = 0
    for seed, alpha in zip(range(40), (0.0, 0.6, 1.0, 2.0) * 10, strict=True):
        table = Table(seed, vocabulary=5, limit=5)
        found = table.found(3, alpha)
        stopped += table.calls < table.limit - 1
        wanted = plain_beam(table.after, width=3, alpha=alpha, end=0, limit=5)
        for place, (score, tokens) in enumerate(wanted):
            length = int(found.lengths_EC[0, place])
            assert found.tokens_ECN[0, place, :length].tolist() == tokens
            assert abs(float(found.scores_EC[0, place]) - score) < 1e-12
    assert 0 < stopped < 40


def equals_are_ordered_by_token(_: Network | None = None) -> None:
    table = Table(0, vocabulary=5, limit=3, scale=0.0)
    found = table.found(4, 0.0, end=None).tokens_ECN[0].tolist()
    assert found == [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]
    found = table.found(1, 0.0, end=None).tokens_ECN[0].tolist()
    assert found == [[0, 0, 0]]


def a_source_is_projected_once(model: Network) -> None:
    """Keys of a source are made once, whatever is generated from it."""
    calls: list[str] = []
    hooks = [model.body.encoder.register_forward_hook(lambda *_: calls.append("encoder"))]
    for block in model.body.decoder.blocks:
        for name in ("key", "value"):
            part = getattr(block.cross, name)
            hooks.append(part.register_forward_hook(lambda *_, name=name: calls.append(name)))
    layers = len(model.body.decoder.blocks)
    for ask in (greedy, beam):
        calls.clear()
        wide = {"width": WIDTH} if ask is beam else {}
        ask(model, *given(model), **options(model), **wide)
        assert sorted(calls) == ["encoder", *["key"] * layers, *["value"] * layers]
    for hook in hooks:
        hook.remove()
