"""Names in `fields` that a model never reads."""

from __future__ import annotations

import warnings
from difflib import get_close_matches

from cortex.errors import ModelError
from cortex.frontend.knowledge import Knowledge


def refuse_unread_fields(k: Knowledge, *, is_complete: bool) -> None:
    """Refuse names in `fields` that the model never reads.

    Unless all kinds are known (`is_complete`), a structure may show one that reads it: a name that looks like one that
    the model does read gets a warning.
    """
    for name in k.accessors.given_fields:
        if name in k.read:
            continue
        close = get_close_matches(name, [read for read in k.read if not k.accessors.renamed(read)], n=1)
        hint = f"Did you mean '{close[0]}'?" if close else f"It reads {', '.join(k.read) or 'nothing'}."
        asked = f"fields={{{name!r}: ...}}: model '{k.name}'"
        if is_complete:
            raise ModelError(f"{asked} never reads node.{name}. {hint}", k.definition)
        if close:
            warnings.warn(f"{asked} has not read node.{name} so far. {hint}", stacklevel=4)
