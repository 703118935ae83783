"""`haloc.lib.xla_client` and `haloc.lib.xla_bridge`: where `jax.lib` had them."""
