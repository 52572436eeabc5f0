"""Plots as SVG, which share looks, lines and the places of names."""
