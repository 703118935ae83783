"""The fft kernel: generated mixed-radix transforms of any length, vectorised across lines."""
