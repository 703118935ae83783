"""Several processes: the names that `xla_client` has for them. What is behind them is to come."""
