"""Train a child-sum TreeLSTM on the sentiment of parse trees, through its compiled form; then save that for serving.

    python examples/train_sentiment.py [train.txt dev.txt | made-up]

With the two files of the Stanford treebank, which are looked for in ../shared/data/sst too, it trains on those, 150 /
300 as published; without, on made-up sentences, whose sentiment is that of most of their words.
"""

import sys
import tempfile
import time
from pathlib import Path
from random import Random

import torch
from rich.progress import track
from torch import nn

import cortex
from cortex.structures.generators import parse_tree
from cortex.structures.ptb import read_ptb

BATCH, CLASSES = 25, 5


class Tree:
    """A word at a leaf, or phrases below; a label at the root."""

    def __init__(self, word, children, label=None):
        self.word = word
        self.children = children
        self.label = label


class TreeLSTM(nn.Module):
    def __init__(self, words, in_dim, mem_dim):
        super().__init__()
        self.mem_dim = mem_dim
        self.emb = nn.Embedding(words, in_dim)
        self.leaf = nn.Linear(in_dim, 3 * mem_dim)
        self.inner = nn.Linear(mem_dim, 3 * mem_dim)
        self.forget = nn.Linear(mem_dim, mem_dim)
        self.out = nn.Linear(mem_dim, CLASSES)

    def encode(self, tree):
        if not tree.children:
            i, o, u = self.leaf(self.emb(torch.tensor(tree.word))).chunk(3)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            kids = [self.encode(child) for child in tree.children]
            i, o, u = self.inner(sum(h for h, _ in kids)).chunk(3)
            c = torch.sigmoid(i) * torch.tanh(u) + sum(torch.sigmoid(self.forget(h)) * c for h, c in kids)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, tree):
        h, _ = self.encode(tree)
        return self.out(h)


def treebank(path, vocabulary):
    def tree(node):
        return Tree(node.word, [tree(child) for child in node.children], node.label)

    text = Path(path).read_text(encoding="utf-8")
    return [tree(each) for each in read_ptb(text, words=lambda w: vocabulary.setdefault(w.lower(), len(vocabulary)))]


def made_up(rng, count, words):
    """Trees whose words have sentiments: word w has w mod 5, and a tree that of the mean of its words."""
    found = []
    for _ in range(count):
        leaves = []

        def tree(node, leaves=leaves):
            if node.left is None:
                leaves.append(node.word % CLASSES)
                return Tree(node.word, [])
            return Tree(0, [tree(node.left), tree(node.right)])

        root = tree(parse_tree(rng, words))
        root.label = round(sum(leaves) / len(leaves))
        found.append(root)
    return found


@torch.no_grad()
def accuracy(fast, trees):
    right = 0
    for start in range(0, len(trees), BATCH):
        batch = trees[start : start + BATCH]
        right += int((fast(batch).argmax(1) == torch.tensor([t.label for t in batch])).sum())
    return right / len(trees)


def main(files):
    torch.manual_seed(0)
    rng = Random(0)
    vocabulary = {}
    if files:
        train, dev = (treebank(path, vocabulary) for path in files)
        module, epochs, rate = TreeLSTM(len(vocabulary), 300, 150), 5, 2e-3
    else:
        train, dev = made_up(rng, 200, 50), made_up(rng, 50, 50)
        module, epochs, rate = TreeLSTM(50, 16, 16), 3, 2e-2
    fast = cortex.compile(module, examples=train[:BATCH]).train()
    optimizer, criterion = torch.optim.Adam(module.parameters(), lr=rate), nn.CrossEntropyLoss()
    folder = Path(tempfile.mkdtemp())
    for epoch in range(epochs):
        rng.shuffle(train)
        began, total = time.perf_counter(), 0.0
        for start in track(range(0, len(train), BATCH), f"epoch {epoch + 1}", disable=not sys.stdout.isatty()):
            batch = train[start : start + BATCH]
            loss = criterion(fast(batch), torch.tensor([t.label for t in batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        seconds = time.perf_counter() - began
        torch.save(module.state_dict(), folder / "checkpoint.pt")
        print(
            f"epoch {epoch + 1}: loss {total / len(train):.3f}, dev accuracy {accuracy(fast, dev):.3f}, {seconds:.1f} s"
        )
    fast.eval().save(folder / "sentiment.cortex")
    served = cortex.load(folder / "sentiment.cortex")
    print("saved; the same answers:", bool((served(dev[:5]).argmax(1) == fast(dev[:5]).argmax(1)).all()))


if __name__ == "__main__":
    given = sys.argv[1:] if len(sys.argv) == 3 and sys.argv[1].endswith(".txt") else []
    here = [Path(__file__).parents[2] / "shared" / "data" / "sst" / name for name in ("train.txt", "dev.txt")]
    main(here if not sys.argv[1:] and all(path.exists() for path in here) else given)
