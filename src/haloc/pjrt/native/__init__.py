"""LLVM text of what must not depend on Python: getters, buffers, transfers, execution."""
