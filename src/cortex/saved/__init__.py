"""Compiled models as files; see docs/decisions/0014-saved-models.md."""
