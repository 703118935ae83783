"""How a transform of one length is done, and the numbers it needs, computed in double precision.

Lengths whose prime factors are all at most MAX_PRIME: Stockham stages, one a factor. Others:
Bluestein's algorithm, a convolution by transforms of a longer smooth length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MAX_PRIME = 31
RADICES = (8, 4, 2, 3, 5, *(p for p in (7, 11, 13, 17, 19, 23, 29, 31)))


@dataclass(frozen=True, slots=True)
class Stage:
    """One Stockham stage: in[i, j, k] -> out[i, k, j], i < inner, j < radix, k < outer, i fastest;
    inner * radix * outer is the length."""

    radix: int
    outer: int
    inner: int

    def twiddles(self, sign: int) -> np.ndarray:
        """[inner, radix - 1]: output j >= 1 at i gets exp(sign 2 pi i j i / (inner radix))."""
        i, j = np.arange(self.inner)[:, None], np.arange(1, self.radix)[None, :]
        return roots(sign, i * j, self.inner * self.radix)


def roots(sign: int, numerator: np.ndarray, n: int) -> np.ndarray:
    """exp(sign 2 pi i numerator / n), exact in the eighth turns, for any integers."""
    numerator = np.asarray(numerator, np.int64) % n
    # Reduce to an eighth of a turn: the nearest quarter turn, then a small angle.
    quarter = (4 * numerator + n // 2) // n
    rest = 4 * numerator - quarter * n
    angle = (np.pi / 2) * (rest / n)
    root = np.cos(angle) + 1j * sign * np.sin(angle)
    turn = np.array([1, 1j * sign, -1, -1j * sign])[quarter % 4]
    # Products with 1 and i are exact.
    return root * turn


def factor(n: int) -> list[int] | None:
    """n as a product of radices; None when a prime factor is greater than MAX_PRIME."""
    factors = []
    for radix in RADICES:
        while n % radix == 0:
            factors.append(radix)
            n //= radix
    return factors if n == 1 else None


def stages(n: int) -> list[Stage]:
    """The Stockham stages of a smooth length."""
    factors = factor(n)
    assert factors is not None
    result, outer = [], 1
    for radix in factors:
        result.append(Stage(radix, outer, n // (outer * radix)))
        outer *= radix
    return result


def smooth_above(n: int) -> int:
    """The smallest 2^a 3^b 5^c that is at least n."""
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            needed = -(-n // three)
            best = min(best, three << max(0, (needed - 1).bit_length()))
            three *= 3
        five *= 5
    return best


@dataclass(frozen=True, slots=True)
class Bluestein:
    """y_k = c_k sum_j (x_j c_j) conj(c_(k-j)), with c_j = exp(sign pi i j^2 / n)."""

    n: int
    padded: int

    def chirp(self, sign: int) -> np.ndarray:
        j = np.arange(self.n, dtype=np.int64)
        return roots(sign, (j * j) % (2 * self.n), 2 * self.n)

    def spectrum(self, sign: int) -> np.ndarray:
        """The forward transform of conj(c), wrapped around, over the padded length."""
        kernel = np.zeros(self.padded, np.complex128)
        chirp = self.chirp(sign).conj()
        kernel[: self.n] = chirp
        kernel[self.padded - self.n + 1 :] = chirp[:0:-1]
        return np.fft.fft(kernel) / self.padded


def split(n: int) -> tuple[int, int] | None:
    """n = n1 * n2 with both smooth and near the square root, n1 <= n2; None if there are none."""
    factors = factor(n)
    if factors is None:
        return None
    best = max(d for d in range(1, int(n**0.5) + 1) if n % d == 0)
    return (best, n // best) if best > 1 else None
