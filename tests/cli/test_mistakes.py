"""A mistake on the command line is one line with the remedy's word, and exit code 2, at once.

A line of the table is a command, `::`, and a word of the answer: a name meant, a value, a flag.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lra.cli.flags import YEAR
from lra.core.errors import LONGEST, LraError
from lra.engine.process.pool import Pool

from .conftest import Run

USAGE = 2
_BLOCK = 'title = ""\n[[efficiency]]\nscale = "mini"\nmodes = ["train"]\n'
_LAYER = "heads = [1]\nhead_widths = [4]\n"
FILES = {
    "quality.toml": 'title = ""\n',
    "typo.toml": f"{_BLOCK}{_LAYER}length = [16]\n",
    "gpu.toml": f'{_BLOCK}{_LAYER}lengths = [16]\ndevice = "cuda"\n',
    "none.toml": f"{_BLOCK}{_LAYER}lengths = []\n",
    "keys.toml": 'title = "mine"\nqualities = []\n',
    "broken.py": "def (:",
    "lacking.py": "import not_there",
    "file": "",
}
NUMBER = str(10**20)

TABLE = f"""
rnu :: 'run'
run --imlp performer :: --imlp
run --impl performer --features 3 :: --set
check --features 3 :: --features
run --impl performer --lenght 256 :: --length is of sweep, show
run --impl longformer --window 64 :: --set
sweep --impl full --tasks text :: --task is of run
run --impl full --devise cpu :: --device
data check --impl performer :: --impl is of run
run --model performer :: --impl
verify --method x :: --impl
sweep --impl performer linear :: --impl linear
run performer :: --impl performer
verify a b :: 'a b'
run text --impl full :: --task text
data show text :: --task text
run --impl performer '' :: commas
compare a b c :: (c)
compare old :: 'B'
run :: --impl performer
verify :: --impl
sweep :: --impl
show :: --impl
run --impl , :: names no mechanism
run --impl preformer :: 'performer'
run --impl perfomer :: 'performer'
show --impl longfromer :: 'longformer'
sweep --impl lineer :: 'linear'
run --impl :X :: before the colon
run --impl torch.nn: :: torch.nn:Class
run --impl my.py: :: my.py:Class
run --impl : :: colon
run --impl os:Qqqq :: PathLike
run --impl torch.nn:Qqqq :: spelling
run --impl mine.py:Mine :: 'mine.py'
run --impl peer:qqq :: peer:hf_
run --impl peer:linfromer :: 'peer:linformer'
verify --impl math:sin :: 'math'
run --impl statistics:median :: 'statistics'
verify --impl torch.nnn:X :: 'torch.nnn'
verify --impl broken.py :: (broken.py, line 1)
verify --impl lacking.py :: 'not_there'
run --impl full --task listop :: 'listops'
run --impl full --suite mimi :: 'mini'
run --impl full --suite no.toml :: 'no.toml'
run --impl full --suite keys.toml :: qualities
run --impl full --scale mimi :: 'mini'
show --impl full --scale pitcure :: 'picture'
run --impl performer --set feature=9 :: 'features'
run --impl performer --set features=few :: features
run --impl full --set ful.x=1 :: ful
run --impl full --set model.layer=1 :: 'layers'
run --impl full --set foo :: features=64
run --impl full --set training.step=8 :: 'steps'
run --impl full --set model.layers=0 :: layers
run --impl full --set training.schedule=cosinus :: constant, cosine, linear, rsqrt
run --impl linear --set linear.x=1 :: leave it out
run --impl linear --set performer.features=9 :: 'performer'
run --impl full --set training.steps={10**12} :: 2147483648
run --impl performer --set features=[{NUMBER}] :: 64 bits
run --impl performer --set features={"9" * 5000} :: 64 bits
run --impl performer --set features={"[" * 3000} :: brackets
run --impl full --task retrieval --set model.pooling=none :: 'retrieval'
verify --impl full --set training.steps=3 :: trained
verify --impl full --set features=3 :: leave it out
show --impl longformer --set windw=3 :: 'window'
run --impl full --data text :: text=reviews/
run --impl full --data text=no/ :: no/
run --impl full --data txet=no/ :: 'text'
data show --data txet=no/ :: 'text'
run --impl full --device tpu :: 'tpu'
run --rerun failde :: 'failed'
run --rules x :: 'lra2021'
list imple :: 'impls'
run --impl full --seeds x :: 'x'
run --impl full --seeds {NUMBER} :: 10000
sweep --impl full --replicates 0 :: '--replicates'
sweep --replicates 10001 :: 10000
report --price x :: 'x'
run --impl full --budget soon :: 1h30m
run --impl full --budget 0 :: 1h30m
run --impl full --timeout nan :: 'nan'
run --impl full --timeout {NUMBER}h :: year
data check :: '--from'
report --store nowhere :: 'nowhere'
sweep --impl linear --heads -4 :: '-4'
sweep --impl linear --length 0 :: '0'
sweep --impl linear --length 512..256 :: smaller first
sweep --impl linear --length long :: 'long'
sweep --impl linear --batch , :: ','
sweep --impl linear --mode trian :: 'train'
sweep --impl linear --dtype float8 :: 'float8'
sweep --impl linear --mode forward,decode --level model :: decoding
sweep --impl linear --mode '*' --execution compiled :: eager
sweep --impl linear --mode decode --direction bidirectional :: causal
sweep --impl linear --suite quality.toml :: [[efficiency]]
sweep --impl linear --suite typo.toml :: 'length'
sweep --impl linear --suite none.toml :: lengths
sweep --impl linear --suite gpu.toml --device cpu :: cpu
sweep --impl linear --suite error :: linear
sweep --impl performer --suite error --mode train :: modes
sweep --impl performer --suite error --set features=0 :: features
sweep --impl lstm --suite peers :: bigbird
verify --impl full --check causalty :: 'causality'
verify --impl full --check , --case n=5 :: law
verify --impl full --case n=5 :: --check
verify --impl full --check causality --case causal :: 'n=5 causal'
verify --impl full --check causality --case 'n=5 causal n=6' :: n twice
verify --impl full --check causality --case causl :: 'causl'
verify --impl full --check causality --case n=x :: 'n=5 causal'
verify --impl full --check causality --case 'n={NUMBER} causal' :: 'n=5 causal'
verify --impl full --check causality --case 'n=5 causal seed={2**40}' :: 'n=5 causal'
verify --impl full --check causality --case 'n=5 mask=up' :: 'up'
show --impl full --length 0 :: 0
show --impl full --length 129 :: 128
show --impl full --input x.npy :: 'x.npy'
show --impl full --input x --length 8 :: --length
show --impl full,linear --out x.png :: 'x.png'
show --impl full --out x.pdf :: .png
show --impl full --out file/below :: 'file/below'
run --impl full --profile --seeds 2 :: --seeds
run --impl full --profile --track tuned :: --track
run --impl full --profile --devices 2 :: --devices
run --impl full --devices 2 --cluster local:2 :: --cluster
run --impl full --suite timing --task listops :: --task
run --impl full --suite timing --data text=hub:some/reviews :: --data
run --impl full --suite timing --scale mini :: --scale
run --impl full --suite timing --rules lra2021 :: --rules
run --impl full --suite timing --track tuned :: --track
run --impl full --suite timing --seeds 3 :: --seeds
run --impl full --suite timing --devices 2 :: --devices
run --impl full --suite timing --baselines :: --baselines
run --impl full --suite timing --profile :: --profile
run --impl full --devices 0 :: --devices
run --impl full --devices two :: --devices
run --impl full --store '' :: --store ''
check --store '' :: --store ''
check --out '' :: --out ''
check --history '' :: --history ''
check --baselines '' :: --baselines ''
baseline show --baselines '' :: --baselines ''
baseline update --impl identity --device cpu --deterministic :: --reason
baseline update --impl identity --device cpu --deterministic --reason ' ' :: --reason is empty
baseline update --impl identiti --device cpu --deterministic --reason x :: 'identity'
report --out '' :: --out ''
report --compare '' :: --compare ''
show --out '' :: --out ''
data prepare --out '' :: --out ''
check --since '' :: --since
check --history nights --impl identity :: --impl
check --history nights --since main :: --since
check --history nights --deterministic :: --deterministic
check --history nights --quick :: --quick
check --history nights --store s :: --store
check --history nights --device cuda :: --device
check --history nights --baselines b :: --baselines
doctor --replicates 5 :: --timing
doctor --json :: --timing
doctor --timing --replicates 2 :: 3<=x<=12
doctor --timing --replicates 13 :: 3<=x<=12
"""
MISTAKES = [line.split(" :: ") for line in TABLE.strip().splitlines()]


def test_the_table_is_read_whole() -> None:
    assert len(MISTAKES) > 140 and all(len(pair) == 2 for pair in MISTAKES)
    assert YEAR < 1e20


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def refuse(*_: object) -> None:
        raise LraError("cells are run")

    monkeypatch.setattr(Pool, "run", refuse)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("command", "word"), MISTAKES, ids=[c[:60] for c, _ in MISTAKES])
def test_a_mistake_is_one_line_and_exit_2(command: str, word: str, lra: Run, files: Path) -> None:
    before = sorted(files.iterdir())
    ran = lra(*shlex.split(command))
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("lra: ") and word in line and len(line) <= len("lra: ") + LONGEST
    assert sorted(one for one in files.iterdir() if one.name != "reports") == before


LONG = "x" * 5000
LONG_ONES = (
    (LONG,),
    ("run", f"--{LONG}"),
    ("run", "--impl", LONG),
    ("run", "--impl", f"performer,{LONG}"),
    ("verify", "--impl", f"os:{LONG}"),
    ("run", *("word",) * 400),
    ("run", "--rerun", LONG),
    ("run", "--impl", "full", "--seeds", LONG),
    ("run", "--impl", "performer", "--set", f"{LONG}=1"),
    ("run", "--impl", "full", "--data", LONG),
    ("run", "--impl", "full", "--budget", LONG),
    ("run", "--impl", "full", "--scale", LONG),
    ("report", "--price", LONG),
)


@pytest.mark.parametrize("words", LONG_ONES, ids=range(len(LONG_ONES)))
def test_a_long_mistake_is_cut_to_its_point(words: tuple[str, ...], lra: Run) -> None:
    ran = lra(*words)
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("lra: ") and len(line) <= len("lra: ") + LONGEST and "..." in line
