"""The grammar of random user programs, as texts with gaps.

`<V>` is filled with an expression of that type, about the node `node` or, in `<V:c>`, about `c`; `<_>` is the node
itself. `<+V>` is a new variable of the type, `<=V>` one that exists, `<~a>` a new name that only this text uses, and
`<body>` some statements. Types: V a vector, N a number of fields, B a truth value of fields, I an index of words, L a
list of nodes, M a list of vectors, R the result for another node.
"""

from __future__ import annotations

EXPRESSIONS: dict[str, list[str]] = {
    "V": [
        "<emb>", "<emb>", "<b>", "<_>.x", "<matrix>", "<matrix>", "<tanh>(<V>)", "<sigmoid>(<V>)", "<V> + <V>",
        "<V> - <V>", "<V> * <V>", "<V> * <N>", "<N> * <V>", "<V> / <_>.size", "0.5 * <V>", "-<V>", "(<V> if <B> else <V>)",
        "<relu>(<V>)", "<maximum>(<V>, <V>)", "<V> + <N>", "<abs>(<V>)", "<join>", "<fold>", "<fold>", "<fold>",
        "squash(<V>)", "mix(<V>, <V>)", "mix(<V>, <V>, by=<N>)", "mix(*[<V>, <V>], 0.25)", "scaled(<V>, k=<_>.k, size=<_>.size)",
        "{'a': <V>, 'b': <V>}.get(<_>.tag, <V>)", "[<V>, <V>][int(<B>)]", "(lambda v: v * 0.5 + v)(<V>)",
        "(<V>, <V>)[<_>.k % 2]", "<V> - (<V> if <_>.opt is None else <_>.opt * <V>)", "weighted(<_>, <V>)",
        "1 - <V>", "<V> ** 2", "<V> @ <V> * <V>",
    ],
    "N": [
        "<_>.s", "<_>.k / 4", "(<_>.t - T0) / 86400", "<_>.k ** 2 / 16", "1 / <_>.size", "<_>.size ** 0.5 / 3",
        "<_>.big % 7 / 7", "(<_>.big - 2**40) / 2**40", "<_>.t // 3600 % 24 / 24", "1 - <_>.s", "abs(<_>.s)",
        "min(<_>.k, 2)", "max(<_>.s, 0.0)", "len(<_>.children) / 4", "len(<_>.text) / 5", "len(<_>.tokens) / 4",
        "sum(c.size for c in <_>.children) / 20", "max((c.k for c in <_>.children), default=0) / 4", "float(<_>.flag)",
        "int(<_>.s * 4) / 4", "round(<_>.s, 1)", "(1 if <B> else 2)", "divmod(<_>.t, 60)[1] / 60", "(<_>.opt or 0.5)",
        "getattr(<_>, 'extra', 0.25)", "math.sqrt(<_>.size) / 3", "math.log1p(<_>.k)", "-<N>", "<N> * <N>",
        "(<N> - <N>)", "0.5", "2", "ORDER[<_>.tag]", "RATE.get(<_>.text, 0.1)", "(<_>.k & 3)", "(<_>.k % 3 - 1)",
        "<_>.x.shape[0] / 4", "len(<_>.x) / 4", "1 / <_>.k", "(<_>.flag + 0.5)", "(<_>.k << 1) / 8",
        "(<_>.tokens[0] / 7 if <_>.tokens else 0.0)", "sum(<_>.tokens) / 30", "<_>.degree() / 3",
        "sum(1 for c in <_>.children if c.flag) / 3", "<_>.tokens.count(1) / 3", "TAGS.index(<_>.tag) / 2",
        "below(<_>) / 5", "count(c for c in <_>.children if <B:c>) / 3", "age(<_>)", "age(<_>, unit=60.0) / 3000",
        "(0 if <_>.parent is None else <_>.parent.k) / 4", "ups(<_>) / 4", "place(<_>) / 4", "(<_>.s < 0) * 0.5",
        "(<_>.size - <_>.k) / 5", "<_>.size / (<_>.k + 1) / 5", "pow(<_>.s, 2)", "<_>.t / T0", "(<_>.t - T0) * 1e-5",
        "bool(<_>.children) * 1.5", "min(c.s for c in <_>.children)", "len(set(<_>.tokens)) / 3", "int(<B>)",
    ],
    "B": [
        "<_>.tag == 'a'", "<_>.tag != 'b'", "<_>.k > 2", "<_>.s < 0", "<_>.flag", "not <_>.flag", "not <_>.children",
        "len(<_>.children) > 1", "len(<_>.children) == 2", "<_>.tag in ('a', 'c')", "isinstance(<_>, Leaf)",
        "isinstance(<_>, (Leaf, Call))", "type(<_>) is Call", "hasattr(<_>, 'extra')",
        "any(c.tag == 'a' for c in <_>.children)", "all(c.k > 0 for c in <_>.children)", "<_>.text.startswith('n')",
        "<_>.left is None", "<_>.right is not None", "<_>.word % 2 == 0", "0 < <_>.k < 3", "(<_>.k == 0 or <_>.size / <_>.k > 2)",
        "<_>.opt is None", "<_>.opt", "<_>.parent is None", "(<_>.parent is not None and <_>.parent.children[0] is <_>)",
        "<_>.left is <_>.right", "(<B> and <B>)", "(<B> or <B>)", "<_>.t > T0 + 90000", "<_>.big % 2 == 1",
        "<_>.size > <_>.k", "1 in <_>.tokens", "<_>.tokens", "<_>.text in VOCAB", "<_>.s > <_>.k / 4", "bool(<_>.children)",
        "<_>.text > 'm'", "len(<_>.text) == 2", "[c.tag for c in <_>.children] == ['a', 'b']", "<_>.tag + 'x' == 'ax'",
        "len({c.tag for c in <_>.children}) == 1", "f'{<_>.tag}{<_>.k}' in ('a1', 'b2', 'c3')", "<_>.degree() > 2",
        "(<_>.parent is not None and <_>.parent.tag == <_>.tag)", "<_>.__class__.__name__ == 'Leaf'", "<_>.k is None",
        "(<_> in <_>.parent.children if <_>.parent else <_>.flag)", "not (<B>)", "<_>.tag is 'a' or <_>.k == 1",
    ],
    "I": [
        "<_>.word", "<_>.word", "(<_>.word + 1) % 7", "VOCAB[<_>.text]", "VOCAB.get(<_>.text, 0)", "min(<_>.k, 6)",
        "len(<_>.children) % 7", "min(len(<_>.children), 6)", "TAGS.index(<_>.tag)", "<_>.t % 7", "<_>.big % 7",
        "int(<_>.flag)", "(0 if <B> else 3)", "(<_>.tokens[0] if <_>.tokens else 0)", "abs(<_>.word - 3)", "ORDER[<_>.tag]",
        "2", "(<_>.t - T0) // 50000", "max(<_>.word, <_>.k)", "<_>.word ^ 1 if <_>.word < 6 else 6", "VOCAB[<_>.tag + '!']",
    ],
    "L": [
        "<_>.children", "<_>.children", "<_>.children", "<_>.children", "<_>.children[1:]", "<_>.children[:2]",
        "<_>.children[::-1]", "sorted(<_>.children, key=lambda c: c.word)", "[c for c in <_>.children if <B:c>]",
        "list(filter(lambda c: <B:c>, <_>.children))", "sorted(<_>.children, key=lambda c: (c.tag, -c.k), reverse=True)",
        "tuple(<_>.children)", "list(reversed(<_>.children))", "[c for c in (<_>.left, <_>.right) if c is not None]",
        "<_>.children[-2:]", "[*<_>.children]", "<_>.children + <_>.children[:1]", "<_>.children[1:-1]",
    ],
    "M": [
        "[<R:c> for c in <L>]", "[<R:c> for c in <L>]", "[<R:c> for c in <_>.children]", "[<R:c> * <N:c> for c in <L>]",
        "[<R:c> for c in <L> if <B:c>]", "list(map(lambda c: <R:c>, <L>))", "[<V:c> for c in <L>]", "list(<each>(<_>, <m>))",
        "[<R:c> + <V> for c in <L>]", "[mix(<R:c>, <V>, i / 4) for i, c in enumerate(<L>)]",
        "[h * <N:c> for c, h in zip(<L>, [<R:c> for c in <L>])]", "[<emb_at> for i in <_>.tokens]", "[<V>] + [<R:c> for c in <L>]",
    ],
    "fold": [
        "sum(<M>, <zeros>)", "sum((<R:c> for c in <L>), <zeros>)", "total(<M>)", "average(<M>)", "largest(<M>)",
        "functools.reduce(lambda a, b: a * 0.5 + b, <M>, <zeros>)", "sum((<R:c> * <N:c> for c in <L>), <V>)",
        "last(<M>, <V>)", "attend(<M>, <V>)", "sum((h / (i + 1) for i, h in enumerate(<M>)), <zeros>)", "<reduced>", "<reduced>",
        "first(<M>) + <V>", "(<M> or [<V>])[0]", "spread(<M>)",
    ],
}  # fmt: skip

