"""The playground's random numbers in numpy, bit for bit: the twin of dashboard/components/playground/random.js."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B9
Words = NDArray[np.uint32]


def _mixed(h: Words) -> Words:
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x21F0AAAD)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x735A2D97)
    return h ^ (h >> np.uint32(15))


def uniforms(seed: int, draw: int, rows: int, part: int, count: int) -> NDArray[np.float64]:
    """(rows, count): the first numbers of each row's stream."""
    golden = np.uint32(_GOLDEN)
    h = _mixed(np.full(rows, seed, dtype=np.uint32) + golden)
    for word in (np.full(rows, draw, np.uint32), np.arange(rows, dtype=np.uint32), np.full(rows, part, np.uint32)):
        h = _mixed(h ^ _mixed(word + golden))
    a, b, c, d = (_mixed(h + np.array([k * _GOLDEN % 2**32], dtype=np.uint32)) for k in (1, 2, 3, 4))

    def word() -> Words:
        nonlocal a, b, c, d
        five = b * np.uint32(5)
        output = ((five << np.uint32(7)) | (five >> np.uint32(25))) * np.uint32(9)
        shifted = b << np.uint32(9)
        c, d = c ^ a, d ^ b
        b, a = b ^ c, a ^ d
        c = c ^ shifted
        d = (d << np.uint32(11)) | (d >> np.uint32(21))
        return output

    numbers = np.empty((rows, count))
    for k in range(count):
        high, low = (word() >> np.uint32(6)).astype(np.float64), (word() >> np.uint32(6)).astype(np.float64)
        numbers[:, k] = (high * 67108864 + low + 0.5) * 2.0**-52
    return numbers


def normals(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The normal quantile of uniform numbers: AS 241 (Wichura 1988)."""
    q = p - 0.5
    r = 0.180625 - q * q
    middle = q * _horner(_A, r) / _horner(_B, r)
    tail = np.sqrt(-_log(np.where(q < 0, p, 1 - p)))
    near, far = tail - 1.6, tail - 5
    outer = np.where(tail <= 5, _horner(_C, near) / _horner(_D, near), _horner(_E, far) / _horner(_F, far))
    return np.where(np.abs(q) <= 0.425, middle, np.where(q < 0, -outer, outer))


def _horner(coefficients: tuple[float, ...], x: NDArray[np.float64]) -> NDArray[np.float64]:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def _log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    m, e = np.frexp(x)  # m in [½, 1)
    low = m < 0.7071067811865476
    m, e = np.where(low, 2 * m, m), np.where(low, e - 1, e)
    s = (m - 1) / (m + 1)
    q = s * s
    total = np.zeros_like(s)
    for k in range(23, 0, -2):
        total = total * q + 1 / k
    return 2 * s * total + e * 0.6931471805599453


_A = (
    *(2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457),
    *(13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
)
_B = (
    *(5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867),
    *(5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)
_C = (
    *(7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258),
    *(3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
)
_D = (
    *(1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459),
    *(0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)
_E = (
    *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093),
    *(0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
)
_F = (
    *(2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4),
    *(0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)
