"""Structures: adapters from the formats trees, graphs and sequences come in to nodes a model can recurse over.

Every adapter is a function in the file named after the format. Nothing here is needed to use your own objects:
`cortex.compile` reads whatever attributes the model names.
"""
