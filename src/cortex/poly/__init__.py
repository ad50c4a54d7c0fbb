"""What legality may rely on: proofs by Z3 (`prove`) and exact sets by isl (`domains`, `dependences`, `counting`).

The schedule asks; this folder answers. An answer that could not be proven is never "yes".
"""
