"""Networks around a mechanism: embedding, blocks, encoder, pooling, heads."""
