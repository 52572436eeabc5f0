"""Training in plain PyTorch: schedule, batches, loop, evaluation, checkpoints."""
