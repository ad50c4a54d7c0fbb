"""Functions of Python as vectors: an encoder over the nodes of Python's own `ast`, compiled as it is."""

import ast
import inspect
import json
import textwrap

import torch
from from_pytorch import compare
from torch import nn

import cortex

TYPES = {name: i for i, name in enumerate(sorted(n for n in dir(ast) if isinstance(getattr(ast, n), type)))}


class Encoder(nn.Module):
    """The type of a node, and the sum and the maximum over what is below it."""

    def __init__(self, dim=96):
        super().__init__()
        self.types = nn.Embedding(len(TYPES), dim)
        self.below = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, node):
        x = self.types(torch.tensor(node.type_id))
        below = [self(child) for child in node.children]
        if below:
            below = torch.stack(below)
            x = x + self.below(torch.cat([below.sum(0), below.max(0).values]))
        return self.norm(torch.relu(x))


class Node:
    """A node of a syntax tree, with what the encoder reads."""

    def __init__(self, tree):
        self.type_id = TYPES[type(tree).__name__]
        self.children = [Node(child) for child in ast.iter_child_nodes(tree)]


@torch.no_grad()
def main():
    functions = [json.dumps, json.loads, textwrap.wrap, textwrap.dedent, inspect.getdoc, ast.walk]
    trees = [Node(ast.parse(textwrap.dedent(inspect.getsource(f)))) for f in functions]
    module = Encoder().eval()

    fast = cortex.compile(module, examples=trees[:2])

    print("a vector for each function:", fast(trees).shape)
    compare(module, fast, trees)


if __name__ == "__main__":
    main()
