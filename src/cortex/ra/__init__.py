"""RA, the recursive IR: grammar, types, text, checks, meaning and simplification."""
