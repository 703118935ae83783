"""Elementary functions of complex numbers, on (real, imaginary) pairs."""
