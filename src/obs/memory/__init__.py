"""The arithmetic of GPU memory: weights, KV cache, what is left, and what fits. No I/O but the two lists that lie beside it."""
