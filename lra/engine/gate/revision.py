"""Another revision of the project: its sources in a work tree, its packages in an environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from lra.core.errors import UsageError
from lra.core.hashing import value_hash
from lra.core.protocol import Frozen
from lra.engine.machine.host import cache_folder
from lra.engine.machine.provenance import checkout, command_output, last_line, without_git_variables
from lra.engine.process.temporary import sweep, temporary_folder

HOME = Path(__file__).resolve().parents[3]
"""The folder of the running code."""


class Build(Frozen, frozen=True):
    """Sources, and the interpreter with the packages that they ask for."""

    name: str
    """Its name for a person."""
    root: Path
    """The folder that holds the package `lra`."""
    python: Path
    commit: str = ""
    """Hash of the commit; empty for sources as they lie there, committed or not."""


HERE = Build("the working tree", HOME, Path(sys.executable))
"""The running code in the running environment."""


def last_commit() -> str | None:
    """Return the revision that the working tree is compared with by default: the last commit, or
    the one before where no code is changed; None where there is none, as outside a clone."""
    _, dirty = checkout(HOME)
    if dirty is None:
        return None
    name = "HEAD" if dirty else "HEAD^"
    return name if command_output("git", "-C", str(HOME), "rev-parse", "--verify", name) else None


def commit_of(revision: str) -> str:
    """Return the hash of the commit that a branch, tag or hash names.

    Raises `UsageError` where there is none, or no clone to look in.
    """
    if not _is_clone():
        raise UsageError(
            f"revision '{revision}': the project is installed here, not cloned; run this in a clone"
        )
    # A name that begins with a dash would be a flag of git's.
    name = f"{revision}^{{commit}}"
    found = command_output(
        "git", "-C", str(HOME), "rev-parse", "--verify", "--end-of-options", name
    )
    if found is None:
        raise UsageError(
            f"no revision '{revision}' in this clone; name a commit, branch or tag, or git fetch it"
        )
    return found


def merge_base(revision: str) -> str:
    """Return the last commit that a revision and the working tree have in common: later commits of
    the revision are no changes of the working tree."""
    commit = commit_of(revision)
    return command_output("git", "-C", str(HOME), "merge-base", "HEAD", commit) or commit


@contextmanager
def work_tree(revision: str) -> Iterator[Path]:
    """Check a revision out into a temporary work tree; yields its folder."""
    commit = commit_of(revision)
    with temporary_folder("lra-revision-") as folder:
        tree = folder / commit[:12]
        try:
            _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
            yield tree
        finally:
            shutil.rmtree(tree, ignore_errors=True)
            with suppress(UsageError):
                _git("worktree", "prune")


def build(revision: str, tree: Path, log: Callable[[str], None]) -> Build:
    """Give a work tree the packages that its pyproject.toml and constraints.txt ask for.

    The environment is kept under the cache folder; revisions that ask for the same share it. `log`
    is told of steps that take minutes. Raises `UsageError` with pip's last line where it fails.
    """
    environment = cache_folder() / "environments" / _requirements(tree)
    python = environment / "bin" / "python"
    # The interpreter is a link, whose target may have been removed since.
    if not python.exists():
        log(f"installing the packages of {revision}, once")
        shutil.rmtree(environment, ignore_errors=True)
        # Whole or absent: another check may be making the same one.
        environment.parent.mkdir(parents=True, exist_ok=True)
        # Hundreds of megabytes, where a kill came before the name.
        sweep(environment.parent)
        with temporary_folder(place=environment.parent) as folder:
            new = folder / "environment"
            _install(tree, new, revision)
            try:
                new.rename(environment)
            except OSError:
                # Another check was faster.
                if not python.exists():
                    raise
    return Build(revision, tree, python, tree.name)


def torch_version(one: Build) -> str:
    """Return the version of torch in a build's environment: `2.13.0+cpu`."""
    ask = "from importlib.metadata import version; print(version('torch'))"
    return command_output(str(one.python), "-c", ask) or "none"


def _requirements(tree: Path) -> str:
    # Where the running torch is another build, pip was given another index.
    running = version("torch")
    return value_hash([sys.version, running, _dependencies(tree), _constraints(tree)])


def _install(tree: Path, environment: Path, revision: str) -> None:
    asked = _dependencies(tree)
    pins = ["-c", "constraints.txt"] if _constraints(tree) else []
    for command in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", *pins, *asked],
    ):
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if done.returncode:
            raise UsageError(
                f"revision '{revision}': its packages cannot be installed: {last_line(done)}; see "
                "that pip reaches its index, or name another revision"
            )


def _dependencies(tree: Path) -> list[str]:
    asked = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["dependencies"]
    return sorted(asked)


def _constraints(tree: Path) -> str:
    file = tree / "constraints.txt"
    return file.read_text() if file.is_file() else ""


def _is_clone() -> bool:
    return (HOME / ".git").exists()


def _git(*words: str) -> None:
    command = ["git", "-C", str(HOME), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=without_git_variables())
    if done.returncode:
        raise UsageError(f"git {words[0]} {words[1]}: {last_line(done)}; mend that and try again")