TERMINALS: dict[str, list[str]] = {
    "V": ["<emb>", "<b>", "<_>.x"], "N": ["<_>.s", "<_>.k / 4", "0.5", "1 / <_>.size"], "B": ["<_>.flag", "<_>.tag == 'a'"],
    "I": ["<_>.word", "<_>.word", "1"], "L": ["<_>.children"], "M": ["[<R:c> for c in <_>.children]"], "fold": ["<b>"],
}  # fmt: skip

STATEMENTS: list[str] = [
    "<+V> = <V>", "<+V> = <V>", "<=V> = <V>", "<=V> = <=V> + <V>", "<+M> = <M>", "<+V> = <fold>", "<+N> = <N>", "<=V> += <V>",
    "<+V>, <+V> = <V>, <V>", "<+B> = <B>",
    "if <B>:\n    <=V> = <V>\nelse:\n    <=V> = <V>", "if <B>:\n    return <RESULT>", "if <B>:\n    <body>",
    "if <B>:\n    <body>\nelif <B>:\n    <body>",
    "<+V> = <zeros>\nfor c in <L>:\n    <+V> = <=V> + <R:c>",
    "<~a> = <zeros>\nfor c in <L>:\n    <~a> = <~a> + <R:c> * <N:c>\n<+V> = <~a>",
    "<~a>, <~n> = <zeros>, 0\nfor c in <L>:\n    if <B:c>:\n        continue\n    <~a> = <~a> + <R:c>\n    <~n> += 1\n<+V> = <~a> / (<~n> + 1)",
    "<~a> = <V>\nfor c in <L>:\n    if <B:c>:\n        break\n    <~a> = <~a> * 0.5 + <R:c>\n<+V> = <~a>",
    "<~a> = <V>\nfor <~i>, c in enumerate(<L>):\n    <~a> = <~a> + (<~i> + 1) / 4 * <R:c>\n<+V> = <~a>",
    "<~a> = <V>\nfor <~i> in range(len(<_>.children)):\n    c = <_>.children[<~i>]\n    <~a> = <~a> - <R:c> / (<~i> + 2)\n<+V> = <~a>",
    "<~a> = []\nfor c in <L>:\n    <~a>.append(<R:c>)\n    if len(<~a>) == 2:\n        break\n<+M> = <~a>",
    "<~d> = {}\nfor c in <L>:\n    <~d>[c.tag] = <~d>.get(c.tag, <zeros>) + <R:c>\n<+V> = sum((<~d>[t] * (i + 1) for i, t in enumerate(sorted(<~d>))), <zeros>)",
    "<~d> = {'h': <V>, 'n': <N>}\nif <B>:\n    <~d>['h'] = <~d>['h'] * <~d>['n']\n<~d>.update(n=2)\n<+V> = <~d>['h'] / <~d>['n']",
    "<~p> = Pair(<V>, <N>)\nif <B>:\n    <~p> = <~p>._replace(n=<N>)\n<+V> = <~p>.h * <~p>.n",
    "<~a> = Sum(<zeros>)\nfor c in <L>:\n    <~a>.add(<R:c>)\n<+V> = <~a>.mean()",
    "<~a> = Sum(<V>)\n<~b> = <~a>\n<~b>.add(<V>)\n<+V> = <~a>.value / <~a>.n",
    "<~n> = 0\ndef <~f>(v, by=<N>):\n    nonlocal <~n>\n    <~n> += 1\n    return v * by / <~n>\n<+V> = <~f>(<V>) + <~f>(<V>, 0.5)",
    "<~n> = [0]\ndef <~f>(c):\n    <~n>[0] += 1\n    return <R:c> * <~n>[0]\n<~a> = [<~f>(c) for c in <L>]\n<+V> = sum(<~a>, <zeros>) / (<~n>[0] + 1)",
    "try:\n    <+N> = <_>.size / <_>.k / 4\nexcept ZeroDivisionError:\n    <+N> = 0.75",
    "try:\n    <+V> = <emb_of>(VOCAB[<_>.text])\nexcept KeyError:\n    <+V> = <V>",
    "try:\n    <~c> = <_>.children[1]\nexcept IndexError:\n    <+V> = <V>\nelse:\n    <+V> = <R:<~c>>",
    "try:\n    <+N> = <_>.extra\nexcept AttributeError:\n    <+N> = 0.25\nfinally:\n    <=V> = <=V> * 0.5",
    "match <_>.tag:\n    case 'a':\n        <+V> = <V>\n    case 'b' | 'z':\n        <+V> = <V>\n    case _:\n        <+V> = <V>",
    "match <_>:\n    case Leaf(word=0):\n        <+V> = <V>\n    case Call(flag=True) | Leaf():\n        <+V> = <V>\n    case _:\n        <+V> = <V>",
    "match <_>.children:\n    case []:\n        <+V> = <V>\n    case [c]:\n        <+V> = <R:c>\n    case [c, *<~r>]:\n        <+V> = <R:c> * len(<~r>)",
    "<~p>, <~n> = <_>, 0\nwhile <~p>.parent is not None and <~n> < 4:\n    <~p>, <~n> = <~p>.parent, <~n> + 1\n<+N> = <~n> / 4",
    "<~a>, *<~r> = [<R:c> for c in <L>] or [<V>]\n<+V> = <~a> + len(<~r>) * <V>",
    "if (<~n> := len(<_>.children)) > 1:\n    <=V> = <=V> / <~n>",
    "<~v> = <V>\n<~w> = <~v>\n<~v> = <~v> + <V>\n<+V> = <~v> * <~w>",
    "<~m> = <M>\n<~m>.reverse()\n<+V> = <~m>.pop() if <~m> else <V>",
    "<~m> = <M>\n<~m>.insert(0, <V>)\n<+V> = <~m>[-1] - <~m>[0] / len(<~m>)",
    "<~a> = <V>\nfor i in <_>.tokens:\n    <~a> = <~a> * 0.5 + <emb_at>\n<+V> = <~a>",
    "<~a> = iter(<_>.children)\n<~b> = next(<~a>, None)\n<+V> = <V> if <~b> is None else <R:<~b>>",
    "<~a> = <V>\nfor c, d in zip(<_>.children, <_>.children[1:]):\n    <~a> = <~a> + <R:c> * <R:d>\n<+V> = <~a>",
    "<~k> = <L>\n<~a> = max(<~k>, key=lambda c: c.k) if <~k> else None\n<+V> = <V> if <~a> is None else <R:<~a>>",
    "<~s> = set()\n<~a> = <V>\nfor c in <L>:\n    if c.tag not in <~s>:\n        <~s>.add(c.tag)\n        <~a> = <~a> + <R:c>\n<+V> = <~a> / (1 + len(<~s>))",
    "<~a> = <V>\nfor c in <_>.children:\n    <~a> = <~a> + (<R:c> if c is <_>.children[-1] else <V:c>)\n<+V> = <~a>",
    "<~a> = <zeros>\n<~b> = <zeros>\nfor c in <_>.children:\n    <~a>, <~b> = <~b> + <R:c>, <~a>\n<+V> = <~a> - <~b>",
    "with contextlib.suppress(ZeroDivisionError):\n    <=V> = <=V> / <_>.k",
    "<~g> = (<R:c> for c in <L>)\n<~a> = next(<~g>, <V>)\n<+V> = <~a> + sum(<~g>, <zeros>) * 0.5",
    "<~a> = list(itertools.accumulate(<M>, lambda a, b: a * 0.5 + b))\n<+V> = <~a>[-1] if <~a> else <V>",
    "<+V> = <fold>\nassert <=V>.shape == (H,)",
    "<~a> = <V>\n<~a> += <V>\n<~a> *= 0.5\n<+V> = <~a>",
    "<~v> = <V>\n<+V> = <~v> * <~v>.shape[0] / len(<~v>)",
    "<~a> = defaultdict(list)\nfor c in <L>:\n    <~a>[<B:c>].append(<R:c>)\n<+V> = sum(<~a>[True], <zeros>) - sum(<~a>[False], <zeros>)",
    "<~i> = 0\n<~a> = <V>\nwhile <~i> < len(<_>.children):\n    c = <_>.children[<~i>]\n    <~a> = <~a> * <N:c> + <R:c>\n    <~i> += 1\n<+V> = <~a>",
    "<~a> = [c.k for c in <_>.children]\n<+N> = (sum(<~a>) / len(<~a>) if <~a> else 1.0) / 3",
    "def <~f>(c, deep=True):\n    if not deep:\n        return <V:c>\n    for d in c.children:\n        return <~f>(d, False)\n    return <V>\n<+V> = <~f>(<_>)",
    "<~a> = <V>\nfor c in <_>.children:\n    for d in c.children:\n        <~a> = <~a> + <V:d>\n<+V> = <~a>",
    "<~k> = <_>.children\nif <~k> and <~k>[0] is <~k>[-1]:\n    <=V> = <=V> - <V>",
    "<~o> = [<V> for _ in range(2)]\n<~q> = <~o>\n<~q>[0] = <V>\n<+V> = <~o>[0] - <~o>[1]",
]

