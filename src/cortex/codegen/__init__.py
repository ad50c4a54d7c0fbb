"""Machine code from ILIR."""
