"""Modules over parse trees in the manner of public repositories: sentiment, similarity, inference, autoencoders."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

V, D, H, CLASSES = 20, 6, 5, 3


class Tree:
    """A tree that counts its nodes and measures its depth, and whose words are in a tensor beside it."""

    def __init__(self):
        self.parent = None
        self.num_children = 0
        self.children = []
        self.idx = None

    def add_child(self, child):
        child.parent = self
        self.num_children += 1
        self.children.append(child)

    def size(self):
        if getattr(self, "_size", None):
            return self._size
        count = 1
        for i in range(self.num_children):
            count += self.children[i].size()
        self._size = count
        return self._size

    def depth(self):
        count = 0
        if self.num_children > 0:
            for i in range(self.num_children):
                count = max(count, self.children[i].depth())
            count += 1
        return count


class ChildSumTreeLSTM(nn.Module):
    def __init__(self, in_dim, mem_dim):
        super().__init__()
        self.in_dim = in_dim
        self.mem_dim = mem_dim
        self.ioux = nn.Linear(self.in_dim, 3 * self.mem_dim)
        self.iouh = nn.Linear(self.mem_dim, 3 * self.mem_dim)
        self.fx = nn.Linear(self.in_dim, self.mem_dim)
        self.fh = nn.Linear(self.mem_dim, self.mem_dim)

    def node_forward(self, inputs, child_c, child_h):
        child_h_sum = torch.sum(child_h, dim=0, keepdim=True)
        iou = self.ioux(inputs) + self.iouh(child_h_sum)
        i, o, u = torch.split(iou, iou.size(1) // 3, dim=1)
        i, o, u = F.sigmoid(i), F.sigmoid(o), F.tanh(u)
        f = F.sigmoid(self.fh(child_h) + self.fx(inputs).repeat(len(child_h), 1))
        fc = torch.mul(f, child_c)
        c = torch.mul(i, u) + torch.sum(fc, dim=0, keepdim=True)
        h = torch.mul(o, F.tanh(c))
        return c, h

    def forward(self, tree, inputs):
        for idx in range(tree.num_children):
            self.forward(tree.children[idx], inputs)
        if tree.num_children == 0:
            child_c = inputs[0].detach().new(1, self.mem_dim).fill_(0.0).requires_grad_()
            child_h = inputs[0].detach().new(1, self.mem_dim).fill_(0.0).requires_grad_()
        else:
            child_c, child_h = zip(*map(lambda x: x.state, tree.children))  # noqa: B905, C417 - as it is written there
            child_c, child_h = torch.cat(child_c, dim=0), torch.cat(child_h, dim=0)
        tree.state = self.node_forward(inputs[tree.idx], child_c, child_h)
        return tree.state


class Similarity(nn.Module):
    def __init__(self, mem_dim, hidden_dim, num_classes):
        super().__init__()
        self.wh = nn.Linear(2 * mem_dim, hidden_dim)
        self.wp = nn.Linear(hidden_dim, num_classes)

    def forward(self, lvec, rvec):
        mult_dist = torch.mul(lvec, rvec)
        abs_dist = torch.abs(torch.add(lvec, -rvec))
        vec_dist = torch.cat((mult_dist, abs_dist), 1)
        out = F.sigmoid(self.wh(vec_dist))
        return F.log_softmax(self.wp(out), dim=1)


class SimilarityTreeLSTM(nn.Module):
    """Relatedness of two sentences: two trees, two tensors of words, states on the nodes."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D, padding_idx=0, sparse=False)
        self.childsumtreelstm = ChildSumTreeLSTM(D, H)
        self.similarity = Similarity(H, 4, CLASSES)

    def forward(self, ltree, linputs, rtree, rinputs):
        linputs = self.emb(linputs)
        rinputs = self.emb(rinputs)
        _, lhidden = self.childsumtreelstm(ltree, linputs)
        _, rhidden = self.childsumtreelstm(rtree, rinputs)
        return self.similarity(lhidden, rhidden)


class Phrase:
    """A node of a sentiment treebank."""

    def __init__(self, label, word=None):
        self.label = label
        self.word = word
        self.parent = None
        self.left = None
        self.right = None
        self.isLeaf = False


