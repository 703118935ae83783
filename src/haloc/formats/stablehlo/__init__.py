"""StableHLO: the readers of its text and bytecode, and the way to HLO."""
