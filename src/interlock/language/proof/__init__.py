"""Proofs about conditions: whether two can be true together, whether one can be at all."""
