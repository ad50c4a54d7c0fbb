"""Modules over shapes, plans and trees that are decoded, in the manner of public repositories."""

from __future__ import annotations

import functools
from collections import namedtuple

import torch
from torch import nn
from torch.nn import functional as F

V, D, H = 20, 6, 5


class Part:
    """A part of a shape: a box, two parts side by side, or one part repeated."""

    BOX, SIDE_BY_SIDE, REPEATED = 0, 1, 2

    def __init__(self, node_type, box=None, left=None, right=None, symmetry=None):
        self.node_type = node_type
        self.box = box
        self.left = left
        self.right = right
        self.symmetry = symmetry

    def is_leaf(self):
        return self.node_type == Part.BOX and self.box is not None

    def is_adj(self):
        return self.node_type == Part.SIDE_BY_SIDE


class Joining(nn.Module):
    def __init__(self, second):
        super().__init__()
        self.left = nn.Linear(H, 8)
        self.right = nn.Linear(second, 8, bias=False)
        self.second = nn.Linear(8, H)
        self.tanh = nn.Tanh()

    def forward(self, left, right):
        output = self.left(left)
        output += self.right(right)
        return self.tanh(self.second(self.tanh(output)))


class ShapeEncoder(nn.Module):
    """A function inside forward goes through the parts; boxes are tensors of the nodes."""

    def __init__(self):
        super().__init__()
        self.box_encoder = nn.Sequential(nn.Linear(D, H), nn.Tanh())
        self.adj_encoder, self.sym_encoder = Joining(H), Joining(4)
        self.mean, self.log_variance = nn.Linear(H, H), nn.Linear(H, H)

    def forward(self, root):
        def encode_node(node):
            if node.is_leaf():
                return self.box_encoder(node.box)
            elif node.is_adj():
                return self.adj_encoder(encode_node(node.left), encode_node(node.right))
            return self.sym_encoder(encode_node(node.left), node.symmetry)

        code = encode_node(root)
        return torch.cat([self.mean(code), self.log_variance(code)], 1)


class Predicate:
    def __init__(self, op, vector=None, children=None):
        self.op = op
        self.vector = vector
        self.children = children


class Operator:
    """An operator of a plan, with a tree of conditions."""

    def __init__(self, features, condition, children):
        self.features = features
        self.condition = condition
        self.children = children


class PlanEstimator(nn.Module):
    """Conditions are pooled by the smallest for AND and the largest for OR; lists of numbers become tensors."""

    def __init__(self):
        super().__init__()
        self.operation, self.comparison = nn.Linear(3, 4), nn.Linear(4, 4)
        self.cell = nn.LSTMCell(8, H)
        self.cost, self.cardinality = nn.Linear(H, 1), nn.Linear(H, 1)

    def predicate(self, p):
        if p.op == "CMP":
            return self.comparison(torch.FloatTensor(p.vector).unsqueeze(0))
        left, right = [self.predicate(c) for c in p.children]
        return torch.min(left, right) if p.op == "AND" else torch.max(left, right)

    def plan(self, node):
        h, c = torch.zeros(1, H), torch.zeros(1, H)
        if len(node.children):
            states = [self.plan(child) for child in node.children]
            h = torch.mean(torch.stack([s[0] for s in states]), dim=0)
            c = torch.mean(torch.stack([s[1] for s in states]), dim=0)
        condition = self.predicate(node.condition) if node.condition else torch.zeros(1, 4)
        x = torch.cat((F.relu(self.operation(torch.FloatTensor([node.features]))), condition), 1)
        return self.cell(x, (h, c))

    def forward(self, root):
        h, _ = self.plan(root)
        return torch.sigmoid(self.cost(h)), torch.sigmoid(self.cardinality(h))


class Binary:
    def __init__(self, value, left=None, right=None):
        self.value = value
        self.left = left
        self.right = right
        self.parent = None
        for child in (left, right):
            if child is not None:
                child.parent = self


