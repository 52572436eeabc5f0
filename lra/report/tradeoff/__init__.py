"""Accuracy against cost: what both tables say of one mechanism."""
