"""The numbers of `paper` and `compact` are those of the protocols that they are named after."""

from __future__ import annotations

import pytest

from lra.core.scales import load_scale

PAPER, COMPACT = load_scale("paper"), load_scale("compact")

RELEASED = (
    "listops", "text", "retrieval", "image", "pathfinder", "pathfinder64", "path_x", "pathfinder256"
)  # fmt: skip
PUBLISHED = RELEASED[:5]


# google-research/long-range-arena at cd31e5c: the configuration files, one column a task.
@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("steps", (5000, 20000, 5000, 35000, 62400, 125000, 500000, 500000)),
        ("batch", (32, 32, 32, 256, 512, 256, 64, 32)),
        ("learning_rate", (0.05, 0.05, 0.05, 5e-4, 1e-3, 1e-3, 1e-3, 1e-3)),
        ("schedule", ("rsqrt", "rsqrt", "rsqrt", "cosine", "cosine", "cosine", "cosine", "cosine")),
        ("warmup", (1000, 8000, 8000, 175, 312, 625, 2500, 5000)),
        ("flat", (0,) * 8),
        ("weight_decay", (0.1, 0.1, 0.1, 0, 0, 0, 0, 0)),
        ("clip", (None, None, None, None, None, None, 1.0, None)),
        ("betas", ((0.9, 0.98),) * 8),
        ("epsilon", (1e-9,) * 8),
        ("evaluate_every", (50, 100, 100, 175, 312, 625, 2500, 5000)),
    ],
)
def test_the_released_trainings(field: str, values: tuple) -> None:
    assert tuple(getattr(PAPER.train_spec(task), field) for task in RELEASED) == values


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("layers", (4, 4, 4, 1, 4, 2, 1, 2)),
        ("heads", (8, 4, 4, 8, 4, 4, 2, 4)),
        ("width", (512, 256, 128, 128, 32, 32, 32, 32)),
        ("qkv_width", (512, 256, 128, 64, 16, 32, 16, 32)),
        ("mlp_width", (1024, 1024, 512, 128, 32, 32, 32, 32)),
        ("dropout", (0.1, 0.1, 0.1, 0.3, 0.2, 0.1, 0.1, 0.1)),
        ("attention_dropout", (0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1)),
        (
            "position",
            (
                "sinusoidal", "sinusoidal", "sinusoidal", "learned", "sinusoidal", "learned",
                "learned", "learned",
            ),
        ),
        ("pooling", ("cls", "cls", "first", "cls", "mean", "cls", "mean", "cls")),
        ("pair_features", ("four", "four", "two", "four", "four", "four", "four", "four")),
        ("projection_biases", (False,) * 8),
    ],
)  # fmt: skip
def test_the_released_models(field: str, values: tuple) -> None:
    assert tuple(getattr(PAPER.model_spec(task), field) for task in RELEASED) == values


@pytest.mark.parametrize(
    ("task", "length", "rows"),
    [
        ("listops", 2000, (96000, 2000, 2000)),
        ("text", 1000, (25000, 25000, 25000)),
        ("retrieval", 4000, (147086, 18090, 17437)),
        ("image", 1024, (45000, 5000, 10000)),
        ("pathfinder", 1024, (160000, 20000, 20000)),
        ("pathfinder64", 4096, (160000, 20000, 20000)),
        ("path_x", 16384, (160000, 20000, 20000)),
        ("pathfinder256", 65536, (160000, 20000, 20000)),
    ],
)
def test_the_released_data(task: str, length: int, rows: tuple[int, int, int]) -> None:
    found = PAPER.task(task)
    assert found.length == length
    assert (found.rows.train, found.rows.validation, found.rows.test) == rows


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("block_local", {"block": 50}),
        ("sparse_fixed", {"stride": 50, "summary": 10}),
        ("linformer", {"rank": 16, "sharing": "key-value"}),
        ("reformer", {"rounds": 1}),
        ("sinkhorn", {"block": 50}),
        ("synthesizer", {"logits": "random", "dot_product": True}),
    ],
)
@pytest.mark.parametrize("task", RELEASED)
def test_the_released_mechanisms(mechanism: str, settings: dict, task: str) -> None:
    # Blocks tile the square images.
    block = {"block": 64} if "block" in settings and task in RELEASED[3:] else {}
    found = PAPER.settings(mechanism, "lra2021", task)
    assert found.items() >= (settings | block).items()


# Xiong et al., "Nystromformer", AAAI 2021 (arXiv 2102.03902): mlpen/Nystromformer, LRA/.
@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("steps", (5000, 20000, 30000, 35000, 62400)),
        ("batch", (32, 32, 32, 256, 256)),
        ("learning_rate", (1e-4,) * 5),
        ("schedule", ("linear",) * 5),
        ("warmup", (1000, 8000, 800, 175, 312)),
        ("flat", (0,) * 5),
        ("weight_decay", (0,) * 5),
        ("clip", (None,) * 5),
        ("betas", ((0.9, 0.999),) * 5),
        ("epsilon", (1e-6,) * 5),
    ],
)
def test_the_compact_trainings(field: str, values: tuple) -> None:
    assert tuple(getattr(COMPACT.train_spec(task), field) for task in PUBLISHED) == values


@pytest.mark.parametrize("task", RELEASED)
def test_the_compact_model_is_the_same_for_every_task(task: str) -> None:
    spec = COMPACT.model_spec(task)
    assert (spec.layers, spec.width, spec.qkv_width, spec.heads) == (2, 64, 64, 2)
    assert (spec.mlp_width, spec.classifier_widths, spec.pooling) == (128, (128,), "mean")
    assert (spec.dropout, spec.attention_dropout) == (0.1, 0.1)


@pytest.mark.parametrize(
    ("task", "length"),
    [("listops", 2000), ("text", 4000), ("retrieval", 4000), ("image", 1024), ("pathfinder", 1024)],
)
def test_the_compact_lengths_are_the_tasks_own(task: str, length: int) -> None:
    assert COMPACT.task(task).length == length


@pytest.mark.parametrize("task", RELEASED[5:])
def test_larger_images_take_the_compact_steps_of_pathfinder(task: str) -> None:
    spec = COMPACT.train_spec(task)
    assert (spec.steps, spec.learning_rate, spec.warmup) == (62400, 1e-4, 312)
