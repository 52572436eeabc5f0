"""Attention through a feature map, linear in length."""
