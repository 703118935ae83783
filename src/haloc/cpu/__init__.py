"""The CPU backend: optimised HLO to one native program."""
