"""The kit survives what it tries, says what it found in a line, and finds small inputs."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from attention_impls.contract import Context, Dims, Heads, MechanismConfig
from lra.core.cards import Capabilities
from lra.core.errors import UsageError
from lra.core.findings import Case, Finding, parse
from lra.verify import kit
from lra.verify.case_check import why_unfit
from lra.verify.laws import LAWS
from lra.verify.subject import Subject
from verify.faults.claims import ComesNoNearer
from verify.faults.dense import Dense, card
from verify.faults.future import LooksAheadByOne


def findings(mechanism: type[Any], *laws: str, **options: Any) -> dict[str, Finding]:
    found = kit.verify(Subject(mechanism, mechanism.Config()), kit.select(laws), **options)
    return {finding.law: finding for finding in found}


class Hangs(Dense):
    def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        time.sleep(60)
        raise AssertionError


class Kills(Dense):
    def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class Exits(Dense):
    def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        os._exit(3)


class CannotBeBuilt(Dense):
    def __init__(self, dims: Dims, config: MechanismConfig | None = None, **rest: Any) -> None:
        raise ValueError("needs a power of two,\nnot this")


class AnotherShape(Dense):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None) -> Any:
        out, state = super().attend(q, k, v, context, state)
        return out[:, :, :-1], state


@pytest.mark.parametrize(
    ("mechanism", "verdict", "ending", "words"),
    [
        # A busy machine does the same: it is no failure.
        (Hangs, "skipped", "timeout", "no answer within 2 s"),
        (Kills, "failed", "crash", "killed by SIGKILL"),
        (Exits, "failed", "crash", "exit code 3"),
        (
            CannotBeBuilt,
            "failed",
            "error",
            "ValueError: needs a power of two, not this (test_kit.py, line ",
        ),
        (AnotherShape, "failed", "", "belongs"),
    ],
)
def test_whatever_a_mechanism_does_is_a_row_and_the_next_law_is_tried(
    mechanism: type[Any], verdict: str, ending: str, words: str
) -> None:
    timeout = 2.0 if mechanism is Hangs else 120.0
    found = findings(mechanism, "oracle", "linearity", timeout=timeout)
    assert list(found) == ["oracle", "linearity"]
    broken = found["oracle"]
    assert (broken.verdict, broken.ending) == (verdict, ending)
    assert words in broken.detail and "\n" not in broken.detail


def test_a_failure_comes_with_the_smallest_input_that_shows_it() -> None:
    found = findings(LooksAheadByOne, "causality")["causality"]
    assert found.case == Case(n=2, causal=True, batch=1, heads=1)
    assert "position 0" in found.detail
    assert found.says == kit.select(["causality"])[0].says


def test_shrinking_keeps_to_the_failure_that_was_found() -> None:
    class WrongFromFive(Dense):
        """Wrong by what depends on the length; without positions it is wrong in another way."""

        def attend(self, q: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
            out, state = super().attend(q, *args, **kwargs)
            return (out + 1 if q.shape[2] > 4 else out[:, :, :1]), state

    found = kit.try_law(*kit.select(["oracle"]), Late(WrongFromFive, WrongFromFive.Config()))
    assert found.case == Case(n=5, batch=1, heads=1)
    assert "differs by" in found.detail


class Late(Subject):
    """Asked at one length that small inputs do not resemble."""

    lengths = (16,)  # type: ignore[assignment]


@pytest.mark.parametrize("end", [lambda: os._exit(3), lambda: time.sleep(60)])
def test_what_was_found_first_survives_the_search_for_less(end: Callable[[], None]) -> None:
    class EndsWhenSmall(LooksAheadByOne):
        def attend(self, q: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
            if q.shape[2] < 8 and q.shape[0] == 1:
                end()
            return super().attend(q, *args, **kwargs)

    subject = Late(EndsWhenSmall, EndsWhenSmall.Config())
    (found,) = kit.verify(subject, kit.select(["values_causality"]), timeout=10.0)
    assert (found.verdict, found.ending) == ("failed", "")
    assert found.case is not None and (found.case.n, found.case.causal) == (16, True)
    assert "later values" in found.detail


@pytest.mark.parametrize(
    ("law", "text", "words"),
    [
        ("causality", "n=5", "causal"),
        ("causality", "n=9 mask=all", "causal"),
        ("empty_rows", "n=5", "mask"),
        ("oracle", "n=5 position=ropes", "position"),
        ("oracle", "n=5 trial=9", "trials"),
        ("oracle", "n=5 m=9", "one"),
        ("cross", "n=5", "two"),
        ("empty_inputs", "n=5", "sizes"),
        ("batch", "n=5 batch=1", "sizes"),
        ("decode", "n=0 causal", "sizes"),
        ("strides", "n=5 training", "training"),
    ],
)
def test_a_case_that_a_law_does_not_take_is_no_verdict(law: str, text: str, words: str) -> None:
    subject = Subject(Dense, Dense.Config(), only=parse(text))
    for attempt in (
        lambda: kit.try_law(*kit.select([law]), subject),
        lambda: list(kit.verify(subject, kit.select([law]))),
    ):
        with pytest.raises(UsageError, match=rf"^--case '{text}': .*\b{words}\b") as raised:
            attempt()
    _, found, example = str(raised.value).partition("; write e.g. '")
    if found:
        better = Subject(Dense, Dense.Config(), only=parse(example.partition("'")[0]))
        assert not why_unfit(kit.select([law])[0], better), "what it advises is taken"


def test_every_law_takes_its_own_cases() -> None:
    for law in LAWS:
        kind = ComesNoNearer if law.name == "convergence" else Dense
        for case in law.cases(Subject(kind, kind.Config())):
            assert law.takes(case), (law.name, case)


def test_what_is_not_a_number_agrees_with_nothing() -> None:
    class NotANumber(Dense):
        def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
            out, state = super().attend(*args, **kwargs)
            return out * math.nan, state

    found = findings(NotANumber, "output", "padding_content", "batch", "causality", "strides")
    assert {finding.verdict for finding in found.values()} == {"failed"}
    assert "NaN" in found["batch"].detail


def test_what_hangs_where_nothing_is_claimed_hides_no_failure() -> None:
    class HangsWhenCausal(Dense):
        card = card(capabilities=Capabilities(bidirectional=True, padding="content"))

        def attend(
            self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
        ) -> tuple[Tensor, Any]:
            if context.causal:
                time.sleep(60)
            return super().attend(q, k, v, context)[0] + v.mean((0, 2), keepdim=True), None

    laws = ("causality", "values_causality", "batch", "strides")
    found = findings(HangsWhenCausal, *laws, timeout=20.0)
    assert {law: (one.verdict, one.ending) for law, one in found.items()} == {
        "causality": ("not claimed", "timeout"),
        "values_causality": ("not claimed", ""),
        "batch": ("failed", ""),
        "strides": ("held", ""),
    }


class Decays(Dense):
    """Outputs fade by rates in (0, 1), which are made with the heads."""

    card = card(softmax="never")

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        heads = super().project(x, context, source, state)
        return heads._replace(extra={"rates": x.mean(-1)[:, None, :, None].sigmoid()})

    def attend(  # type: ignore[override]
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        context: Context,
        state: Any = None,
        *,
        rates: Tensor,
    ) -> tuple[Tensor, Any]:
        out, state = super().attend(q, k, v, context, state)
        return out * rates.cumprod(2), state


def test_what_goes_with_the_heads_is_no_larger_than_an_input_makes_it() -> None:
    (law,) = kit.select(["extremes"])
    assert kit.try_law(law, Subject(Decays, Decays.Config())).verdict == "held"


def test_one_bad_length_leaves_the_other_laws_to_be_tried() -> None:
    class RaisesAtSeven(Dense):
        def attend(self, q: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
            if q.shape[2] == 7:
                raise ValueError("not seven")
            return super().attend(q, *args, **kwargs)

    found = findings(RaisesAtSeven, "output", "length_limit")
    assert found["output"].verdict == "failed"
    assert found["output"].detail.startswith("ValueError: not seven (test_kit.py, line ")
    assert found["length_limit"].verdict == "held"
    assert findings(CannotBeBuilt, "output", "linearity")["linearity"].verdict == "skipped"


def test_a_limit_that_is_not_kept_comes_with_a_case_that_its_law_takes() -> None:
    class TakesAnyLength(Dense):
        card = card(capabilities=Capabilities(bidirectional=True, fixed_length=True))

        def _refuse(self, *args: Any) -> None:
            pass

    found = findings(TakesAnyLength, "length_limit")["length_limit"]
    assert found.case == Case(n=2, batch=1, heads=1)


@pytest.mark.parametrize(("full", "patience"), [(False, 3.0), (True, 30.0)])
def test_the_full_form_has_ten_times_the_patience(
    full: bool, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def answer(function: Callable[[], Finding], timeout: float) -> Finding:
        asked.append(timeout)
        return Finding(law="batch", verdict="held")

    monkeypatch.setattr(kit, "run_isolated", answer)
    list(kit.verify(Subject(Dense, Dense.Config(), full), kit.select(["batch"]), timeout=3.0))
    assert asked == [patience]


def test_what_needs_no_gradient_is_timed_all_the_same() -> None:
    class WithoutGradient(Dense):
        def attend(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
            return super().attend(*args, **kwargs)[0].detach(), None

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            out = super().forward(*args, **kwargs)
            return out._replace(y_BND=out.y_BND.detach())

    assert findings(WithoutGradient, "time_growth")["time_growth"].verdict == "reported"


def test_a_case_is_read_as_it_is_written() -> None:
    case = Case(n=5, m=9, causal=True, mask="behind", position="rope", seed=3)
    assert str(case) == "n=5 m=9 causal mask=behind position=rope seed=3"
    assert parse(str(case)) == case
    for text in ("n=5 causl", "n=-1", "causal", "n=5 mask=left"):
        with pytest.raises(UsageError, match=r"write e\.g\. 'n=5 causal'"):
            parse(text)


def test_what_holds_unclaimed_is_pointed_out() -> None:
    modest = Capabilities(bidirectional=True)

    class Modest(Dense):
        card = card(capabilities=modest)

    found = findings(Modest, "causality", "padding_count", "cross", "decode")
    assert {finding.verdict for finding in found.values()} == {"unclaimed"}


def test_what_is_neither_claimed_nor_true_is_not_claimed() -> None:
    class Modest(LooksAheadByOne):
        card = card(capabilities=Capabilities(bidirectional=True))

    found = findings(Modest, "causality")["causality"]
    assert found.verdict == "not claimed" and found.cases
    assert found.detail.endswith("in float64") and found.case is None


def test_every_law_is_a_file_of_its_name_and_says_what_holds() -> None:
    for law in LAWS:
        assert law.cases.__module__ == f"lra.verify.laws.{law.name}"
        assert law.says and len(law.says) < 72
    assert len({law.name for law in LAWS}) == len(LAWS)


class Named(Dense):
    """Has a setting of which nobody can make up another value."""

    card = card(softmax="never")

    class Config(MechanismConfig, frozen=True):
        kernel: str = "plain"
        gain: float = 2.0

    config: Config

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) * self.config.gain


def test_a_setting_without_another_value_to_try_is_named() -> None:
    found = findings(Named, "setting_felt")["setting_felt"]
    assert found.verdict == "held" and "kernel" in found.detail and "gain" not in found.detail


@pytest.mark.parametrize("law", ["degenerate", "large_integers", "dropout_gradient"])
def test_the_float32_that_a_law_goes_through_is_in_its_extent(law: str) -> None:
    tried = findings(Dense, law)[law].tried
    assert tried is not None and tried.dtypes == ("float32", "float64")


def test_a_class_without_a_name_is_not_tried_in_another_process() -> None:
    nameless = type("Nameless", (Dense,), {})
    found = findings(nameless, "another_process")["another_process"]
    assert (found.verdict, found.cases) == ("skipped", 0) and found.detail


def test_a_class_that_another_process_cannot_import_is_not_tried_there() -> None:
    subject = Subject(Dense, Dense.Config(), reference="nowhere.at.all:Dense")
    (found,) = kit.verify(subject, kit.select(["another_process"]))
    assert found.verdict == "skipped" and "nowhere" in found.detail


class NamedByAHash(Dense):
    """A buffer's name follows from a hash."""

    def prepare(self) -> None:
        self.register_buffer(f"table_{hash('table') % 2**20}", Tensor([1.0]))


def test_what_fails_in_another_process_alone_is_a_failure() -> None:
    found = findings(NamedByAHash, "another_process")["another_process"]
    assert found.verdict == "failed" and "table_" in found.detail
