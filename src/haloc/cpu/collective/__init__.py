"""Collectives in native programs.

`native` has the functions that all programs share: participants meet, and gangs of them run.
`sites` says which participants meet where; `emit` puts a collective into a program; `move` and
`fold` write what is done with the data. `gang` runs a program's participants together.
"""
