"""A tree read bottom-up and then top-down, with a score of the whole: both passes are one compiled call."""

import random

import torch
from from_pytorch import compare
from torch import nn

import cortex

WORDS = 200


class Node:
    def __init__(self, word, children):
        self.word = word
        self.children = children


class Bidirectional(nn.Module):
    """Each node has a state from below and one from above; what is asked for is the mean over all nodes."""

    def __init__(self, dim=100, classes=4):
        super().__init__()
        self.dim = dim
        self.emb = nn.Embedding(WORDS, dim)
        self.up_cell, self.down_cell = nn.GRUCell(dim, dim), nn.GRUCell(dim, dim)
        self.score = nn.Linear(2 * dim, classes)

    def up(self, node):
        below = torch.zeros(1, self.dim)
        for child in node.children:
            below = below + self.up(child)
        node.h_up = self.up_cell(self.emb(torch.tensor([node.word])), below)
        return node.h_up

    def down(self, node, above):
        node.h_down = self.down_cell(node.h_up, above)
        total, count = self.score(torch.cat([node.h_up, node.h_down], dim=1)), 1
        for child in node.children:
            below, number = self.down(child, node.h_down)
            total, count = total + below, count + number
        return total, count

    def forward(self, root):
        self.up(root)
        total, count = self.down(root, torch.zeros(1, self.dim))
        return total / count


def tree(depth):
    return Node(random.randrange(WORDS), [tree(depth - 1) for _ in range(random.randint(1, 3) if depth else 0)])


@torch.no_grad()
def main():
    random.seed(0)
    trees = [tree(4) for _ in range(4)]
    module = Bidirectional().eval()

    fast = cortex.compile(module, examples=trees)

    print("scores:", fast(trees[0]).shape)
    compare(module, fast, trees)


if __name__ == "__main__":
    main()
