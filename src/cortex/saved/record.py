"""What a call of a program needs, as a record of plain data beside raw arrays: see runtime/recorded.py for its reader.

The arrays are as code takes them, weights padded and packed. A program is read from its record without knowing the
model, its schedule or any part of the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cortex.frontend.fields import Accessors
from cortex.ilir.ir import Scope
from cortex.lower.linear_form import NUM_PARTS, kinds_in_windows
from cortex.ra import interp
from cortex.runtime.arguments import arguments, field_align
from cortex.runtime.compiled import Compiled
from cortex.runtime.linearize import Checked, linearizer_spec
from cortex.runtime.output import rows_of_results
from cortex.runtime.storage import Array
from cortex.runtime.table_form import table_form
from cortex.saved.plain import plain

if TYPE_CHECKING:
    from cortex.saved.write import Sections


def record_of(
    compiled: Compiled,
    weights: Mapping[str, Array],
    accessors: Accessors,
    checked: Sequence[Checked],
    sections: Sections,
) -> dict[str, Any]:
    """A program and the programs that fill its tables.

    `spec` is null where the linearizer is told more than plain data: functions are the user's own.
    """
    m, f = compiled.model, compiled.signature
    params = interp.derived(m, weights)
    padding = {b.name: b.align for b in f.buffers}
    forms, programs = [], []
    of_tables: dict[str, tuple[int, int]] = {}
    for number, (table, program) in enumerate(zip(m.tables, compiled.tables, strict=True)):
        forms.append(table_form(table, program.model, padding))
        programs.append(record_of(program, params, Accessors(), (), sections))
        of_tables |= {name: (number, place) for place, name in enumerate(table.params)}
    known = dict.fromkeys(of_tables, _EMPTY)
    taken = arguments(m, f, lambda: params, known)
    names = [b.name for b in f.buffers]
    of_weights = {b.name for b in f.buffers if b.scope in (Scope.PARAM, Scope.PACKED)} - of_tables.keys()
    named = zip([*f.index_functions, *names], taken, strict=True)
    arrays = [_argument(name, each, of_tables, sections) for name, each in named]
    parts, windows = NUM_PARTS.name in f.sizes, kinds_in_windows(f.index_functions)
    spec = linearizer_spec(m, accessors, align=field_align(f), parts=parts, windows=windows, checked=checked)
    try:
        told = plain(spec)
    except ValueError:
        told = None
    return {
        "model": m.name,
        "entry": compiled.object_code.entry,
        "code": sections.add(compiled.object_code.code),
        "states": [s.name for s in m.outputs],
        "rows": plain(rows_of_results(m)),
        "spec": told,
        "sizes": list(f.sizes),
        "arrays": arrays,
        "placed": {name: number for number, name in enumerate(names, len(f.index_functions)) if name in of_weights},
        "shared_out": f.shared_out,
        "tables": [
            [form.field, form.limit, list(form.params), plain(form.shapes), list(form.aligns), program]
            for form, program in zip(forms, programs, strict=True)
        ],
    }


_EMPTY: Any = None


def _argument(name: str, taken: tuple[Any, ...], of_tables: Mapping[str, tuple[int, int]], sections: Sections) -> Any:
    what, *rest = taken
    if what != "weight":
        return [what, *plain(tuple(rest))]
    if name in of_tables:
        return ["table", *of_tables[name]]
    array: Array = rest[0]
    return ["weight", sections.add(raw(array)), array.dtype.str, list(array.shape)]


def raw(array: Array) -> memoryview:
    """The bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def aligns_of(compiled: Compiled) -> dict[str, int]:
    """The multiples to which the rows of parameters are padded that code reads as they are."""
    found = {name: align for table in compiled.tables for name, align in aligns_of(table).items()}
    f = compiled.signature
    return found | {b.name: b.align for b in f.buffers if b.scope is Scope.PARAM and b.name in f.read}
