"""Faults of what is claimed: what does not hold, and what the oracle gets wrong as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context, Convergence, Heads, MechanismConfig
from lra.core.cards import Capabilities
from lra.core.errors import UnsupportedError
from verify.faults.dense import Dense, card
from verify.faults.pattern import RootInverted


class RootInvertedInTheOracleToo(RootInverted, law="exact_softmax", stranger=""):
    """The oracle is written from the same misreading."""

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return softmax_oracle(q * q.shape[-1], k, v, context)


class ExactNowhere(Dense, law="exact_softmax", stranger=""):
    """Claims a configuration that is exact, and names none."""

    card = card(softmax="configured")


class ComesNoNearer(Dense, law="convergence", stranger=""):
    """Its budget is a number that nothing depends on."""

    card = card(softmax="in the limit")

    @classmethod
    def convergence(cls) -> Convergence:
        return Convergence(tuple((budget, MechanismConfig()) for budget in (16, 32, 64)))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return 0.9 * super().logits(q, k)


class ComesNearAtNoRate(Dense, law="convergence", stranger=""):
    """Claims to come near in the limit, and declares no law by which."""

    card = card(softmax="in the limit")


class RotaryIgnored(Dense, law="rotary", stranger=""):
    """The projection, which the oracle shares, never turns anything."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        return super().project(x, replace(context, position=None), source, state)


class BiasIgnored(Dense, law="bias", stranger=""):
    """Neither the fast path nor the oracle adds what positions say."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        return super().read(q, k, v, replace(context, position=None))

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return super().oracle(q, k, v, replace(context, position=None))


class RefusesWhatItClaims(Dense, law="refusal", stranger=""):
    """Its card claims decoding, and there is no state to begin with."""

    def init_state(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedError("keeps no state; ask for all at once")


class StateTakenInSilence(Dense, law="refusal", stranger=""):
    """Is handed a decode state that it does not claim to know, and drops it."""

    card = card(
        capabilities=Capabilities(
            bidirectional=True, causal="strict", cross=True, padding="content", bias=True,
            rotary=True,
        )
    )  # fmt: skip

    def _refuse(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> None:
        super()._refuse(x, context, source, None)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        return super().attend(q, k, v, context)
