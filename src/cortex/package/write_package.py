"""write_package(): a compiled model as a C package."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from cortex.errors import ModelError
from cortex.frontend.torch.accessors import TorchAccessors
from cortex.lower.linear_form import NUM_PARTS, kinds_in_windows
from cortex.package.classes import without_classes
from cortex.package.header import header_text
from cortex.package.interface import Interface
from cortex.package.names import identifier
from cortex.package.source import entry_name, source_text
from cortex.package.weights import fingerprint, save, weights_of
from cortex.runtime.arguments import arguments, field_align
from cortex.runtime.executable import Executable
from cortex.runtime.linearize import linearizer_spec
from cortex.runtime.torch_module import CalledAsModule


def write_package(fast: Executable | CalledAsModule, directory: str | Path, name: str | None = None) -> list[Path]:
    """Write `fast` to a directory, and return the files that were written; `cortex.export` says more."""
    from cortex.codegen.llvm.build import build

    if isinstance(fast, CalledAsModule):
        fast = fast.program
    part = fast.part()
    if isinstance(part.accessors, TorchAccessors) and part.accessors.of_calls:
        raise ModelError(
            f"export: the nodes of '{part.model.name}' are calls of its methods, which are found in the module's own "
            "Python objects; a C program has none. Write it as a forward, or a forward and one method, that call "
            "themselves on children and get no tensors from the caller; or save it for cortex.load."
        )
    if part.model.trees_only:
        raise ModelError(
            f"export: '{part.model.name}' changes in place what calls have stored, which is right for trees only, and "
            "C does not check that its structures are trees. Change copies: x = x.clone(), or write x = x + y in place "
            "of x += y."
        )
    if part.model.positions:
        raise ModelError(
            f"export: '{part.model.name}' takes the items of '{part.model.positions[0].relation}' one after the other, "
            "which are nodes that only Python makes. Combine them by sums or other reductions, or save it for "
            "cortex.load."
        )
    compiled = part.built[0].compiled
    m, checked = without_classes(compiled.model, part.checked, part.accessors)
    f = compiled.signature
    prefix = identifier(m.name if name is None else name)
    if prefix.startswith("cortex"):
        raise ModelError(
            f"export(name={prefix!r}): names that begin with 'cortex' are the runtime's; give another one."
        )
    parts, windows = NUM_PARTS.name in f.sizes, kinds_in_windows(f.index_functions)
    spec = linearizer_spec(m, align=field_align(f), parts=parts, windows=windows, checked=checked)
    taken = arguments(m, f, lambda: fast.weights)
    weights = weights_of(f, taken)
    face = Interface.of(m, prefix)
    code = build(replace(compiled.func, name=entry_name(prefix)), compiled.object_code.target).code
    mark = fingerprint(code, weights)

    to = Path(directory)
    runtime = sorted((x for x in files(__package__).joinpath("c").iterdir()), key=lambda x: x.name)
    written = {
        f"{prefix}.h": header_text(m, face, str(compiled.object_code.target), f"{prefix}.safetensors").encode(),
        f"{prefix}.c": source_text(m, face, f, spec, taken, weights, mark).encode(),
        f"{prefix}.o": code,
    } | {x.name: x.read_bytes() for x in runtime}
    try:
        to.mkdir(parents=True, exist_ok=True)
        for file, content in written.items():
            (to / file).write_bytes(content)
        save(weights, mark, to / f"{prefix}.safetensors")
    except OSError as error:
        raise ModelError(f"export to {str(to)!r}: {error.strerror}; give a directory that can be written to.") from None
    return [to / file for file in (*written, f"{prefix}.safetensors")]
