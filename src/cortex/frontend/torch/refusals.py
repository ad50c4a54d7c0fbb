"""Torch code that cannot be compiled: what the operator is called, why not, and what to write instead."""

from __future__ import annotations

import ast
from typing import Any

import torch
from torch.overrides import resolve_name

from cortex.frontend.spans import running_call

SYMBOLS = {
    "__floordiv__": "//", "__rfloordiv__": "//", "__ifloordiv__": "//=", "__mod__": "%", "__rmod__": "%",
    "__imod__": "%=", "__bool__": "bool()",
    "__int__": "int()", "__float__": "float()", "__complex__": "complex()", "__contains__": "in",
    "__reversed__": "reversed()", "__pow__": "**", "__rpow__": "**", "__getitem__": "x[...]",
    "__setitem__": "x[...] = ...", "__array__": "np.asarray()", "__len__": "len()", "__matmul__": "@",
    "__rmatmul__": "@", "__add__": "+", "__radd__": "+", "__sub__": "-", "__rsub__": "-", "__mul__": "*",
    "__rmul__": "*", "__truediv__": "/", "__rtruediv__": "/", "__rdiv__": "/", "__and__": "&", "__or__": "|",
    "__invert__": "~", "__neg__": "-", "__imatmul__": "@=", "__index__": "operator.index()",
    "__format__": "format()", "__rshift__": ">>", "__lshift__": "<<", "__rrshift__": ">>", "__rlshift__": "<<",
}  # fmt: skip
"""How special methods are written."""

BY_OPERATOR = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "remainder": "%", "floor_divide": "//", "matmul": "@",
    "add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "neg": "-", "bitwise_not": "~",
}  # fmt: skip
"""The functions that torch calls for Python's operators."""

DECIDES = (
    "a computed value cannot decide what the module does: it is compiled before any value is known. Choose between "
    "values with torch.where(condition, x, y); control flow may depend on the structure (node.left is None, "
    "len(node.children), node.op == ...)."
)
PYTHON = (
    "a computed value cannot become a Python number: the module is compiled before any value is known. Keep it a "
    "tensor; numbers and tensors can be mixed, and torch.where(condition, x, y) chooses between values."
)
ARRAY = "a computed value cannot leave torch while the module is compiled. Use functions of torch."
GRADIENTS = "compiled modules compute forward only. Train the module itself, then fast.update(module.state_dict())."
RANDOM = "it draws random numbers, which a compiled module would not. Call module.eval(), or draw them outside."
ORDER = (
    "it orders the elements of a tensor, which has no counterpart here. Where only the largest or smallest is needed, "
    "write x.max(dim) or x.min(dim); else return x and do it to the result."
)
SCAN = "it has no counterpart here. Loop over x.unbind(dim), keep the running value, and torch.stack them."
DYNAMIC = "the shape of its result depends on values. Keep the shape and choose with torch.where(mask, x, 0)."
ROUNDING = (
    "rounding, remainders and whole numbers that are computed have no counterpart here. Compute it when the structure "
    "is made, and read it as a field of the node."
)
WAVES = "sine and cosine have no counterpart here. Compute them when the structure is made: a field of the node."
GRIDS = "convolution and pooling over grids have no counterpart here. Over few positions, write F.linear of torch.cat."
DENSE = "factorizations of matrices have no counterpart here. Compute it outside the module and register a buffer."
CPU = "compiled modules run on the CPU in float32. Leave it out, or write x.to(h.device), x.to(h.dtype)."
MEMORY = "it gives a tensor other memory. Use a new tensor, y = x.view(...), or change the elements: x[...] = value."
PADDED = "every node is computed on its own, so nothing is padded or packed. Stack the children: torch.stack(list)."
FLOATS = (
    "an index must be an integer of a node or a list of them (table[node.word], emb(torch.tensor(node.words))), or a "
    "constant. This one is computed, or its numbers are floats: make them integers when the structure is made."
)

