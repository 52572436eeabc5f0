"""Figures over many nights: series, steps, and what of them is to be told."""
