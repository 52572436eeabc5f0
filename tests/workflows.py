"""Faults of a GitHub workflow: schema, permissions, pins, scripts and our own commands.

GitHub itself reports most of them not at all, or only when the workflow runs.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from lra.cli import main
from lra.core.errors import LraError

MAY_WRITE = {("comment", "pull-requests"), ("nightly", "contents")}
"""Workflows by name, and what one of their jobs may write."""
LONGEST = 360
"""Minutes that a hosted runner gives a job."""
_PINNED = re.compile(r"uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
_COMMAND = re.compile(r"python -m lra(?: (.*))?")


def load(file: Path) -> dict[str, Any]:
    """Read a workflow; in YAML 1.2 `on` is a name and no truth."""
    return dict(YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8")))


def steps(workflow: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of all jobs."""
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


def script(workflow: Mapping[str, Any], name: str) -> str:
    """Return the script of the first step of this name."""
    return next(str(step["run"]) for step in steps(workflow) if step.get("name") == name)


def wrong(file: Path) -> list[str]:
    """Return what is wrong with a workflow, nothing where all is well."""
    try:
        workflow = load(file)
    except YAMLError as error:
        return [f"no YAML: {error}"]
    if schema := _against_schema(file):
        return [schema]
    found = [*_permissions(workflow), *_jobs(workflow)]
    for step in steps(workflow):
        found += _step(step)
    uses = [
        line.strip() for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line
    ]
    found += [f"not pinned: {line}" for line in uses if not _PINNED.search(line)]
    untrusted = {"pull_request", "workflow_run"} & set(workflow["on"])
    for step in steps(workflow):
        if "actions/checkout@" not in str(step.get("uses")):
            continue
        if "workflow_run" in untrusted:
            found.append("checks out code in a run that may write")
        elif untrusted and step.get("with", {}).get("persist-credentials") is not False:
            found.append("leaves credentials to the code of a pull request")
    return found


def _against_schema(file: Path) -> str:
    from check_jsonschema import main as check

    asked = ["--builtin-schema", "vendor.github-workflows", str(file)]
    told = CliRunner().invoke(check, asked)
    return f"schema: {told.output}" if told.exit_code else ""


def _permissions(workflow: Mapping[str, Any]) -> Iterator[str]:
    if "permissions" not in workflow:
        yield "no permissions: the repository's default holds"
    for place in (workflow, *workflow["jobs"].values()):
        asked = place.get("permissions", {})
        if isinstance(asked, str):
            yield f"permissions: {asked}"
            continue
        for scope, access in asked.items():
            allowed = place is not workflow and (workflow.get("name"), scope) in MAY_WRITE
            if access == "write" and not allowed:
                yield f"may write {scope}"


def _jobs(workflow: Mapping[str, Any]) -> Iterator[str]:
    for name, job in workflow["jobs"].items():
        if not 0 < job.get("timeout-minutes", 0) <= LONGEST:
            yield f"job {name} has no timeout-minutes of at most {LONGEST}"
        if any(map(_times_revisions, job.get("steps", ()))):
            yield from _against_a_revision(name, job)


def _times_revisions(step: Mapping[str, Any]) -> bool:
    asked = commands(str(step.get("run", "")))
    return any(c.startswith("check") and "--history" not in c for c in asked)


def _against_a_revision(name: str, job: Mapping[str, Any]) -> Iterator[str]:
    """Faults of a job that times the head against another revision."""
    depths = [
        step.get("with", {}).get("fetch-depth", 1)
        for step in job["steps"]
        if "actions/checkout@" in str(step.get("uses"))
    ]
    if 1 in depths:
        yield f"job {name} checks out no revision to time against"
    if not job.get("env", {}).get("PIP_EXTRA_INDEX_URL", "").endswith("/whl/cpu"):
        yield f"job {name} may give the other revision another build of PyTorch"


def _step(step: Mapping[str, Any]) -> Iterator[str]:
    name = step.get("name") or step.get("uses")
    if ("uses" in step) == ("run" in step):
        yield f"step {name} has not one of uses and run"
    text = str(step.get("run", ""))
    # Whatever an event holds, such as the name of a branch, would be part of the script.
    for expression in re.findall(r"\${{.*?}}", text + str(step.get("with", {}).get("script", ""))):
        yield f"step {name} has {expression} in its script: give it by env"
    report = "GITHUB_STEP_SUMMARY" in text or "upload-artifact@" in str(step.get("uses"))
    if report and step.get("if") != "always()":
        yield f"step {name} is not always() done"
    if bash := shutil.which("bash"):
        told = subprocess.run([bash, "-n"], input=text, capture_output=True, text=True, check=False)
        if told.returncode:
            yield f"step {name}: {told.stderr.strip()}"
    for command in commands(text):
        if problem := _refused(command):
            yield f"{command}: {problem}"


def commands(text: str) -> list[str]:
    """Return what follows each `python -m lra` of a script, up to where the shell goes on."""
    whole = text.replace("\\\n", " ")
    found = (_COMMAND.search(line) for line in whole.splitlines())
    return [re.split(r"\|\|?|&&|[;>#)]", match[1] or "")[0].strip() for match in found if match]


def _refused(command: str) -> str:
    """Why our command line would not take a command; empty where it would."""
    verb, *arguments = shlex.split(command) or [""]
    try:
        found = main.lra_command.get_command(click.Context(main.lra_command), verb)
        assert found is not None
        found.make_context(verb, arguments)
    except (LraError, click.ClickException) as error:
        return str(error)
    return ""
