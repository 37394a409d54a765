"""The source of the loops of the frames: numba C callbacks on raw pointers.

Imported only to compile, by `loader`. Called only by the checked wrappers in frame.py.
"""

# mypy: ignore-errors

from __future__ import annotations

import numba
from numba.types import CPointer, float32, float64, int64, void

# Entries are finite, so sums may be taken in any order.
_FLAGS = {"nopython": True, "error_model": "numpy", "fastmath": True}


@numba.njit(fastmath=True, error_model="numpy")
def _combine(work, to, matrix, first, stride, rows, step, size, width):
    """Set work[to + x] to the sum over k of matrix[first + k stride] work[rows + k step + x]."""
    for k in range(0, size, 4):
        a = matrix[first + k * stride]
        i = rows + k * step
        if k + 4 <= size:
            b = matrix[first + (k + 1) * stride]
            c = matrix[first + (k + 2) * stride]
            d = matrix[first + (k + 3) * stride]
            j, m, n = i + step, i + 2 * step, i + 3 * step
            if k == 0:
                for x in range(width):
                    work[to + x] = a * work[i + x] + b * work[j + x] + c * work[m + x] + d * work[n + x]
            else:
                for x in range(width):
                    work[to + x] += a * work[i + x] + b * work[j + x] + c * work[m + x] + d * work[n + x]
        else:
            for x in range(width):
                work[to + x] = a * work[i + x]
            for more in range(1, size):
                a = matrix[first + more * stride]
                i = rows + more * step
                for x in range(width):
                    work[to + x] += a * work[i + x]


@numba.njit(fastmath=True, error_model="numpy")
def _down(work, rows, top, by, row, dy, fold, to):
    """Set the by rows from `to` on to the DCT, down the ring of rows that starts at `top`."""
    half = by // 2
    # Cosines are even or odd about the middle: half of them need only sums of opposite rows, half only differences.
    for k in range(half):
        i = rows + ((top + k) % by) * row
        j = rows + ((top + by - 1 - k) % by) * row
        for x in range(row):
            work[fold + k * row + x] = work[i + x] + work[j + x]
            work[fold + (half + k) * row + x] = work[i + x] - work[j + x]
    for u in range(by):
        _combine(work, to + u * row, dy, u * by, 1, fold + (u % 2) * half * row, row, half, row)


@numba.njit(fastmath=True, error_model="numpy")
def _up(work, source, weights, count, top, by, bx, dy, fold, sums):
    """Add the inverse DCT of by rows, times the weights of the windows, to the ring of rows that starts at `top`."""
    row = bx * count
    half = by // 2
    for k in range(half):
        _combine(work, fold, dy, k, 2 * by, source, 2 * row, half, row)
        _combine(work, fold + row, dy, by + k, 2 * by, source + row, 2 * row, half, row)
        i = sums + ((top + k) % by) * row
        j = sums + ((top + by - 1 - k) % by) * row
        for f in range(bx):
            at = f * count
            for x in range(count):
                even = work[weights + x] * work[fold + at + x]
                odd = work[weights + x] * work[fold + row + at + x]
                work[i + at + x] += even + odd
                work[j + at + x] += even - odd


@numba.njit(fastmath=True, error_model="numpy")
def _along_row(source, row, count, step, tall, dx, bx, work, to, phases):
    """Set work[to + f count + x] to coefficient f of the window that starts at entry x step of the row."""
    # Entries of one phase lie side by side, so that windows `step` apart are read in a straight line.
    for k in range(step):
        for x in range(tall):
            work[phases + k * tall + x] = source[row + x * step + k]
    for f in range(bx):
        at = to + f * count
        for x in range(count):
            work[at + x] = 0.0
        for k in range(0, bx, 2):
            a = dx[f * bx + k]
            b = dx[f * bx + k + 1]
            i = phases + (k % step) * tall + k // step
            j = phases + ((k + 1) % step) * tall + (k + 1) // step
            for x in range(count):
                work[at + x] += a * work[i + x] + b * work[j + x]