class TreeDecoder(nn.Module):
    """The tree is encoded and decoded again; the loss of every node is summed on the way back."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, H)
        self.encoder, self.to_left, self.to_right = nn.GRUCell(H, H), nn.GRUCell(H, H), nn.GRUCell(H, H)
        self.out = nn.Linear(H, V)

    def encode(self, node):
        x = self.embedding(torch.tensor([node.value]))
        if node.left is None:
            return self.encoder(x)
        return self.encoder(x, self.encode(node.left) + self.encode(node.right))

    def decode(self, node, h):
        loss = F.cross_entropy(self.out(h), torch.tensor([node.value]))
        if node.left is not None:
            x = self.embedding(torch.tensor([node.value]))
            loss = loss + self.decode(node.left, self.to_left(x, h)) + self.decode(node.right, self.to_right(x, h))
        return loss

    def forward(self, tree):
        return self.decode(tree, self.encode(tree))


class TreeConvolution(nn.Module):
    """Two layers over each node and its children, then the maximum over all nodes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.first, self.second, self.out = nn.Linear(3 * D, H), nn.Linear(3 * H, H), nn.Linear(H, 1)

    def embedded(self, node):
        return torch.zeros(D) if node is None else self.embedding(torch.tensor(node.value))

    def layer(self, node):
        triple = [self.embedded(node), self.embedded(node.left), self.embedded(node.right)]
        node.features = F.leaky_relu(self.first(torch.cat(triple)))
        for child in (node.left, node.right):
            if child is not None:
                self.layer(child)

    def pooled(self, node):
        below = [child for child in (node.left, node.right) if child is not None]
        triple = [node.features, *[child.features for child in below], torch.zeros(H), torch.zeros(H)][:3]
        best = F.leaky_relu(self.second(torch.cat(triple)))
        for child in below:
            best = torch.max(best, self.pooled(child))
        return best

    def forward(self, root):
        self.layer(root)
        return self.out(self.pooled(root))


class WithParents(nn.Module):
    """The word above is read through the pointer to the parent."""

    def __init__(self):
        super().__init__()
        self.embedding, self.join = nn.Embedding(V, H), nn.Linear(2 * H, H)

    def forward(self, node):
        x = self.embedding(torch.tensor(node.value))
        if node.parent is not None:
            x = x + 0.5 * self.embedding(torch.tensor(node.parent.value))
        if node.left is None:
            return x
        return torch.tanh(self.join(torch.cat((self(node.left), self(node.right))))) + x


class NaryTreeLSTM(nn.Module):
    """A matrix for each position of a child, and for each pair of them in the forget gates."""

    N = 2

    def __init__(self):
        super().__init__()
        self.emb, self.W = nn.Embedding(V, D), nn.Linear(D, 4 * H)
        self.U = nn.ModuleList([nn.Linear(H, 3 * H, bias=False) for _ in range(self.N)])
        self.U_f = nn.ModuleList(
            [nn.ModuleList([nn.Linear(H, H, bias=False) for _ in range(self.N)]) for _ in range(self.N)]
        )

    def forward(self, node):
        states = [self.forward(child) for child in node.children]
        x = self.W(self.emb(torch.tensor([node.token])))
        iou = x[:, : 3 * H]
        for k, (h, _) in enumerate(states):
            iou = iou + self.U[k](h)
        i, o, u = iou.chunk(3, dim=1)
        c = torch.sigmoid(i) * torch.tanh(u)
        for one, (_, c_one) in enumerate(states):
            f = x[:, 3 * H :]
            for k, (h, _) in enumerate(states):
                f = f + self.U_f[one][k](h)
            c = c + torch.sigmoid(f) * c_one
        return torch.sigmoid(o) * torch.tanh(c), c


class ChildAttention(nn.Module):
    """nn.MultiheadAttention of a node over its children."""

    def __init__(self):
        super().__init__()
        self.emb, self.norm = nn.Embedding(V, 8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, node):
        x = self.emb(torch.tensor([[node.token]]))
        if node.children:
            below = torch.cat([self(child) for child in node.children], dim=1)
            x = self.norm(x + self.attention(x, below, below)[0])
        return x


class MeanBySize(nn.Module):
    """Sizes and depths are counted in Python on the way up."""

    def __init__(self):
        super().__init__()
        self.emb, self.linear = nn.Embedding(V, H), nn.Linear(H, H)

    def visit(self, node):
        total, size, depth = self.emb(torch.tensor(node.token)), 1, 0
        for child in node.children:
            below, below_size, below_depth = self.visit(child)
            total = total + below
            size += below_size
            depth = max(depth, below_depth + 1)
        return torch.tanh(self.linear(total / size)) * (1 + depth), size, depth

    def forward(self, root):
        return self.visit(root)[0]


class Partial(nn.Module):
    """Recursion through functools.partial and map."""

    def __init__(self):
        super().__init__()
        self.emb, self.linear = nn.Embedding(V, H), nn.Linear(H, H)

    def encode(self, scale, node):
        x = self.emb(torch.tensor(node.token)) * scale
        return torch.tanh(sum(map(functools.partial(self.encode, scale), node.children), x))

    def forward(self, root):
        return self.linear(self.encode(0.5, root))


Named = namedtuple("Named", "word left right")


class NamedTupleTree(nn.Module):
    """Nodes that are named tuples, taken apart and read by name."""

    def __init__(self):
        super().__init__()
        self.emb, self.join = nn.Embedding(V, H), nn.Linear(2 * H, H)

    def forward(self, node):
        word, left, right = node
        if left is None:
            return self.emb(torch.tensor(word))
        return torch.tanh(self.join(torch.cat((self(left), self(right)), -1))) + self.emb(torch.tensor(node.word))
