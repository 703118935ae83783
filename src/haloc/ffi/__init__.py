"""Calls out of a program: registered custom call targets, XLA's FFI in C, host callbacks.

`targets.py` holds what is registered, `sites.py` what belongs to one custom-call of a program.
Both ways to execute use them: the interpreter calls a site from Python (`call_site.py`), generated
code (`cpu/custom_call`) calls the same functions with the same structures.
"""
