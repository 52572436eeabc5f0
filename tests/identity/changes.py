"""Edits of our code, each with what a check has to say of it."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """One edit, the cases that are run on it, and the features that want a bump for it."""

    name: str
    file: str
    before: str
    after: str
    cases: tuple[str, ...]
    bumps: tuple[str, ...]
    """() where the edit changes nothing."""


STEP, LOOP = "lra/training/step.py", "lra/training/loop.py"
BATCHES = "lra/training/batches.py"
PARTS = "attention_impls/pattern/_parts.py"

CHANGES = (
    Change(
        "clip norm", STEP, "self.parameters, self.spec.clip)", "self.parameters, 0.5)",
        ("train", "train, no clipping"), ("train",),
    ),
    Change(
        "random blocks", "attention_impls/pattern/bigbird.py",
        "generator=seeded(seed, layer_index)", "generator=seeded(seed + 1, layer_index)",
        ("mechanism/bigbird", "mechanism/sdpa"), ("mechanism/bigbird",),
    ),
    Change(
        "linear schedule", "lra/training/schedule.py",
        "/ (spec.steps - start))", "/ (spec.steps - flat))",
        ("train", "train/linear", "train/rsqrt"), ("train/linear",),
    ),
    Change(
        "dropout's scale", "lra/models/dropout.py",
        ".mul_(_LEVELS / (_LEVELS - dropped))", "",
        ("train", "train/dropout"), ("train/dropout",),
    ),
    Change(
        "padding in the mean", "lra/models/pooling.py",
        'None if rules == "lra2021" else mask_BN', "None",
        ("train", "train/cls", "train/first"), ("train",),
    ),
    Change(
        "padding's token", BATCHES, "tokens_SN[~mask_SN] = PAD", "tokens_SN[~mask_SN] = 1",
        ("train", "train/lra2021"), ("train/lra2021",),
    ),
    Change(
        "features of pairs", "lra/models/head.py", "x1_ED - x2_ED]", "x2_ED - x1_ED]",
        ("train", "train/pairs", "train/pairs, two features"), ("train/pairs",),
    ),
    Change(
        "causal mask", "attention_impls/contract/tensors.py", ".tril(m - n)", ".tril(m - n + 1)",
        ("mechanism/full", "mechanism/lstm"), ("mechanism/full",),
    ),
    Change(
        "order of an epoch", BATCHES, "[self.seed, epoch]", "[self.seed, 0]",
        ("train", "train/tokens"), ("train",),
    ),
    Change(
        "tiles of long inputs", "attention_impls/kernel/_bidirectional.py",
        "scale_G1 = grown_G1", "scale_G1 = 2.0 * grown_G1",
        ("mechanism/linear", "mechanism/performer"), ("mechanism/performer",),
    ),
    Change(
        "tied start", "lra/models/build.py", "query.weight.mul_(2.0)", "query.weight.mul_(1.5)",
        ("train", "train/tied"), ("train/tied",),
    ),
    Change(
        "choice of the best", LOOP,
        "(score.accuracy, -score.loss)", "(-score.accuracy, score.loss)",
        ("train", "train/last"), ("train",),
    ),
    Change(
        "bfloat16 off", "lra/training/forward.py",
        "return torch.bfloat16", "return None",
        ("train", "train/bfloat16"), ("train/bfloat16",),
    ),
    Change(
        "dense from another length on", PARTS, "DENSE_ADVANTAGE = 2", "DENSE_ADVANTAGE = 1",
        ("mechanism/sliding_window/cost", "mechanism/sdpa/cost"),
        ("mechanism/sliding_window/cost",),
    ),
    Change(
        "nothing recomputed", "lra/models/stack.py",
        "if self.recompute and torch.is_grad_enabled()", "if False",
        ("train", "train/recompute", "train/recompute, traced"), ("train/recompute",),
    ),
    Change(
        "decoding from a third on", "lra/training/decoding.py",
        "tokens_SN.shape[1] // 2", "tokens_SN.shape[1] // 3",
        ("train", "train/tokens", "train/tokens, decoded"), ("train/tokens",),
    ),
    Change(
        "a local renamed", STEP, "pieces, answers = self.rows(done)\n        for index, rows in "
        "enumerate(pieces)", "parts, answers = self.rows(done)\n        pieces = parts\n"
        "        for index, rows in enumerate(pieces)", ("train", "train/micro_batches"), (),
    ),
    Change(
        "a floor of no effect", "lra/training/schedule.py",
        "max(step, spec.warmup, 1)", "max(step, spec.warmup, 2)", ("train", "train/rsqrt"), (),
    ),
    # More: mechanisms, tasks and what times them.
    Change(
        "halved weights of the oracle", "attention_impls/_oracle.py",
        "weights_BHNM = exponentials /", "weights_BHNM = 0.5 * exponentials /",
        ("mechanism/sdpa", "mechanism/sdpa/oracle", "look"), ("mechanism/sdpa/oracle",),
    ),
    Change(
        "no redraw", "attention_impls/kernel/performer.py",
        "step % period == 0", "step % period == 1",
        ("mechanism/performer", "mechanism/linear"), ("mechanism/performer",),
    ),
    Change(
        "gradient of a recurrence", "attention_impls/recurrent/s4d.py",
        "u_BDN, self.skip_D.to", "u_BDN, self.skip_D.detach().to",
        ("mechanism/s4d", "mechanism/lstm"), ("mechanism/s4d",),
    ),
    Change(
        "a decode state that forgets", "attention_impls/dense/_cache.py",
        "start:end] = v_BHMV", "start:end] = v_BHMV * (start < 60)",
        ("mechanism/full", "mechanism/full/decode"), ("mechanism/full/decode",),
    ),
    Change(
        "another draw of a task", "tasks/generators/listops.py",
        "counts), index)", "counts), index + 1)",
        ("data/listops", "data/text"), ("data/listops",),
    ),
    Change(
        "a label of a task", "tasks/recall.py",
        "= values_RP[row_R1, order_RP]", "= values_RP[row_R1, order_RP[:, ::-1]]",
        ("data/recall", "data/listops"), ("data/recall",),
    ),
    Change(
        "fewer samples of a time", "lra/measure/latency.py", "FLOOR = 10", "FLOOR = 9",
        ("time", "train"), ("time",),
    ),
    Change(
        "gradients that add up", "lra/measure/calls.py", "leaf.grad = None", "pass",
        ("time", "time/train"), ("time/train",),
    ),
    Change(
        "products counted once", "lra/measure/operations.py",
        "return 2 * math.prod(a) * b[-1]", "return math.prod(a) * b[-1]",
        ("time", "time/train", "profile"), ("profile", "time"),
    ),
    Change(
        "one operator more", "attention_impls/kernel/linear.py",
        "return kernel_attention(q_BHNK,", "return kernel_attention(q_BHNK.clone(),",
        ("mechanism/linear", "mechanism/linear/cost"), ("mechanism/linear/cost",),
    ),
    Change(
        "a band of a GPU's", "attention_impls/pattern/_fused.py",
        "return out_BHUSV.flatten(2, 3)", "return 2 * out_BHUSV.flatten(2, 3)",
        ("mechanism/sliding_window", "mechanism/sliding_window/portable"),
        ("mechanism/sliding_window/portable",),
    ),
    Change(
        "padding of a decoded piece", "attention_impls/recurrent/lstm.py",
        "torch.where(any_B1, h_new, h_BW), ", "h_new + 1, ",
        ("mechanism/lstm/decode", "mechanism/lstm/decode, padded"), ("mechanism/lstm/decode",),
    ),
)  # fmt: skip
