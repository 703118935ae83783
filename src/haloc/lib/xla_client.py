"""`haloc.xla_client`, by the path that `jax.lib.xla_client` had."""

from haloc.xla_client import *  # noqa: F403  # all its names, and nothing of its own
