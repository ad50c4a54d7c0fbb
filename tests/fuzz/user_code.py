"""Random user programs as source text: model functions on NumPy, and torch modules."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

FrontEnd = Literal["function", "module"]
GAP = re.compile(r"<([A-Za-z_]\w*)(?::(\w+))?>")
OPERATORS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda)

_SECTIONS = dict(
    part.split("\n", 1) for part in (Path(__file__).parent / "user_code.grammar").read_text().split("\n=== ")[1:]
)


def _rules(part: str) -> dict[str, list[str]]:
    """The rules of a part of the grammar."""
    found = [(title.split(), text) for title, text in _SECTIONS.items()]
    return {title[1]: text.strip("\n").split("\n") for title, text in found if title[0] == part}


EXPRESSIONS, TERMINALS = _rules("expression"), _rules("terminal")
NUMPY, TORCH = _rules("function"), _rules("module")
STATEMENTS, HELPERS = _SECTIONS["statement"].strip("\n").split("\n\n"), "\n" + _SECTIONS["helpers"]

IMPORTS = '''"""A random program: seed {seed}."""

import contextlib
import functools
import itertools
import math
from collections import defaultdict, namedtuple
from dataclasses import dataclass

from user_nodes import H, T0, TAGS, WORDS, Call, Inner, Leaf, Node
'''

FUNCTION = """
import cortex
{helpers}

@cortex.model
def f({parameters}):
{body}
"""

MODULE = """
import torch
from torch import nn


@dataclass
class State:
    h: torch.Tensor
    c: torch.Tensor


Named = namedtuple("Named", "h c")
{helpers}

