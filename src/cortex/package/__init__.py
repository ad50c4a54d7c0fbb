"""A compiled model as a C package: object code, header, weights and a runtime; no Python needed to run it."""
