"""What legality may rely on: quick rules on the form of a program, exact sets by isl, and proofs by Z3.

The schedule asks `legal`; this folder answers. An answer that could not be proven is never "yes".
"""