HELPERS = '''
VOCAB = {"and": 1, "bread": 2, "no": 3, "note": 4, "x": 5, "a!": 0, "b!": 6, "c!": 2}
ORDER = {"a": 2, "b": 0, "c": 1}
RATE = {"no": 0.75, "x": 1.5}
Pair = namedtuple("Pair", "h n")


class Sum:
    """A sum, and how many there are in it."""

    def __init__(self, start):
        self.value, self.n = start, 0

    def add(self, v):
        self.value = self.value + v
        self.n += 1

    def mean(self):
        return self.value / max(self.n, 1)


def squash(v):
    return v * 0.5 - 0.25


def mix(a, b, by=0.5):
    return a * by + b * (1 - by)


def scaled(v, **options):
    return v * (options["k"] + 1) / options.get("size", 1)


def weighted(n, v):
    if n.flag:
        return v
    return v * 0.5 if n.k > 1 else v - 0.5


def below(n):
    return 1 + max((below(c) for c in n.children), default=0)


def count(items):
    return sum(1 for _ in items)


def age(n, since=T0, unit=86400.0):
    return (n.t - since) / unit


def ups(n):
    return 0 if n.parent is None or n.parent.parent is None else 1 + ups(n.parent)


def place(n):
    return 0 if n.parent is None else n.parent.children.index(n)


def total(vs):
    out = <zeros>
    for v in vs:
        out = out + v
    return out


def average(vs):
    return total(vs) / max(len(vs), 1)


def last(vs, otherwise):
    return vs[-1] if vs else otherwise


def first(vs):
    for v in vs:
        return v
    return <zeros>


def largest(vs):
    best = None
    for v in vs:
        best = v if best is None else <maximum>(best, v)
    return <zeros> if best is None else best


def spread(vs):
    return sum((a - b for a, b in zip(vs, vs[1:])), <zeros>)


def each(n, <m>):
    for c in n.children:
        if c.k != 1:
            yield <R:c>


def attend(vs, q):
    if not vs:
        return q
    scores = <softmax_of>
    return sum((a * v for a, v in zip(scores, vs)), <zeros>)
'''

