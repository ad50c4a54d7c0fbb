"""Compiled models as files; see docs/decisions/0012-saved-models.md."""
