"""Nouns: element types, shapes, literals, modules, computations, instructions, shardings."""