NUMPY: dict[str, list[str]] = {
    "m": ["w"], "zeros": ["cortex.zeros(H)"], "emb": ["w.emb[<I>]", "cortex.embedding(w.emb, <I>)"], "emb_at": ["w.emb[i]"],
    "emb_of": ["w.emb.__getitem__"], "b": ["w.b", "w.q"], "matrix": ["w.U @ <V>", "w.P @ cortex.concat([<V>, <V>])"],
    "tanh": ["cortex.tanh"], "sigmoid": ["cortex.sigmoid"], "relu": ["cortex.relu"], "maximum": ["cortex.maximum"],
    "abs": ["cortex.abs", "abs"], "join": ["w.P @ cortex.concat([<V>, <V>])", "cortex.stack([<V>, <V>])[0]", "cortex.split(w.P.T @ <V>, 2)[1]"],
    "reduced": [
        "cortex.sum(<R:c> for c in <L>)", "cortex.sum([<R:c> for c in <L>])", "cortex.mean(<R:c> for c in <L>)",
        "cortex.max(<R:c> for c in <L>)", "cortex.sum(<M>)", "cortex.sum(<R:c> * <N:c> for c in <L>)",
        "cortex.sum(a * <R:c> for a, c in zip(cortex.softmax(w.q @ <R:c> for c in <_>.children), <_>.children))",
        "cortex.sum(<V:c> for c in <L> if <B:c>)", "cortex.max(<M>)",
    ],
    "each": ["each"], "softmax_of": ["cortex.softmax([q @ v for v in vs])"],
}  # fmt: skip