@numba.njit(fastmath=True, error_model="numpy")
def _back_along_row(work, source, count, step, tall, dx, bx, out, row, phases):
    """Add the windows whose coefficients start at `source` to a row of `out`, and clear them."""
    for x in range(step * tall):
        work[phases + x] = 0.0
    for f in range(bx):
        at = source + f * count
        for k in range(bx):
            a = dx[f * bx + k]
            i = phases + (k % step) * tall + k // step
            for x in range(count):
                work[i + x] += a * work[at + x]
        for x in range(count):
            work[at + x] = 0.0
    for k in range(step):
        for x in range(tall):
            out[row + x * step + k] += work[phases + k * tall + x]


@numba.njit(fastmath=True, error_model="numpy")
def _factors(work, squares, kept, derivative, below, count, guided, t, v, constants):
    """Turn squared norms into factors of their coefficients; add up the noise let through and the derivatives.

    Jumps of coefficients just below the threshold are added to `below`: if one were kept, its window would weigh less.
    """
    # A literal would promote single precision to double.
    zero, one, parts, tiny = constants[0], constants[1], constants[2], constants[3]
    if guided:
        for x in range(count):
            g = work[squares + x] + tiny
            a = g / (g + t * parts)
            work[squares + x] = a
            work[kept + x] += v * a * a
            work[derivative + x] += v * a * parts
    else:
        low = t * t * constants[4]
        high = t * t * constants[5]
        limit = t * t
        jump = v * constants[6]
        for x in range(count):
            g = work[squares + x]
            a = one if g >= limit else zero
            work[squares + x] = a
            work[kept + x] += v * a
            work[derivative + x] += v * a * parts + (jump if limit <= g < high else zero)
            work[below + x] += jump if low < g < limit else zero


@numba.njit(fastmath=True, error_model="numpy")
def _shrink(work, source, coefficients, squares, kept, slope, below, count, parts, size, guided, cut, var, constants):
    """Multiply the coefficients of windows by factors that the norms over the parts at `source` decide."""
    for j in range(size):
        for x in range(count):
            work[squares + x] = work[source + j * count + x] * work[source + j * count + x]
        for part in range(1, parts):
            at = source + (part * size + j) * count
            for x in range(count):
                work[squares + x] += work[at + x] * work[at + x]
        _factors(work, squares, kept, slope, below, count, guided, cut[j], var[j], constants)
        for part in range(parts):
            at = coefficients + (part * size + j) * count
            for x in range(count):
                work[at + x] *= work[squares + x]


@numba.njit(fastmath=True, error_model="numpy")
def _spread(work, kept, slope, line, phases, count, step, bx, by, width, weight, divergence, first, pitch):
    """Add the weight and the divergence of a window to all of its entries: along the row first, then down the rows."""
    for x in range(width):
        work[line + x] = 0.0
        work[phases + x] = 0.0
    for k in range(bx):
        for x in range(count):
            work[line + x * step + k] += work[kept + x]
            work[phases + x * step + k] += work[slope + x]
    for k in range(by):
        at = first + k * pitch
        for x in range(width):
            weight[at + x] += work[line + x]
            divergence[at + x] += work[phases + x]


