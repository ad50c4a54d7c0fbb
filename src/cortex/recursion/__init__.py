"""RA -> RA steps."""