TORCH: dict[str, list[str]] = {
    "m": ["self"], "zeros": ["torch.zeros(H)"], "emb": ["self.emb(torch.tensor(<I>))", "self.emb.weight[<I>]"],
    "emb_at": ["self.emb(torch.tensor(i))"], "emb_of": ["self.emb.weight.__getitem__"], "b": ["self.b", "self.q"],
    "matrix": ["self.U(<V>)", "self.P(torch.cat([<V>, <V>]))"], "tanh": ["torch.tanh"], "sigmoid": ["torch.sigmoid"],
    "relu": ["torch.relu"], "maximum": ["torch.maximum"], "abs": ["torch.abs", "abs"],
    "join": ["self.P(torch.cat([<V>, <V>]))", "torch.stack([<V>, <V>]).mean(0)", "self.U2(<V>).chunk(2)[1]",
             "torch.zeros_like(<V>) + <V>", "self.cell((<V>)[None], (<V>)[None])[0]", "(<V>).clone()", "self.units[<_>.tag](<V>)",
             "(<V>).new_ones(H) * <V>", "self.U(<V>).view(-1)", "torch.where(<V> > 10, <V>, <V>)"],
    "reduced": ["torch.stack(<M> or [<V>]).sum(0)", "torch.stack([<V>, *<M>]).mean(dim=0)", "torch.stack([<V>, *<M>]).max(0).values",
                "torch.cat([<V>, *<M>]).view(-1, H).sum(0)", "torch.stack([<R:c> for c in <L>]).sum(0)"],
    "each": ["each"], "softmax_of": ["torch.softmax(torch.stack([q @ v for v in vs]), 0)"],
}  # fmt: skip
