"""The peers: their files are read without importing what they name; with it, they work."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from attention_impls.contract import Context, Dims
from lra.adapters import adapt
from lra.adapters.adapt import load
from lra.core import catalogue, peers
from lra.core.errors import LraError, UsageError

FILES = sorted((Path(peers.__file__).parents[1] / "peers").glob("*.toml"))
NAMES = [f"peer:{file.stem}" for file in FILES]


def test_a_wildcard_is_all_files_and_imports_nothing() -> None:
    program = (
        "import sys\n"
        "from lra.core import catalogue\n"
        "names = [t.name for t in catalogue.expand('mechanism', ['peer:*'])]\n"
        "heads = {t.module.partition('.')[0] for t in catalogue.expand('mechanism', ['peer:*'])}\n"
        "print(*names)\n"
        "print(*sorted((heads - {'lra'} | {'torch'}) & set(sys.modules)))\n"
        "print(*sorted(m for m in sys.modules if m.startswith('lra.adapters')))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2], text=True, capture_output=True,
    )  # fmt: skip
    assert ran.stdout.split("\n") == [" ".join(NAMES), "", "", ""], ran.stderr
    assert len(NAMES) > 10


@pytest.mark.parametrize("name", NAMES)
def test_a_file_names_a_class_by_its_module(name: str) -> None:
    peer, target = peers.read(name), catalogue.find("mechanism", name)
    module, colon, attribute = peer.reference.partition(":")
    assert colon and (target.module, target.attribute) == (module, attribute)
    assert target.reference == target.name == name and not target.ours
    if module.startswith("lra."):
        assert f"class {attribute}(" in target.file.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_one_whose_package_is_missing_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Glue imports its package late: that it loads says nothing."""

    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(adapt, "version", missing)
    with pytest.raises(LraError, match=r"'.+'.*\bextra\b"):
        load(catalogue.find("mechanism", name))


def test_all_does_not_mean_peers_and_a_typo_is_answered_with_the_nearest() -> None:
    assert not any(t.is_peer for t in catalogue.expand("mechanism", ["all", "*"]))
    with pytest.raises(UsageError, match="did you mean 'peer:linformer'"):
        catalogue.find("mechanism", "peer:linfromer")
    with pytest.raises(UsageError, match="unknown peer 'peer:'"):
        catalogue.find("mechanism", "peer:")


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("name", NAMES)
def test_a_peer_is_built_and_claims_what_it_gives(name: str) -> None:
    mechanism = load(catalogue.find("mechanism", name))
    assert mechanism.card.assumed
    can = mechanism.card.capabilities
    for config in (mechanism.Config(), *mechanism.trials):
        torch.manual_seed(0)
        layer = mechanism(Dims(width=16, qkv_width=16, heads=2, max_length=70), config).eval()
        for n in (1, 37, 70):
            x_BND = torch.randn(2, n, 16)
            for causal in (False, True)[: 1 + (can.causal != "no")]:
                mask = torch.ones(2, n, dtype=torch.bool) if can.padding != "none" else None
                y_BND = layer(x_BND, Context(causal=causal, query_mask_BN=mask)).y_BND
                assert y_BND.shape == x_BND.shape and y_BND.isfinite().all()


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")  # theirs
def test_performer_pytorch_with_relu_is_the_function_of_our_kernel_relu() -> None:
    dims = Dims(width=16, qkv_width=16, heads=2, max_length=9)
    theirs = load(catalogue.find("mechanism", "peer:performer_pytorch_relu"))
    peer = theirs(dims, theirs.Config(nb_features=12)).inner.bidirectional.fast_attention
    mechanism = load(catalogue.find("mechanism", "performer"))
    ours = mechanism(dims, mechanism.Config(kernel="relu", features=12))
    ours.omega_HRK.copy_(peer.projection_matrix)
    heads = torch.randn(3, 2, 2, 9, 8, generator=torch.Generator().manual_seed(0))
    found, _ = ours.attend(*heads, Context())
    torch.testing.assert_close(found, peer(*heads))


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")  # theirs
def test_sinkhorn_transformer_does_not_read_the_values_that_it_sorts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Why its file says `lighter`: a release in which this fails is to be asked for more."""
    from sinkhorn_transformer import sinkhorn_transformer as module

    assert peers.read("peer:sinkhorn_transformer").lighter
    torch.manual_seed(0)
    layer = module.SinkhornSelfAttention(32, 8, 64, heads=2, non_permutative=False)
    x_BND, sort, sorted_BUSK = torch.randn(1, 64, 32), module.reorder_buckets, []

    def without_values(parts: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        sorted_BUSK.append(sort(parts, order))
        return sorted_BUSK[-1] * (len(sorted_BUSK) % 2)  # keys come first

    torch.manual_seed(1)
    expected = layer(x_BND)
    monkeypatch.setattr(module, "reorder_buckets", without_values)
    torch.manual_seed(1)
    assert torch.equal(layer(x_BND), expected)
    assert len(sorted_BUSK) == 2


@pytest.mark.peers
def test_the_packages_named_are_those_installed() -> None:
    from importlib.metadata import version

    for name in NAMES:
        peer = peers.read(name)
        assert version(peer.package), name


@pytest.mark.skipif(find_spec("linformer") is not None, reason="it is installed here")
def test_a_peer_that_is_not_installed_has_no_file() -> None:
    with pytest.raises(UsageError, match="'linformer'"):
        _ = catalogue.find("mechanism", "peer:linformer").file
