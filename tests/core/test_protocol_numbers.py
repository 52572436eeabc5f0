"""The numbers of `paper` and `compact` are those of the protocols that they are named after, and
those of `small` what is said of it."""

import msgspec
import pytest

from lra.core.catalogue import find
from lra.core.loading import load
from lra.core.scales import load_scale, load_suite

PAPER, COMPACT, SMALL = load_scale("paper"), load_scale("compact"), load_scale("small")

RELEASED = (
    "listops", "text", "retrieval", "image", "pathfinder", "pathfinder64", "path_x", "pathfinder256"
)  # fmt: skip
PUBLISHED, LARGER = RELEASED[:5], RELEASED[5:]


# google-research/long-range-arena at cd31e5c: the configuration files, one column a task.
RELEASED_TRAINING = {
    "steps": (5000, 20000, 5000, 35000, 62400, 125000, 500000, 500000),
    "batch": (32, 32, 32, 256, 512, 256, 64, 32),
    "learning_rate": (0.05, 0.05, 0.05, 5e-4, 1e-3, 1e-3, 1e-3, 1e-3),
    "schedule": ("rsqrt", "rsqrt", "rsqrt", "cosine", "cosine", "cosine", "cosine", "cosine"),
    "warmup": (1000, 8000, 8000, 175, 312, 625, 2500, 5000),
    "flat": (0,) * 8,
    "weight_decay": (0.1, 0.1, 0.1, 0, 0, 0, 0, 0),
    "clip": (None, None, None, None, None, None, 1.0, None),
    "betas": ((0.9, 0.98),) * 8,
    "epsilon": (1e-9,) * 8,
    "evaluate_every": (50, 100, 100, 175, 312, 625, 2500, 5000),
    "precision": ("float32",) * 8,
    "bucketed": (False,) * 8,
    "micro_batches": (1,) * 8,
}
RELEASED_MODEL = {
    "layers": (4, 4, 4, 1, 4, 2, 1, 2),
    "heads": (8, 4, 4, 8, 4, 4, 2, 4),
    "width": (512, 256, 128, 128, 32, 32, 32, 32),
    "qkv_width": (512, 256, 128, 64, 16, 32, 16, 32),
    "mlp_width": (1024, 1024, 512, 128, 32, 32, 32, 32),
    "dropout": (0.1, 0.1, 0.1, 0.3, 0.2, 0.1, 0.1, 0.1),
    "attention_dropout": (0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1),
    "position": (*("sinusoidal",) * 3, "learned", "sinusoidal", *("learned",) * 3),
    "pooling": ("cls", "cls", "first", "cls", "mean", "cls", "mean", "cls"),
    "pair_features": ("four", "four", "two", "four", "four", "four", "four", "four"),
    "projection_biases": (False,) * 8,
    "query_key_start": ("independent",) * 8,
    "causal": (False,) * 8,
}
# Xiong et al., "Nystromformer", AAAI 2021 (arXiv 2102.03902): mlpen/Nystromformer, LRA/.
COMPACT_TRAINING = {
    "steps": (5000, 20000, 30000, 35000, 62400),
    "batch": (32, 32, 32, 256, 256),
    "learning_rate": (1e-4,) * 5,
    "schedule": ("linear",) * 5,
    "warmup": (1000, 8000, 800, 175, 312),
    "flat": (0,) * 5,
    "weight_decay": (0,) * 5,
    "clip": (None,) * 5,
    "betas": ((0.9, 0.999),) * 5,
    "epsilon": (1e-6,) * 5,
    # Theirs is mixed.
    "precision": ("float32",) * 5,
    "recompute": (False,) * 5,
    "micro_batches": (1,) * 5,
}
# Larger images take the compact steps of Pathfinder and fit one GPU.
LARGER_TRAINING = {
    "steps": (62400,) * 3,
    "learning_rate": (1e-4,) * 3,
    "warmup": (312,) * 3,
    "batch": (128, 32, 16),
    "micro_batches": (1, 1, 2),
    "precision": ("float32", "bfloat16", "bfloat16"),
    "recompute": (False, True, True),
}


@pytest.mark.parametrize(
    ("spec", "tasks", "numbers"),
    [
        (PAPER.train_spec, RELEASED, RELEASED_TRAINING),
        (PAPER.model_spec, RELEASED, RELEASED_MODEL),
        (COMPACT.train_spec, PUBLISHED, COMPACT_TRAINING),
        (COMPACT.train_spec, LARGER, LARGER_TRAINING),
    ],
    ids=["released training", "released model", "compact training", "larger images"],
)
def test_the_numbers_of_trainings_and_models(spec, tasks, numbers):
    for field, values in numbers.items():
        assert tuple(getattr(spec(task), field) for task in tasks) == values, field


