"""load(): a saved model as a callable, without the compiler where the code in the file fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from cortex.codegen.cpu_flags import surely_runs
from cortex.errors import ModelError
from cortex.runtime.code_format import CODE_FORMAT
from cortex.runtime.recorded import Recorded
from cortex.runtime.saved_model import SavedModel
from cortex.runtime.threads import MOST_THREADS
from cortex.saved.head import ILL_FORMED, File, not_understood, opened
from cortex.saved.plain import from_plain

if TYPE_CHECKING:
    from cortex.runtime.executable import Executable
    from cortex.runtime.loaded_module import LoadedModule
    from cortex.saved.source import Source

Children = str | tuple[str, ...] | Callable[[Any], Iterable[Any]] | None
Fields = Mapping[str, Any] | None


@overload
def load(
    file: Source,
    *,
    children: Children = None,
    fields: Fields = None,
    threads: int | None = None,
    as_torch: Literal[True],
    trust_code: bool = True,
    verify: bool = False,
) -> LoadedModule: ...
@overload
def load(
    file: Source,
    *,
    children: Children = None,
    fields: Fields = None,
    threads: int | None = None,
    as_torch: bool = False,
    trust_code: bool = True,
    verify: bool = False,
) -> Executable | LoadedModule: ...
def load(
    file: Source,
    *,
    children: Children = None,
    fields: Fields = None,
    threads: int | None = None,
    as_torch: bool = False,
    trust_code: bool = True,
    verify: bool = False,
) -> Executable | LoadedModule:
    """The compiled model that `fast.save(file)` wrote; it computes the same, to the bit.

    `file` is a path, the bytes of a file, or a file that is open. A file at a path is mapped: processes share its
    weights. Replace such a file by another one (`mv`); do not write into it while it is in use.

    `children` and `fields` are those of `cortex.compile`. What was said by attribute names is in the file; what was
    said by functions is not, and has to be given again. `threads` is as many as it was compiled for, unless given.

    The object code in the file is used if the processor has all instructions that it was made for, and its format is
    that of this Cortex. Else the model, which is in the file too, is compiled again, and `logging` says why; on another
    processor, results may then differ in the last bits. Nodes of kinds that were not known when it was saved are
    refused. A model that is for a device (target="opencl" or "cuda") is compiled for it again.

    A saved torch module is called as the module was, and returns NumPy arrays in the module's own form: torch is not
    loaded. With `as_torch` it is, and the arrays are torch tensors. Results that are named tuples or dataclasses are so
    again if their class is loaded by then; else they are tuples and dictionaries.

    The file holds machine code, which runs with the rights of this process: load only files that you would run as
    programs, or say `trust_code=False`, and the model in the file is compiled here and no code from the file is run. A
    file that was damaged or edited is refused, but no check tells who wrote it; arrays of more than 64 MB are checked
    for damage with `verify` only. `cortex inspect` runs nothing.
    """
    found = opened(file, verify)
    if trust_code and children is None and fields is None and not as_torch:
        quick = _from_record(found, threads)
        if quick is not None:
            return cast("Executable", quick)
    from cortex.restore import restore

    return restore(found, children, fields, threads, as_torch, trust_code)


def _from_record(file: File, threads: int | None) -> SavedModel | None:
    """The model by the record of a program that this machine runs; None where more is needed than that."""
    head = file.head
    try:
        if head["calls"] != "model" or head["functions"] or file.code_format != CODE_FORMAT:
            return None
        wanted = head["threads"] if threads is None else threads
        found = [each for each in head["records"] if surely_runs(each[0], each[1])]
        if (
            type(wanted) is not int
            or not 0 < wanted <= MOST_THREADS
            or (wanted > 1 and not any(each[3] > 1 for each in found))
            or not found
        ):
            return None
        # the widest vectors, and code for one thread where one is wanted
        *_, number = max(found, key=lambda each: (each[2], (each[3] > 1) == (wanted > 1)))
        record = json.loads(bytes(file.sections[number]))
        if record["spec"] is None:
            return None
        recorded = Recorded(record, file.sections.__getitem__, from_plain)
        return SavedModel(recorded, wanted, _restored(file, threads))
    except ILL_FORMED:
        raise not_understood(file.what, file.cortex) from None


def _restored(file: File, threads: int | None) -> Callable[[], Executable]:
    def restored() -> Executable:
        from cortex.restore import restore

        return cast("Executable", restore(file, None, None, threads, False, True))

    return restored


def refuse_functions(content: bytes) -> None:
    """Refuse a file that lacks functions of the user's: whoever loads it would have to give them."""
    if opened(content).head["functions"]:
        raise ModelError(
            "functions say what its attributes are, and functions cannot be saved. Name attributes instead."
        )


def load_pickled(content: bytes, as_torch: bool) -> Any:
    """What was pickled by the bytes of its file, with results as they were."""
    return load(content, as_torch=as_torch)
