"""Every way in and out: text, protos, StableHLO, jax.export, dot."""
