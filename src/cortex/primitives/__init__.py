"""Deep-learning primitives on arrays: convolutions and matrix products, from the same loops as recursive models."""
