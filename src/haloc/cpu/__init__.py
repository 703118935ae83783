"""The CPU backend: scheduled HLO to native kernels, run by one native call."""