class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(WORDS, H)
        self.b, self.q = nn.Parameter(torch.randn(H) / 2), nn.Parameter(torch.randn(H) / 2)
        self.U, self.P, self.U2 = nn.Linear(H, H), nn.Linear(2 * H, H), nn.Linear(H, 2 * H)
        self.cell = nn.GRUCell(H, H)
        self.units = nn.ModuleDict({{tag: nn.Linear(H, H) for tag in TAGS}})
{body}
"""


@dataclass(frozen=True)
class Program:
    """A program: may its structures share nodes?"""

    seed: int
    front_end: FrontEnd
    text: str
    shares: bool


@dataclass
class Writer:
    """Fills the gaps of texts at random."""

    rng: Random
    rules: dict[str, list[str]]
    result: str
    """The text of what a routine returns."""
    call: str
    """The text of the result for `c`."""
    deepest: int
    """How far expressions are nested."""
    scope: dict[str, list[str]] = field(default_factory=lambda: {"V": [], "N": [], "B": [], "M": []})
    count: int = 0

    def filled(self, text: str, subject: str = "node", depth: int = 0) -> str:
        """`text` without gaps."""
        names: dict[str, str] = {}
        declared: list[tuple[str, str]] = []

        def name(found: re.Match[str]) -> str:
            sign, key = found[1], found[2]
            if found[0] not in names:
                if sign == "=":
                    return self.rng.choice(self.scope[key[0]])
                self.count += 1
                names[found[0]] = f"{key[0].lower()}{self.count}"
                if sign == "+":
                    declared.append((key[0], names[found[0]]))
            return names[found[0]]

        text = re.sub(r"<([+~=])(\w+)>", name, text).replace("<_>", subject)
        text = re.sub(r"^( *)<body>$", lambda found: self.block(found[1], depth + 1), text, flags=re.M)
        text = GAP.sub(lambda found: self.expression(found[1], found[2] or subject, depth), text)
        for kind, new in declared:
            self.scope[kind].append(new)
        return text

    def expression(self, kind: str, subject: str, depth: int) -> str:
        """An expression of a type, or the text that the front end has for a word."""
        if kind == "RESULT":
            return self.filled(self.result, subject, depth + 1)
        if kind == "ALL":  # nothing that was computed is without effect
            parts = [f"{v} * {round(0.6 / (i + 1), 2)}" for i, v in enumerate(self.scope["V"][::-1])]
            parts += [f"{n} * 0.1" for n in self.scope["N"]] + [f"0.2 * {b}" for b in self.scope["B"]]
            parts += [f"len({m}) / 9" for m in self.scope["M"]]
            return " + ".join(parts)
        if kind == "R":
            return re.sub(r"\bNODE\b", subject, self.filled(self.call, "node", self.deepest))
        known = self.scope.get(kind, [])
        if known and subject == "node" and self.rng.random() < (0.35 if kind == "V" else 0.2):
            return self.rng.choice(known[-4:])
        choices = self.rules.get(kind) or (TERMINALS if depth >= self.deepest else EXPRESSIONS)[kind]
        deeper = depth if kind in self.rules else depth + 1
        text = self.filled(self.rng.choice(choices), subject, deeper)
        if kind in EXPRESSIONS and isinstance(ast.parse(text, mode="eval").body, OPERATORS):
            text = f"({text})"
        return text

    def block(self, indent: str, depth: int = 0, least: int = 1, most: int = 2) -> str:
        """Statements; what they define is forgotten after them."""
        outer = {kind: list(names) for kind, names in self.scope.items()}
        lines: list[str] = []
        for _ in range(self.rng.randint(least, most)):
            lines += self.filled(self.rng.choice(STATEMENTS), depth=depth).split("\n")
        self.scope = outer
        return "\n".join(indent + line for line in lines)

    def routine(self, head: str, last: str, **scope: list[str]) -> str:
        """A function or method: statements and its end; `scope` has its parameters."""
        self.scope = {kind: list(scope.get(kind, [])) for kind in self.scope}
        lines = [self.filled("<+V> = <V>")]
        lines += self.filled(self.rng.choice(RECURSIVE if self.rng.random() < 0.8 else STATEMENTS)).split("\n")
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2))):
            lines += self.filled(self.rng.choice(STATEMENTS)).split("\n")
        lines += self.filled(last).split("\n")
        return "\n".join([head, *(f"    {line}" for line in lines)])


RECURSIVE = [text for text in STATEMENTS if re.search("<R:|<fold>|<M>", text)]
END = ["<tanh>(<ALL>)", "0.5 * (<ALL>)", "<tanh>(<ALL>) * 0.5 + 0.2 * <=V>"]
EARLY = ["<tanh>(<V> + <=V>)", "0.3 * (<V> + <=V>)"]
FORMS: dict[str, dict[str, tuple[str, str]]] = {
    "function": {
        "bare": ("{0}", ""), "tuple": ("({0}, {1})", "[0]"), "state": ("cortex.state(h={0}, c={1})", ".h"),
    },
    "module": {
        "bare": ("{0}", ""), "tuple": ("({0}, {1})", "[1]"), "dict": ("{{'h': {0}, 'c': {1}}}", "['h']"),
        "named": ("Named({0}, {1})", ".c"), "dataclass": ("State(h={0}, c={1})", ".h"),
    },
}  # fmt: skip


def program(seed: int, deepest: int = 1) -> Program:
    """The program of a seed; expressions in it are nested up to `deepest` times."""
    front_end: FrontEnd = "function" if seed % 2 else "module"
    rng = Random(f"program {seed}")
    form = rng.choice(("bare", *FORMS[front_end]))
    result, access = FORMS[front_end][form]
    early, end = result.format(*rng.choices(EARLY, k=2)), result.format(*rng.choices(END, k=2))
    imports = IMPORTS.format(seed=seed)
    if front_end == "function":
        passed = rng.random() < 0.03
        w = Writer(
            rng,
            NUMPY | {"END": [end]},
            early,
            "f(NODE, w, depth + 1)" + access if passed else f"f(NODE, w){access}",
            deepest,
        )
        helpers = _helpers(w)
        parameters = "node, w, depth=0" if passed else "node, w"
        known = {"N": ["depth"]} if passed else {}
        text = w.routine("", "return <END>", **known).removeprefix("\n")
        text = imports + FUNCTION.format(helpers=helpers, parameters=parameters, body=text)
        return Program(seed, front_end, _pruned(text), shares=not passed)
    style = rng.choice(("forward", "forward", "encode", "passed", "stored", "memo"))
    passed = "self.visit(NODE, <V>, depth + 1)" if rng.random() < 0.3 else "self.visit(NODE, <V>)"
    calls = {"forward": "self(NODE)", "encode": "self.encode(NODE)", "memo": "self.encode(NODE, known)",
             "passed": passed, "stored": "NODE.h"}  # fmt: skip
    w = Writer(rng, TORCH | {"END": [end]}, early, calls[style] + ("" if style == "stored" else access), deepest)
    helpers = _helpers(w, without_calls=style in ("passed", "memo"))
    text = imports + MODULE.format(helpers=helpers, body=_indented(_methods(w, style, access)))
    return Program(seed, front_end, _pruned(text), shares=style not in ("stored", "memo"))


def _methods(w: Writer, style: str, access: str) -> list[str]:
    """The methods of a module in one of the styles."""
    match style:
        case "forward":
            return [w.routine("def forward(self, node):", "return <END>")]
        case "encode":
            inner = w.routine("def encode(self, node):", "return <END>")
            head = [f"def forward(self, node):\n    return self.U(self.encode(node){access})"]
            both = [f"def forward(self, node):\n    out = self.encode(node)\n    return out, self.b * out{access}"]
            return [inner, *w.rng.choice((head, both))]
        case "memo":
            first = "if node in known:\n    return known[node]"
            inner = w.routine("def encode(self, node, known):", "known[node] = <END>\nreturn known[node]")
            inner = inner.replace("\n", f"\n    {first.replace(chr(10), chr(10) + '    ')}\n", 1)
            return [inner, "def forward(self, node):\n    return self.encode(node, {})"]
        case "passed":
            known = {"V": ["above"], "N": ["depth"]}
            inner = w.routine("def visit(self, node, above, depth=0):", "return <END>", **known)
            return [inner, "def forward(self, node):\n    return self.visit(node, torch.zeros(H))"]
        case _:
            return _stored(w)


def _stored(w: Writer) -> list[str]:
    """A pass upwards that stores its result on nodes, and one downwards that may read it."""
    w.result, w.rules = "<tanh>(<V>)", w.rules | {"END": END}
    up = w.routine("def up(self, node):", "node.h = <END>\nreturn node.h")
    up = up.replace("\n", "\n    for c in node.children:\n        self.up(c)\n", 1)
    up = re.sub(r"return (?!node\.h$)(.+)$", r"node.h = \1", up, flags=re.M)  # a result is stored, however it ends
    if w.rng.random() < 0.5:
        return [up, "def forward(self, node):\n    self.up(node)\n    return self.U(node.h)"]
    last = "out = 0.5 * (<ALL>)\nfor c in node.children:\n    out = out + self.down(c, <V>)\nreturn out"
    w.result = "<V>"
    down = w.routine("def down(self, node, above):", last, V=["above", "node.h"])
    return [up, down, "def forward(self, node):\n    self.up(node)\n    return self.down(node, self.b)"]


def _indented(methods: list[str]) -> str:
    return "\n" + "\n\n".join("\n".join(f"    {line}" for line in each.split("\n")) for each in methods)


def _helpers(w: Writer, without_calls: bool = False) -> str:
    text = HELPERS
    if without_calls:  # what a helper that calls the model would have to pass is not known there
        text = text.replace("            yield <R:c>", "            yield <b>")
    return w.filled(text)


def _pruned(text: str) -> str:
    """The program without top-level definitions and imports that nothing uses."""
    while True:
        tree = ast.parse(text)
        kept = [s for s in tree.body if not _defines(s) or any(_defines(s) & _uses(t) for t in tree.body if t is not s)]
        if len(kept) == len(tree.body):
            return ast.unparse(tree) + "\n"
        tree.body = kept
        text = ast.unparse(tree)


def _uses(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}


def _defines(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return set() if name in ("f", "Module") else {name}
        case ast.Assign(targets=[ast.Name(id=name)]):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {each.name for each in names}
        case _:
            return set()
