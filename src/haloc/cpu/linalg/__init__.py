"""Linear algebra by LAPACK: cholesky, triangular-solve and the lapack_*_ffi custom calls."""