PAPER_DATA = {
    "listops": (2000, (96000, 2000, 2000)),
    "text": (1000, (25000, 25000, 25000)),
    "retrieval": (4000, (147086, 18090, 17437)),
    "image": (1024, (45000, 5000, 10000)),
    "pathfinder": (1024, (160000, 20000, 20000)),
    "pathfinder64": (4096, (160000, 20000, 20000)),
    "path_x": (16384, (160000, 20000, 20000)),
    "pathfinder256": (65536, (160000, 20000, 20000)),
}
# Training and test rows are the tasks' own; of validation rows those of Pathfinder and Retrieval
# are cut, and Text, which has none of its own, holds a tenth of its training rows out.
COMPACT_DATA = PAPER_DATA | {
    "text": (4000, (25000, 2500, 25000)),
    "retrieval": (4000, (147086, 2000, 17437)),
    "pathfinder": (1024, (160000, 2000, 20000)),
    "pathfinder64": (4096, (160000, 2000, 20000)),
    "path_x": (16384, (160000, 2000, 20000)),
    "pathfinder256": (65536, (160000, 2000, 20000)),
}


@pytest.mark.parametrize(("scale", "data"), [(PAPER, PAPER_DATA), (COMPACT, COMPACT_DATA)])
def test_the_data(scale, data):
    found = {task: scale.task(task) for task in data}
    assert data == {
        task: (one.length, (one.rows.train, one.rows.validation, one.rows.test))
        for task, one in found.items()
    }


# Settings that reached each model there, defaults of its code included. `parity` is where that code
# is not what the paper of the mechanism says; of Linformer and Synthesizer their fields say all,
# and the linear transformer has none.
@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("block_local", {"block": 50, "parity": "lra2021"}),
        ("sparse_fixed", {"stride": 50, "summary": 10, "parity": "lra2021"}),
        ("longformer", {"window": 512, "parity": "lra2021"}),
        ("linformer", {"rank": 16, "sharing": "key-value"}),
        ("reformer", {"rounds": 1, "parity": "lra2021"}),
        ("sinkhorn", {"block": 50, "parity": "lra2021"}),
        ("synthesizer", {"logits": "random", "dot_product": True}),
        ("bigbird", {"block": 64, "random": 3, "parity": "lra2021"}),
        ("performer", {"parity": "lra2021"}),
        ("linear", {}),
        ("full", {}),
    ],
)
def test_the_released_mechanisms(mechanism, settings):
    kind = load(find("mechanism", mechanism))
    for task in RELEASED:
        # Blocks tile the square images.
        block = {"block": 64} if settings.get("block") == 50 and task in RELEASED[3:] else {}
        config = kind.Config(**PAPER.settings(mechanism, "lra2021", task))
        assert msgspec.to_builtins(config).items() >= (settings | block).items(), task


@pytest.mark.parametrize("task", RELEASED)
def test_the_compact_model_is_the_same_for_every_task(task):
    spec = COMPACT.model_spec(task)
    assert (spec.layers, spec.width, spec.qkv_width, spec.heads) == (2, 64, 64, 2)
    assert (spec.mlp_width, spec.classifier_widths, spec.pooling) == (128, (128,), "mean")
    assert (spec.dropout, spec.attention_dropout) == (0.1, 0.1)
    assert (spec.position, spec.query_key_start) == ("learned_from_sinusoid", "independent")


@pytest.mark.parametrize("task", COMPACT.tasks)
def test_the_best_of_ten_to_twenty_compact_validations_is_tested(task):
    spec = COMPACT.train_spec(task)
    assert spec.tested == "best"
    assert 10 <= spec.steps / spec.evaluate_every <= 20


def test_compact_mechanisms_are_those_of_their_papers():
    assert COMPACT.rules == "fixed" and not COMPACT.mechanisms


@pytest.mark.parametrize(
    ("scale", "rates"),
    [
        ("mini", (0.3, 1.0, 3.0)),
        ("small", (0.3, 1.0, 3.0)),
        ("compact", (0.3, 1.0, 3.0, 10.0)),
        ("compact_short", (0.3, 1.0, 3.0)),
        # Its text validates on its test rows, so that nothing is searched.
        ("paper", ()),
    ],
)
def test_the_rates_that_are_searched(scale, rates):
    assert load_scale(scale).rates == rates


@pytest.mark.parametrize("task", [*SMALL.tasks, "of somebody's own"])
def test_small_has_small_models_and_real_distances(task):
    spec = SMALL.model_spec(task)
    assert (spec.layers, spec.width) == (2, 64)
    assert 512 <= SMALL.task(task).length <= 1024


@pytest.mark.parametrize("suite", ["small", "compact", "paper"])
def test_quoted_figures_are_means_over_three_seeds(suite):
    (block,) = load_suite(suite).quality
    assert (block.scale, block.seeds) == (suite, 3)
