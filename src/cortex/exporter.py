"""export(): a model, compiled or not, as a C package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack, cast

from cortex.compiler import CompileOptions, compile
from cortex.errors import ModelError
from cortex.frontend.model import RecursiveModel
from cortex.frontend.weights import Source
from cortex.package.write_package import write_package
from cortex.runtime.executable import Executable
from cortex.runtime.saved_model import SavedModel
from cortex.runtime.torch_module import CalledAsModule


def export(
    model: Executable | CalledAsModule | RecursiveModel | Callable[..., Any],
    directory: str | Path,
    name: str | None = None,
    weights: Source | None = None,
    **options: Unpack[CompileOptions],
) -> list[Path]:
    """Write a model to a directory, which is made if it is not there: a package that C and C++ programs can use.

        NAME.h, NAME.c        the functions NAME_load, NAME_open and NAME_run
        NAME.o                object code for the target of the model
        NAME.safetensors      weights, packed for that code; tables computed
        cortex_*.c, *.h       the runtime, in C11; it needs pthreads and nothing else

    `model` is a compiled model, or what `cortex.compile` takes: a torch module or a model function, which is compiled
    with `weights` and the `options` of `compile` (`examples=`, `target=`, ...). `name` is by default that of the model.
    The files that were written are returned.

    Kinds of nodes that the model does not know yet are an error when the package runs, and so are numbers of children
    that a kind of any number has not been checked for, so give examples of all.

    Requests for a torch module are in the user's nodes. Where its `forward` is a head over a recursive method, each
    request has one node more, which the header explains. Where methods call each other or pass tensors down, the nodes
    are calls of them, which only Python makes: that is refused.
    """
    if isinstance(model, SavedModel):
        model = model.whole
    if isinstance(model, Executable | CalledAsModule):
        if weights is not None or options:
            given = ", ".join([*(["weights"] if weights is not None else []), *options])
            raise ModelError(f"export: the model is compiled already; give {given} to cortex.compile instead.")
        return write_package(model, directory, name)
    if not callable(model):
        raise ModelError(f"export({model!r}, ...): give a model, or what cortex.compile makes of one.")
    compiled: Executable | CalledAsModule = compile(cast("Any", model), weights, **options)
    return write_package(compiled, directory, name)
