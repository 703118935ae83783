"""Elementary functions as branch-free vector code over `Expr`, for float and double, any width.

IEEE results: subnormals are kept, infinities and NaN come out where they belong. Measured errors
are in docs/ulp.md. Narrower floats are computed as float and rounded by the caller.
"""
