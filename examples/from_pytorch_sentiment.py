"""Sentiment of parse trees: a child-sum TreeLSTM in PyTorch, compiled as it is."""

import torch
from from_pytorch import compare
from torch import nn

import cortex
from cortex.structures.ptb import read_ptb

SENTENCES = """
(3 (2 It) (4 (2 's) (4 (2 a) (4 (3 (4 lovely) (2 film)) (3 (2 with) (4 (4 (4 lovely) (2 performances)) (2 (2 by)
  (2 (2 two) (2 actors)))))))))
(1 (2 (2 No) (2 one)) (1 (2 goes) (1 (1 (2 unindicted) (2 here)) (3 (2 which) (3 (2 is) (3 (2 probably) (4 (2 for)
  (4 (2 the) (4 best)))))))))
(4 (3 (2 A) (3 (3 warm) (2 and))) (4 (3 funny) (4 (2 and) (4 (4 engaging) (2 film)))))
"""


class Tree:
    """A word at a leaf, or phrases below."""

    def __init__(self, parsed):
        self.word = parsed.word
        self.children = [Tree(child) for child in parsed.children]


class TreeLSTM(nn.Module):
    """As in the public PyTorch versions: states are kept on the nodes, a batch dimension of 1 is carried along."""

    def __init__(self, words, in_dim=300, mem_dim=150, classes=5):
        super().__init__()
        self.mem_dim = mem_dim
        self.emb = nn.Embedding(words, in_dim)
        self.ioux, self.iouh = nn.Linear(in_dim, 3 * mem_dim), nn.Linear(mem_dim, 3 * mem_dim)
        self.fx, self.fh = nn.Linear(in_dim, mem_dim), nn.Linear(mem_dim, mem_dim)
        self.out = nn.Linear(mem_dim, classes)

    def node_forward(self, x, child_c, child_h):
        iou = self.ioux(x) + self.iouh(torch.sum(child_h, dim=0, keepdim=True))
        i, o, u = torch.split(iou, self.mem_dim, dim=1)
        f = torch.sigmoid(self.fh(child_h) + self.fx(x).repeat(len(child_h), 1))
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sum(f * child_c, dim=0, keepdim=True)
        return c, torch.sigmoid(o) * torch.tanh(c)

    def encode(self, tree):
        for child in tree.children:
            self.encode(child)
        if len(tree.children) == 0:
            child_c, child_h = torch.zeros(1, self.mem_dim), torch.zeros(1, self.mem_dim)
            x = self.emb(torch.tensor([tree.word]))
        else:
            child_c, child_h = zip(*[child.state for child in tree.children], strict=True)
            child_c, child_h = torch.cat(child_c), torch.cat(child_h)
            x = torch.zeros(1, self.emb.embedding_dim)
        tree.state = self.node_forward(x, child_c, child_h)
        return tree.state

    def forward(self, tree):
        _, h = self.encode(tree)
        return torch.log_softmax(self.out(h), dim=1)


@torch.no_grad()
def main():
    vocabulary = {}
    parsed = read_ptb(SENTENCES, words=lambda word: vocabulary.setdefault(word, len(vocabulary)))
    trees = [Tree(each) for each in parsed]
    module = TreeLSTM(len(vocabulary)).eval()

    fast = cortex.compile(module, examples=trees)

    print(f"scores of {len(trees)} sentences:", fast(trees).shape)
    compare(module, fast, trees)


if __name__ == "__main__":
    main()
