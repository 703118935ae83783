"""JAX programs as people write them, by name: each gives a pytree of arrays.

They run in a process of their own per platform (`run.py`), so these modules import JAX freely.
"""
