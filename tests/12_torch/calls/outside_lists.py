"""Modules that collect in attributes and global names, written for the header of test_outside.py."""

COLLECTED = {
    "collected": """
def encode(self, node):
    h = self.join(node, [self.encode(c) for c in node.children])
    self.found.append(h)
    return h
def forward(self, node):
    self.found = []
    self.encode(node)
    return torch.stack(self.found).mean(0)
""",
    "growing_list": """
def encode(self, node):
    h, found = self.emb(torch.tensor(node.word)), []
    for child in node.children:
        found += self.encode(child)
    return [h, *found]
def forward(self, node):
    return torch.stack(self.encode(node)).mean(0)
""",
    "bound_anew": """
def encode(self, node):
    h = self.join(node, [self.encode(c) for c in node.children])
    self.found.append(h)
    self.count.append(torch.LongTensor([node.word]))
    return h
def forward(self, node):
    self.found, self.count = [], []
    self.encode(node)
    self.found = torch.stack(self.found)
    self.count = torch.cat(self.count)
    return self.found.mean(0) * self.count.sum()
""",
    "global_list": """
def encode(self, node):
    FOUND.append(self.join(node, [self.encode(c) for c in node.children]))
    return FOUND[-1]
def forward(self, node):
    FOUND.clear()
    self.encode(node)
    return sum(FOUND, torch.zeros(4))
""",
}
"""Lists that forward empties before calls add to them."""
