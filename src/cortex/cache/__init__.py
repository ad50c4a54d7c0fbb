"""Object code kept from one process to the next; see docs/decisions/0008-object-code-cache.md."""