REMEDIES = {
    DECIDES: "__bool__ __contains__ equal allclose is_nonzero",
    PYTHON: "item tolist __int__ __float__ __complex__ __index__ __format__",
    ARRAY: "numpy __array__ cpu_numpy __reduce_ex__ __deepcopy__ save storage untyped_storage data_ptr __dlpack__",
    GRADIENTS: "backward requires_grad_ retain_grad register_hook grad autograd",
    RANDOM: "dropout alpha_dropout dropout1d dropout2d dropout3d feature_dropout feature_alpha_dropout bernoulli "
    "bernoulli_ rand randn randint randperm rand_like randn_like randint_like normal normal_ uniform_ multinomial "
    "gumbel_softmax rrelu exponential_ random_",
    ORDER: "sort argsort topk kthvalue median nanmedian mode quantile nanquantile msort unique unique_consecutive "
    "searchsorted bucketize histc",
    SCAN: "cumsum cumprod cummax cummin logcumsumexp cumulative_trapezoid cumsum_ cumprod_ scatter_add scatter_add_ "
    "index_add index_add_ scatter_reduce",
    DYNAMIC: "nonzero masked_select argwhere unique bincount masked_scatter masked_scatter_ index_put index_put_ "
    "take put_",
    ROUNDING: "floor ceil round trunc frac fmod remainder floor_divide __floordiv__ __rfloordiv__ __ifloordiv__ "
    "__mod__ __rmod__ __imod__ __rlshift__ __rrshift__ __lshift__ __rshift__ floor_ ceil_ round_",
    WAVES: "sin cos tan asin acos atan atan2 sinc sin_ cos_ fft stft polar",
    GRIDS: "conv1d conv2d conv3d conv_transpose1d conv_transpose2d max_pool1d max_pool2d avg_pool1d avg_pool2d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d interpolate unfold fold "
    "grid_sample pixel_shuffle upsample max_pool1d_with_indices max_pool2d_with_indices",
    DENSE: "svd qr inverse det logdet slogdet pinverse cholesky eig eigh solve lstsq matrix_exp lu matrix_power inv "
    "linalg_inv linalg_det linalg_svd linalg_qr linalg_solve linalg_svdvals _linalg_svd linalg_eigvals",
    CPU: "cuda half double bfloat16 to type short char byte cfloat",
    MEMORY: "set_ resize_ resize_as_ as_strided as_strided_",
    PADDED: "pack_padded_sequence pad_packed_sequence _pack_padded_sequence _pad_packed_sequence pad_sequence "
    "pack_sequence to_padded_tensor",
}

OTHERWISE = (
    "it has no counterpart here. Write it with arithmetic, matrix products, reductions over dimensions, torch.cat, "
    "torch.where and the activations, or do it to the result of the compiled module."
)


class Unsupported(Exception):
    """An operator is known, but not with these arguments; the message says what is accepted."""


class NoRule(Unsupported):
    """There is no rule for an operator, and nothing that it is composed of."""


NEVER = frozenset(" ".join(REMEDIES[text] for text in (DECIDES, PYTHON, ARRAY, GRADIENTS)).split()) | {"cuda"}
"""What cannot be broken down: it leaves torch, or needs values."""


def remedy(name: str, otherwise: str = OTHERWISE) -> str:
    """Why the operator is refused, and what to write instead."""
    return next((text for text, names in REMEDIES.items() if name in names.split()), otherwise)


def plain_name(function: Any) -> str:
    """The last part of a function's name; the attribute's for the reading of one."""
    if getattr(function, "__name__", "") == "__get__":
        return str(getattr(function.__self__, "__name__", "__get__"))
    return str(getattr(function, "__name__", repr(function)))


def operator_name(function: Any) -> str:
    """The operator as the user wrote it, where the user's code calls it; else by torch's name."""
    name = plain_name(function)
    call = running_call()
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == name:
        return ast.unparse(call.func)
    if call is None and name in BY_OPERATOR:
        return f"`{BY_OPERATOR[name]}` of a tensor"
    if name in SYMBOLS:
        return f"`{SYMBOLS[name]}` of a tensor"
    full = resolve_name(function) or f"torch.{name}"
    if getattr(torch.Tensor, name, None) is function or full.startswith("torch.Tensor."):
        return f"Tensor.{name}"
    return full
