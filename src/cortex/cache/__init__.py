"""Object code kept from one process to the next; see docs/decisions/0006-object-code-cache.md."""
