"""Modules over syntax trees, plans, layouts, graphs and lists in the manner of public repositories."""

from __future__ import annotations

import operator

import torch
from torch import nn
from torch.nn import functional as F

V, D, H = 20, 6, 5


class AstNode:
    """A token and children, as wrapped around a parser's nodes."""

    def __init__(self, token, children=()):
        self.token = token
        self.children = list(children)
        self.is_leaf = not self.children


class ASTNN(nn.Module):
    """Statement trees: every node's sum is appended to a list, and the maximum over the list is the encoding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.W_c = nn.Linear(D, H)

    def visit(self, node):
        current = self.W_c(self.embedding(torch.tensor(node.token)))
        found = []
        for child in node.children:
            vector, below = self.visit(child)
            current = current + vector
            found.append(below)
        return current, torch.stack([current, *found]).max(0)[0]

    def forward(self, root):
        _, pooled = self.visit(root)
        return F.relu(pooled)


class TBCNN(nn.Module):
    """Tree-based convolution: weights of a child mix two matrices by its position; a dynamic pool at the root."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.w_t = nn.Parameter(torch.randn(D, H) * 0.3)
        self.w_l = nn.Parameter(torch.randn(D, H) * 0.3)
        self.w_r = nn.Parameter(torch.randn(D, H) * 0.3)
        self.b = nn.Parameter(torch.zeros(H))

    def convolve(self, node):
        out = self.emb(torch.tensor(node.token)) @ self.w_t
        n = len(node.children)
        for i, child in enumerate(node.children):
            eta_r = i / (n - 1) if n > 1 else 0.5
            w = eta_r * self.w_r + (1 - eta_r) * self.w_l
            out = out + self.emb(torch.tensor(child.token)) @ w
        return torch.tanh(out + self.b)

    def forward(self, node):
        pooled = self.convolve(node)
        for child in node.children:
            pooled = torch.maximum(pooled, self.forward(child))
        return pooled


class ChildrenLSTM(nn.Module):
    """An LSTM over the children's encodings, whose last state is joined with the token's."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.lstm = nn.LSTM(H, H, batch_first=True)
        self.join = nn.Linear(D + H, H)

    def forward(self, node):
        x = self.emb(torch.tensor(node.token))
        if node.is_leaf:
            summary = torch.zeros(H)
        else:
            sequence = torch.stack([self(child) for child in node.children]).unsqueeze(0)
            _, (h_n, _) = self.lstm(sequence)
            summary = h_n[-1].squeeze(0)
        return torch.tanh(self.join(torch.cat([x, summary])))


class QPPNet(nn.Module):
    """Plan-structured networks: a unit for each operator, features in the plan's dictionary, latency first."""

    ARITY = {"Hash Join": 2, "Nested Loop": 2, "Sort": 1, "Hash": 1, "Seq Scan": 0, "Index Scan": 0}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.units = nn.ModuleDict(
            {
                op.replace(" ", "_"): nn.Sequential(nn.Linear(3 + n * H, 8), nn.ReLU(), nn.Linear(8, H), nn.ReLU())
                for op, n in self.ARITY.items()
            }
        )

    def features(self, plan):
        return torch.tensor([plan["Plan Rows"], plan["Plan Width"], plan["Total Cost"]]).log1p()

    def forward(self, plan):
        inputs = [self.features(plan)]
        for sub in plan.get("Plans", []):
            inputs.append(self.forward(sub))
        out = self.units[plan["Node Type"].replace(" ", "_")](torch.cat(inputs))
        return out

    def latency(self, plan):
        return self.forward(plan)[0]


class Layout:
    """A node of a program that answers a question about an image."""

    def __init__(self, module, args=(), word=None):
        self.module = module
        self.args = list(args)
        self.word = word