class RNTN(nn.Module):
    """The recursive neural tensor network, with a softmax at every node; the result is that of the root."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, H)
        self.V = nn.ParameterList([nn.Parameter(torch.randn(2 * H, 2 * H) * 0.1) for _ in range(H)])
        self.W = nn.Parameter(torch.randn(H, 2 * H) * 0.3)
        self.b = nn.Parameter(torch.randn(1, H) * 0.1)
        self.W_out = nn.Linear(H, CLASSES)

    def tree_propagation(self, node):
        if node.isLeaf:
            current = self.embed(torch.LongTensor([node.word]))
        else:
            left, right = self.tree_propagation(node.left), self.tree_propagation(node.right)
            concated = torch.cat([left, right], 1)
            xVx = []
            for _, v in enumerate(self.V):
                v = torch.matmul(torch.matmul(concated, v), concated.transpose(0, 1))
                xVx.append(v)
            xVx = torch.cat(xVx, 1)
            Wx = torch.matmul(self.W, concated.transpose(0, 1)).view(1, -1)
            current = F.tanh(xVx + Wx + self.b)
        return current

    def forward(self, root):
        return F.log_softmax(self.W_out(self.tree_propagation(root)), 1)


class AttentiveTreeLSTM(nn.Module):
    """Attention over the children by torch.stack and torch.bmm."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.W_iou = nn.Linear(D, 3 * H, bias=False)
        self.U_iou = nn.Linear(H, 3 * H)
        self.W_f = nn.Linear(D, H)
        self.U_f = nn.Linear(H, H, bias=False)
        self.query = nn.Linear(D, H)
        self.norm = nn.LayerNorm(H)

    def attend(self, query, hs):
        keys = torch.stack(hs, dim=1)  # 1 x children x H
        scores = torch.bmm(keys, query.unsqueeze(2)).squeeze(2) / H**0.5
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1)

    def forward(self, node):
        x = self.embedding(torch.tensor([node.word], dtype=torch.long))
        iou = self.W_iou(x)
        c_sum = torch.zeros(1, H)
        if len(node.children) > 0:
            states = [self.forward(child) for child in node.children]
            hs = [h for h, _ in states]
            iou = iou + self.U_iou(self.attend(self.query(x), hs))
            for h, c in states:
                c_sum = c_sum + torch.sigmoid(self.W_f(x) + self.U_f(h)) * c
        i, o, u = torch.chunk(iou, 3, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + c_sum
        h = self.norm(torch.sigmoid(o) * torch.tanh(c))
        return h, c


class Reduce(nn.Module):
    """SPINN's composition of two halves of a stack's rows, and a tracker's vector."""

    def __init__(self, size, tracker_size):
        super().__init__()
        self.left = nn.Linear(size, 5 * size)
        self.right = nn.Linear(size, 5 * size, bias=False)
        self.track = nn.Linear(tracker_size, 5 * size, bias=False)

    def forward(self, left_in, right_in, tracking):
        left_h, left_c = torch.chunk(left_in, 2, 1)
        right_h, right_c = torch.chunk(right_in, 2, 1)
        lstm_in = self.left(left_h)
        lstm_in += self.right(right_h)
        lstm_in += self.track(tracking)
        a, i, f1, f2, o = lstm_in.chunk(5, 1)
        c = a.tanh() * i.sigmoid() + f1.sigmoid() * left_c + f2.sigmoid() * right_c
        h = o.sigmoid() * c.tanh()
        return torch.cat((h, c), 1)


class SPINN(nn.Module):
    """The recursive form of it: words are projected to (h, c), pairs are reduced."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.projection = nn.Linear(D, 2 * H)
        self.embed_bn = nn.BatchNorm1d(2 * H)
        self.reduce = Reduce(H, 3)
        self.tracker = nn.Parameter(torch.randn(1, 3))
        self.mlp = nn.Sequential(nn.Linear(4 * H, 8), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(8, CLASSES))

    def encode(self, tree):
        if tree.isLeaf:
            return self.embed_bn(self.projection(self.embed(torch.tensor([tree.word]))))
        return self.reduce(self.encode(tree.left), self.encode(tree.right), self.tracker)

    def forward(self, premise, hypothesis):
        prem = self.encode(premise)[:, :H]
        hypo = self.encode(hypothesis)[:, :H]
        return self.mlp(torch.cat([prem, hypo, prem - hypo, prem * hypo], 1))


class TreeAttention(nn.Module):
    """A transformer's block over a node and its children, with several heads."""

    def __init__(self):
        super().__init__()
        self.dim, self.heads = 8, 2
        self.embed = nn.Embedding(V, self.dim)
        self.qkv = nn.Linear(self.dim, 3 * self.dim)
        self.proj = nn.Linear(self.dim, self.dim)
        self.norm1, self.norm2 = nn.LayerNorm(self.dim), nn.LayerNorm(self.dim)
        self.mlp = nn.Sequential(nn.Linear(self.dim, 16), nn.GELU(), nn.Linear(16, self.dim))

    def forward(self, node):
        x = self.embed(torch.tensor([node.word]))
        if node.children:
            x = torch.cat([x] + [self(c).unsqueeze(0) for c in node.children], dim=0)
        n = x.shape[0]
        q, k, v = self.qkv(self.norm1(x)).view(n, 3, self.heads, self.dim // self.heads).permute(1, 2, 0, 3)
        att = torch.softmax(q @ k.transpose(-2, -1) * (self.dim // self.heads) ** -0.5, dim=-1)
        y = (att @ v).transpose(0, 1).reshape(n, self.dim)
        x = x + self.proj(y)
        x = x + self.mlp(self.norm2(x))
        return x[0]


class RecursiveAutoencoder(nn.Module):
    """Encoding and the error of reconstruction, summed on the way up."""

    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(V, H)
        self.encoder = nn.Linear(2 * H, H)
        self.decoder = nn.Linear(H, 2 * H)

    def forward(self, node):
        if node.left is None and node.right is None:
            return self.embeddings(torch.tensor(node.word)), torch.tensor(0.0)
        left, left_loss = self.forward(node.left)
        right, right_loss = self.forward(node.right)
        children = torch.cat((left, right), dim=-1)
        code = torch.tanh(self.encoder(children))
        code = code / torch.norm(code, p=2)
        reconstructed = self.decoder(code)
        return code, left_loss + right_loss + 0.5 * F.mse_loss(reconstructed, children)
