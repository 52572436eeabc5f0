"""Every peer's file reads, and its counterpart is one of ours with the settings it names."""

import pytest

from lra.core import catalogue, peers
from lra.core.errors import LraError
from lra.engine.plan.describe import Describer


@pytest.fixture(scope="module")
def describer(tmp_path_factory):
    return Describer(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("name", peers.names())
def test_a_counterpart_is_ours_and_has_the_settings_that_are_matched(name, describer):
    peer = peers.read(name)
    if not peer.counterpart:
        assert name in {"peer:hf_reformer_local", "peer:routing_transformer"}
        return
    ours = describer.describe(catalogue.find("mechanism", peer.counterpart))
    assert peer.counterpart in catalogue.names("mechanism")
    assert set(peer.matching) <= set(ours.defaults)
    # A length is a multiple of a size of blocks, which both have.
    assert set(peer.multiples) <= set(peer.matching.values())
    assert peer.multiples or "pad_to" not in peer.settings


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("counterpart = 3", "counterpart"),
        ('counterpar = "full"', "counterpar"),
        ('matching = { rank = "k" }', "matching needs a counterpart"),
        ('counterpart = "linformer"\nmatching = { rank = 3 }', "matching"),
        ("multiples = { k = 2 }", "multiples needs a counterpart"),
    ],
)
def test_a_mistake_names_the_file(change, says, tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(f'package = "p"\nreference = "p:C"\n{change}\n')
    monkeypatch.setattr(peers, "_FOLDER", tmp_path)
    with pytest.raises(LraError, match=f"mine.toml: .*{says}") as caught:
        peers.read("peer:mine")
    assert "\n" not in str(caught.value)
