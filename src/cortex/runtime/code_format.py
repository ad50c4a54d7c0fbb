"""The version of the format of compiled code: what its caller gives it and what its linearizer is told.

Object code in a file or a cache is used by any Cortex of the same version. Raise it whenever a change would have older
code read something else than it was made for: the arguments of functions (codegen/llvm/module.py), the arrays of the
linear form and their meaning (lower/linear_form.py, native/), a linearizer's spec (runtime/linearize.py), the forms
of arguments (runtime/arguments.py), how threads meet (native/team.hpp), how weights are padded and packed. A test
(tests/74_saved/test_code_format.py) knows the interface, and files of each version that must still give their numbers.
"""

CODE_FORMAT = 1
