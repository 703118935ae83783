"""Imports every file that registers a kernel emitter."""

import haloc.codegen.scan
import haloc.codegen.updates
import haloc.codegen.windows
import haloc.cpu.contraction
import haloc.cpu.custom_call.kernel
import haloc.cpu.custom_call.transfers
import haloc.cpu.fft.kernel
import haloc.cpu.linalg.kernels
import haloc.cpu.rng_state
import haloc.cpu.sort.kernel  # noqa: F401
