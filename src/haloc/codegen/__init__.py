"""Code generation shared by CPU and GPU: LLVM text, scalar math, loop nests, reductions."""
