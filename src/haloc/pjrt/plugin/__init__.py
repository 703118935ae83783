"""haloc as a PJRT plugin: the functions of `PJRT_Api` that are Python, and the table of all."""
