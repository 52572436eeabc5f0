"""Verdicts on figures: differences, growth, crossovers and their certainty. Never torch."""
