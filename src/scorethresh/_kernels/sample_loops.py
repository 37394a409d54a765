"""The source of the loops over a sample: numba C callbacks on raw pointers.

Imported only to compile, by `loader`. Called only by the checked wrappers in sample.py.
"""

# mypy: ignore-errors

from __future__ import annotations

import numba
import numpy as np
from numba.types import CPointer, float32, float64, int32, int64, void

# The three constants are those of sample.py.
# Chebyshev moments kept per cell.
ORDER = 12

# A double's bits shifted by these leave the exponent and the first 9 (or 2) mantissa bits: a monotone key with
# 512 (or 4) values per octave.
FINE = 43
COARSE = 50

_FLAGS = {"nopython": True, "error_model": "numpy", "fastmath": {"contract"}}


def deposit(n, y, cells, edges, middle, scale, keys, table, unit, first_key, tail_cell, tail_key, moments):
    """Add the Chebyshev moments of each `|y|` to the row of its cell; return how many entries are not finite.

    Cell j holds ``edges[j] < |y| <= edges[j + 1]``. Up to ``edges[tail_cell]`` it is looked up in `table` by the
    fine key of ``|y| * unit``; beyond, the edges are the values at which the coarse key changes.
    """
    bad = 0
    top = edges[tail_cell]
    largest = edges[cells]
    for i in range(n):
        v = abs(np.float64(y[i]))
        if v <= top:
            key = (np.float64(v * unit).view(np.int64) >> FINE) - first_key
            j = np.int64(table[min(max(key, 0), keys - 1)])
        elif v <= largest:
            j = min(tail_cell + (np.float64(v).view(np.int64) >> COARSE) - tail_key, cells - 1)
        else:
            bad += 1
            continue
        while edges[j + 1] < v:
            j += 1
        while j > 0 and edges[j] >= v:
            j -= 1
        t = (v - middle[j]) * scale[j]
        row = j * ORDER
        moments[row] += 1.0
        moments[row + 1] += t
        a = 1.0
        b = t
        for q in range(2, ORDER):
            a, b = b, 2.0 * t * b - a
            moments[row + q] += b
    return bad


# Taylor coefficients of 2^f: log(2)^j / j!. On |f| <= 1/2 the remainder is 7e-15.
C1 = 0.6931471805599453
C2 = 0.24022650695910072
C3 = 0.05550410866482158
C4 = 0.009618129107628477
C5 = 0.0013333558146428443
C6 = 0.0001540353039338161
C7 = 1.5252733804059841e-05
C8 = 1.3215486790144309e-06
C9 = 1.0178086009239699e-07
C10 = 7.0549116208011234e-09
C11 = 4.4455382718708116e-10
# Added to a double, this leaves the nearest integer in its last bits.
ROUND = 6755399441055744.0
# The recursion along an even grid goes back this many points, so that the processor can overlap the products.
LAG = 16
# The recursion restarts after a block of this length, before its rounding errors add up.
BLOCK = 512


@numba.njit(inline="always")
def _exp2(x):
    """Return 2^x for |x| <= 1020, in a form that the compiler can vectorise."""
    shifted = x + ROUND
    f = x - (shifted - ROUND)
    f2 = f * f
    f4 = f2 * f2
    low = (C3 * f + C2) * f2 + (C1 * f + 1.0)
    middle = (C7 * f + C6) * f2 + (C5 * f + C4)
    high = (C11 * f + C10) * f2 + (C9 * f + C8)
    p = (high * f4 + middle) * f4 + low
    bits = (np.float64(shifted).view(np.int64) + 1023) << 52
    return p * np.int64(bits).view(np.float64)


@numba.njit(inline="always")
def _gaussians(z, low, high, points, c, step, decay, e, ratio):
    """Set e[k] to 2^(-c (z - points[k])^2) for low <= k < high.

    On an even grid a value is the one LAG points before times a ratio, which itself falls by a constant factor:
    two products in place of an exponential, for a relative error of some 1e-13. A step of 0 means no such grid.
    """
    block = BLOCK if step > 0.0 else high - low
    lag = LAG * step
    for start in range(low, high, max(block, 1)):
        stop = min(start + block, high)
        seeds = min(start + LAG, stop) if step > 0.0 else stop
        for k in range(start, seeds):
            d = z - points[k]
            e[k] = _exp2(-c * d * d)
        if step > 0.0:
            for k in range(start, seeds):
                ratio[k] = _exp2(c * lag * (2.0 * (z - points[k]) - lag))
            for k in range(start + LAG, stop):
                e[k] = e[k - LAG] * ratio[k - LAG]
                ratio[k] = ratio[k - LAG] * decay


def kernel_sums(n, z, weights, spans, pieces, bounds, count, points, step, c, smooth, kernel, mirrored, ratio, out):
    """Add to `out`, per point a, the sums over z of w K, w K^2 and w K s, with w the weight of z.

    ``K = 2^(-c (z-a)^2) + 2^(-c (z+a)^2)``. Entry i touches points ``spans[i, 0]`` to ``spans[i, 2]``; the second
    power counts only before ``spans[i, 1]``. s is the polynomial ``smooth[p, :, k]`` in z at point k, piece p
    being the one with ``bounds[p + 1, i] <= k < bounds[p, i]``. `step` is that of even points, 0 for others.
    """
    decay = _exp2(-2.0 * c * (LAG * step) ** 2)
    for i in range(n):
        zi = z[i]
        wi = weights[i]
        low = spans[3 * i]
        both = spans[3 * i + 1]
        high = spans[3 * i + 2]
        _gaussians(zi, low, high, points, c, step, decay, kernel, ratio)
        _gaussians(-zi, low, both, points, c, step, decay, mirrored, ratio)
        for k in range(low, both):
            kernel[k] += mirrored[k]
        for k in range(low, high):
            e = kernel[k]
            out[k] += wi * e
            out[count + k] += wi * e * e
        for p in range(pieces):
            s = 3 * p * count
            for k in range(max(low, bounds[(p + 1) * n + i]), min(high, bounds[p * n + i])):
                value = smooth[s + k] + zi * (smooth[s + count + k] + zi * smooth[s + 2 * count + k])
                out[2 * count + k] += wi * kernel[k] * value


def _deposit(dtype):
    i, f = int64, CPointer(float64)
    return i(i, CPointer(dtype), i, f, f, f, i, CPointer(int32), float64, i, i, i, f), deposit


LOOPS = {
    "deposit_float32": _deposit(float32),
    "deposit_float64": _deposit(float64),
    "kernel_sums": (
        void(
            *(int64, CPointer(float64), CPointer(float64), CPointer(int64), int64, CPointer(int64), int64),
            *(CPointer(float64), float64, float64, *[CPointer(float64)] * 5),
        ),
        kernel_sums,
    ),
}


def llvm(name):
    """Return the LLVM code of a loop, and the name that the loop has in it."""
    signature, function = LOOPS[name]
    compiled = numba.cfunc(signature, **_FLAGS)(function)
    return compiled.inspect_llvm(), compiled.native_name
