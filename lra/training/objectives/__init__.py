"""Objectives: from a model's output and a batch to a loss and counts, one file each."""
