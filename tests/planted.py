"""Faults planted in a mechanism, each of which the gate must catch: figures of docs/gate.md.

`PYTHONPATH=. python -m tests.planted slow` clones the committed project, plants one fault in it and
runs `lra check` there. The check's output is printed; the exit code is 0 if it failed and named the
right figure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).resolve().parents[1]
_LINEAR = "attention_impls/kernel/linear.py"
_SDPA = "attention_impls/dense/sdpa.py"


class Fault(NamedTuple):
    """A method that is put into a class, and what the check should name."""

    file: str
    method: str
    mechanism: str
    figures: tuple[str, ...]


FAULTS = {
    "slow": Fault(
        _LINEAR,
        """
    def forward(self, *arguments, **named):
        import time

        began = time.perf_counter()
        out = super().forward(*arguments, **named)
        end = time.perf_counter() + 0.2 * (time.perf_counter() - began)
        while time.perf_counter() < end:
            pass
        return out
""",
        "linear",
        ("time",),
    ),
    "memory": Fault(
        _LINEAR,
        """
    def forward(self, x_BND, *arguments, **named):
        ballast = x_BND.new_empty(27 * x_BND.numel() // 100)
        out = super().forward(x_BND, *arguments, **named)
        del ballast
        return out
""",
        "linear",
        ("peak_tensor_bytes",),
    ),
    "leak": Fault(
        _LINEAR,
        """
    def _leaking(self, v_BHMV, context):
        return v_BHMV + 0.01 * v_BHMV.roll(-1, 2) if context.causal else v_BHMV
""",
        "linear",
        ("causality", "values_causality"),
    ),
    "quality": Fault(
        _SDPA,
        """
    def attend(self, q, k, v, context, state=None):
        return super().attend(q.detach(), k.detach(), v, context, state)
""",
        "sdpa",
        ("accuracy",),
    ),
}


def plant(fault: Fault, clone: Path) -> None:
    """Put a fault into a clone's sources."""
    file = clone / fault.file
    source = file.read_text() + fault.method
    if "_leaking" in fault.method:
        honest = "k_BHMK, v_BHMV, context, state, EluFeatures()"
        assert source.count(honest) == 1
        source = source.replace(
            honest, "k_BHMK, self._leaking(v_BHMV, context), context, state, EluFeatures()"
        )
    file.write_text(source)


def main(name: str, *flags: str) -> int:
    """Plant a fault, run the check, and return 0 if it was caught for what it is."""
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "planted"
        subprocess.run(["git", "clone", "-q", str(HOME), str(clone)], check=True)
        plant(fault, clone)
        command = [
            sys.executable,
            "-m",
            "lra",
            "check",
            "--impl",
            fault.mechanism,
            *flags,
            "--json",
        ]
        done = subprocess.run(
            command,
            cwd=clone,
            env={**os.environ, "PYTHONPATH": str(clone)},
            stdout=subprocess.PIPE,
            text=True,
        )
    told = json.loads(done.stdout)
    print("\n".join(told["sentences"]))
    regressions = [one for one in told["figures"] if one["outcome"] == "regression"]
    for one in regressions:
        print(f"  {one['mechanism']}, {one['cell']}: {one['figure']}: {one['why']}")
    caught = done.returncode == 1 and any(r["figure"] in fault.figures for r in regressions)
    print(f"{name}: {'caught' if caught else 'MISSED'} (exit code {done.returncode})")
    return 0 if caught else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
