"""The README and the protocol: commands are those that CI runs, figures those of the reference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lra.core.cells import BaselineCell, QualityCell
from lra.core.records import Record
from lra.report.words import percent
from lra.store import Store

ROOT = Path(__file__).resolve().parents[1]


def readme_command(name: str) -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- command: {name} -->\n```bash\n(.+)\n```", text)
    assert found, f"the README has no command '{name}'"
    return found.group(1)


@pytest.mark.parametrize("name", ["run", "test"])
def test_ci_runs_the_readme_command(name: str) -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert readme_command(name) in script


def test_the_run_command_is_the_main_job() -> None:
    assert readme_command("run").endswith("python -m lra run --impl performer")


def test_both_commands_install_the_tested_set() -> None:
    for name in ("run", "test"):
        assert "pip install -c constraints.txt" in readme_command(name)


def test_the_command_for_a_cpu_is_the_same_with_torch_installed_before() -> None:
    venv, *middle, install, run = readme_command("cpu").split(" && ")
    assert " && ".join((venv, install, run)) == readme_command("run")
    assert len(middle) == 1 and "pip install -c constraints.txt" in middle[0]


def records_of(folder: str) -> list[Record]:
    return list(Store(ROOT / "results/reference" / folder).records())


def test_the_readme_counts_the_mechanisms_of_the_reference() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"is the report of (\d+) mechanisms", readme)
    assert stated
    cells = [record.cell for record in records_of("amd-epyc-2c")]
    trained = {
        cell.mechanism.name
        for cell in cells
        if isinstance(cell, QualityCell) and cell.scale == "mini"
    }
    assert int(stated.group(1)) == len(trained)


def compact_table() -> dict[tuple[str, str], str]:
    """Accuracies in `docs/protocol.md`, by mechanism and task, at `compact_short`."""
    text = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    block = re.search(r"```text\n(mechanism +ListOps .+?)```", text, re.DOTALL)
    assert block
    head, *lines = block.group(1).splitlines()
    found = {}
    for task in ("ListOps", "Text"):
        start = head.index(task)
        for line in lines:
            name = line[: head.index("ListOps")].strip()
            name = "identity" if "(identity)" in name else name.partition(" (")[0]
            found[name, task.lower()] = line[start:].split("  ")[0].strip()
    return found


def test_the_protocol_has_the_accuracies_of_the_reference() -> None:
    reached = {}
    for record in records_of("amd-epyc-2c"):
        cell = record.cell
        if not isinstance(cell, QualityCell | BaselineCell) or cell.scale != "compact_short":
            continue
        name = cell.mechanism.name if isinstance(cell, QualityCell) else ""
        called = {
            "test_accuracy": name,
            "majority": "majority",
            "bag_of_tokens": "bag of tokens",
            "first_operator": "first operator",
        }
        for metric in called.keys() & record.metrics.keys():
            share = percent(record.metrics[metric].value)
            reached[called[metric], cell.data.task] = share
    stated = {key: text for key, text in compact_table().items() if text not in ("not run", "")}
    assert stated == reached
