"""Generation of tokens by a trained model: greedy, and by beam search."""

from lra.training.generate.beam import Beams, beam
from lra.training.generate.greedy import Generated, greedy

__all__ = ["Beams", "Generated", "beam", "greedy"]
