"""`jax.export` artifacts, read without jax: the program, its types, its pytrees, its platforms."""