class Find(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(D, 9)

    def forward(self, word):
        return torch.sigmoid(self.conv(word))


class And(nn.Module):
    def forward(self, a, b):
        return torch.min(a, b)


class Transform(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(9, 12)
        self.fc2 = nn.Linear(12, 9)

    def forward(self, attention):
        return F.softmax(self.fc2(F.relu(self.fc1(attention))), dim=-1)


class NeuralModuleNetwork(nn.Module):
    """Modules named by the layout are put together; one of them takes a word."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(V, D)
        self.library = nn.ModuleDict({"find": Find(), "and": And(), "transform": Transform()})
        self.answer = nn.Linear(9, 4)

    def execute(self, layout):
        module = self.library[layout.module]
        if layout.word is not None:
            return module(self.words(torch.as_tensor(layout.word)))
        return module(*[self.execute(arg) for arg in layout.args])

    def forward(self, layout):
        return self.answer(self.execute(layout)).softmax(-1)


class Vertex:
    """A vertex of a graph without cycles."""

    def __init__(self, kind, predecessors=()):
        self.kind = kind
        self.predecessors = list(predecessors)


class DVAEEncoder(nn.Module):
    """A GRU over a graph: gated sums of predecessors' states, remembered in a dictionary; then mean and variance."""

    def __init__(self):
        super().__init__()
        self.grue_forward = nn.GRUCell(4, H)
        self.gate_forward = nn.Sequential(nn.Linear(H, H), nn.Sigmoid())
        self.mapper_forward = nn.Sequential(nn.Linear(H, H, bias=False))
        self.fc1, self.fc2 = nn.Linear(H, 3), nn.Linear(H, 3)

    def _propagate_to(self, v, states):
        if v in states:
            return states[v]
        x = F.one_hot(torch.tensor([v.kind]), 4).float()
        if len(v.predecessors) == 0:
            h_in = torch.zeros(1, H)
        else:
            preds = [self._propagate_to(p, states) for p in v.predecessors]
            h_in = sum(self.gate_forward(h) * self.mapper_forward(h) for h in preds)
        hv = self.grue_forward(x, h_in)
        states[v] = hv
        return hv

    def forward(self, sink):
        h = self._propagate_to(sink, {})
        return self.fc1(h), self.fc2(h)


class Expr:
    """An operator with arguments, a variable, or a number."""


class Num(Expr):
    def __init__(self, value):
        self.value = value


class Var(Expr):
    def __init__(self, name):
        self.name = name


class BinOp(Expr):
    def __init__(self, op, lhs, rhs):
        self.op, self.lhs, self.rhs = op, lhs, rhs


class Evaluator(nn.Module):
    """Evaluates expressions over vectors: constants, learned variables, operators from a table."""

    OPS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "max": torch.maximum}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.variables = nn.ParameterDict({name: nn.Parameter(torch.randn(H)) for name in "xyz"})

    def forward(self, e):
        if isinstance(e, Num):
            return torch.full((H,), e.value)
        if isinstance(e, Var):
            return self.variables[e.name]
        return self.OPS[e.op](self(e.lhs), self(e.rhs)).clamp(-10, 10)


class Cell:
    """An element of a linked list."""

    def __init__(self, value, next=None):
        self.value = value
        self.next = next


class LinkedRNN(nn.Module):
    """An RNN as a recursion over a linked list, the state passed along; the last call returns it."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.cell = nn.GRUCell(D, H)
        self.out = nn.Linear(H, 2)

    def step(self, cell, h):
        h = self.cell(self.emb(torch.tensor([cell.value])), h)
        if cell.next is None:
            return h
        return self.step(cell.next, h)

    def forward(self, head):
        return self.out(self.step(head, torch.zeros(1, H)))


class TopDownBottomUp(nn.Module):
    """Bottom-up, then top-down with the states below; scores of the leaves, averaged."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, H)
        self.up_cell = nn.GRUCell(H, H)
        self.down_cell = nn.GRUCell(H, H)
        self.score = nn.Linear(2 * H, 2)

    def bottom_up(self, node):
        below = [self.bottom_up(child) for child in node.children]
        h = torch.stack(below).mean(dim=0) if below else torch.zeros(1, H)
        node.h_up = self.up_cell(self.emb(torch.tensor([node.token])), h)
        return node.h_up

    def top_down(self, node, h):
        node.h_down = self.down_cell(node.h_up, h)
        if not node.children:
            return self.score(torch.cat([node.h_up, node.h_down], dim=1)), 1
        total, count = 0, 0
        for child in node.children:
            s, c = self.top_down(child, node.h_down)
            total = total + s
            count += c
        return total, count

    def forward(self, root):
        self.bottom_up(root)
        total, count = self.top_down(root, torch.zeros(1, H))
        return total / count
