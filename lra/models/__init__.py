"""Networks around a mechanism: embedding, blocks, bodies, pooling, heads."""
