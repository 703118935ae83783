"""Finding what is wrong: comparing runs, making failing programs small, naming the guilty rule.

Behind `haloc diff-run`, `haloc reduce` and `haloc bisect`.
"""
