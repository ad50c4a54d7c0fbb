"""RA -> RA: the backward pass."""
