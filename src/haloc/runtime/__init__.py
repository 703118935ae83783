"""Clients, devices, memory, arrays, executables: what a compiled program lives in."""
