"""ILIR to LLVM's textual IR to object code to a function pointer. Only this package imports llvmlite."""
