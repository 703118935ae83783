"""Verbs: the op table. Importing this package fills `OPS`, one family file after another."""
