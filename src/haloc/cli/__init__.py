"""The `haloc` command."""