def sliding_dct(
    parts, planes, height, pitch, start, width, by, bx, step, guided,
    y, pilot, dy, dx, cut, var, constants, out, weight, divergence, work,
):  # fmt: skip
    """Shrink the DCT coefficients of every by x bx window, and add up the windows; see the wrapper in frame.py.

    `y` holds parts x planes images with rows of `pitch` entries. The strip of `width` entries from `start` on is
    treated. Height and width are by and bx plus multiples of `step`. Results are added to `out`, `weight` and
    `divergence`; `work` is scratch. `constants` are 0, 1, the number of parts, a number that avoids 0 / 0, the squared
    ends of the boxcar and its height, all relative to the threshold, and one over the number of entries of a window.
    """
    count = (width - bx) // step + 1
    tall = width // step
    depth = parts * planes
    row = bx * count
    block = depth * by * row
    sums = block
    coefficients = 2 * block
    guides = 3 * block
    models = (3 + guided) * block
    kept = (3 + 2 * guided) * block
    slope = kept + count
    below = slope + count
    squares = below + count
    fold = squares + count
    line = fold + max(by, 2) * row
    phases = line + width
    one = constants[1]
    share = constants[7]
    spread = constants[0]
    for i in range(planes * by * bx):
        spread += var[i] * share
    for i in range(block):
        work[sums + i] = 0.0
    for r in range(height):
        for q in range(depth):
            at = (q * height + r) * pitch + start
            to = (q * by + r % by) * row
            _along_row(y, at, count, step, tall, dx, bx, work, to, phases)
            if guided:
                _along_row(pilot, at, count, step, tall, dx, bx, work, guides + to, phases)
        top = r - by + 1
        if top < 0 or top % step:
            continue
        for x in range(count):
            work[kept + x] = 0.0
            work[slope + x] = 0.0
            work[below + x] = 0.0
        for q in range(depth):
            _down(work, q * by * row, top, by, row, dy, fold, coefficients + q * by * row)
            if guided:
                _down(work, guides + q * by * row, top, by, row, dy, fold, models + q * by * row)
        source, size = models if guided else coefficients, planes * by * bx
        _shrink(
            work, source, coefficients, squares, kept, slope, below, count, parts, size, guided, cut, var, constants
        )
        for x in range(count):
            a = one / work[kept + x]
            more = one / (work[kept + x] + spread)
            work[kept + x] = a
            work[slope + x] = (a * work[slope + x] + more * work[below + x]) * share
        for q in range(depth):
            _up(work, coefficients + q * by * row, kept, count, top, by, bx, dy, fold, sums + q * by * row)
        first = top * pitch + start
        _spread(work, kept, slope, line, phases, count, step, bx, by, width, weight, divergence, first, pitch)
        for k in range(by if r == height - 1 else step):
            for q in range(depth):
                at = sums + (q * by + (top + k) % by) * row
                to = (q * height + top + k) * pitch + start
                _back_along_row(work, at, count, step, tall, dx, bx, out, to, phases)


@numba.njit(fastmath=True, error_model="numpy")
def _two_taps(x, i, j, out, at, width, a, b, add):
    """Set out[at:] to a x[i:] + b x[j:], or add it there."""
    if add:
        for k in range(width):
            out[at + k] += a * x[i + k] + b * x[j + k]
    else:
        for k in range(width):
            out[at + k] = a * x[i + k] + b * x[j + k]


def dilated(outer, n, inner, size, step, shift, add, taps, x, out):
    """Filter along the middle of three axes, in a circle: out[i] = sum over k of taps[k] x[i + shift - k step].

    `size` is even. If `add`, the result is added to `out`.
    """
    for k in range(0, size, 2):
        first = (shift - k * step) % n
        second = (shift - (k + 1) * step) % n
        more = add or k > 0
        for o in range(outer):
            base = o * n * inner
            if inner == 1:
                # Between the positions at which one of the two wraps around, both are read in a straight line.
                low = min(n - first, n - second)
                high = max(n - first, n - second)
                i, j = base + first, base + second
                _two_taps(x, i, j, out, base, low, taps[k], taps[k + 1], more)
                i -= n if n - first <= low else 0
                j -= n if n - second <= low else 0
                _two_taps(x, i + low, j + low, out, base + low, high - low, taps[k], taps[k + 1], more)
                i, j = base + first - n, base + second - n
                _two_taps(x, i + high, j + high, out, base + high, n - high, taps[k], taps[k + 1], more)
            else:
                for r in range(n):
                    i = base + ((r + first) % n) * inner
                    j = base + ((r + second) % n) * inner
                    _two_taps(x, i, j, out, base + r * inner, inner, taps[k], taps[k + 1], more)


_P = {dtype: CPointer(dtype) for dtype in (float32, float64)}
LOOPS = {
    **{f"sliding_dct_{t}": (void(*[int64] * 10, *[p] * 11), sliding_dct) for t, p in _P.items()},
    **{f"dilated_{t}": (void(*[int64] * 7, p, p, p), dilated) for t, p in _P.items()},
}


def llvm(name):
    """Return the LLVM code of a loop, and the name that the loop has in it."""
    signature, function = LOOPS[name]
    compiled = numba.cfunc(signature, **_FLAGS)(function)
    return compiled.inspect_llvm(), compiled.native_name
