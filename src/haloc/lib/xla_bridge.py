"""`haloc.xla_bridge`, by the path that `jax.lib.xla_bridge` had."""

from haloc.xla_bridge import *  # noqa: F403  # all its names, and nothing of its own
