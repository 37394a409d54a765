"""Moments of the entries of a cell, and the few nodes that stand for them in sums of polynomials."""

from __future__ import annotations

import numpy as np

from .._arrays import Floats

# Moments per cell: that of moments.h.
ORDER = 12
# The Chebyshev nodes of the interval from -1 to 1.
NODES = -np.cos(np.pi * (np.arange(ORDER) + 0.5) / ORDER)
# Sums of the Chebyshev polynomials T_0, T_1, ... times this matrix are the weights at the nodes that integrate every
# polynomial of degree ORDER - 1. Its transpose takes values at the nodes to the coefficients of their Chebyshev series.
TO_WEIGHTS = np.cos(np.arange(ORDER)[:, None] * np.arccos(NODES)[None, :]) * (2 / ORDER)
TO_WEIGHTS[0] /= 2


def chebyshev_of_products() -> Floats:
    """Return the matrix that takes moments to sums of Chebyshev polynomials; its entries are integers.

    Moment q is the sum of the product of T_1, T_2, T_4 and T_8 that the bits of q name. With h the highest bit of q and
    r the others, ``T_q = 2 T_h T_r - T_(h-r)``.
    """
    out = np.zeros((ORDER, ORDER))
    for q in range(ORDER):
        highest = 1 << q.bit_length() >> 1
        rest = q - highest
        if rest == 0:
            out[q, q] = 1
        else:
            out[:, q] = 2 * np.roll(out[:, rest], highest) - out[:, highest - rest]
    return out


# Moments times this matrix are the weights at the nodes.
MOMENTS_TO_WEIGHTS = chebyshev_of_products() @ TO_WEIGHTS
