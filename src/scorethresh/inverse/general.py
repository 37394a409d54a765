"""Operators of other packages: matrices, linear operators, pairs of functions. They are tested before they are used."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._arrays import Floats
from .linear_map import LinearMap, mean_gain
from .operator import Operator

__all__ = ["FunctionMap", "General", "as_operator", "check_adjoint"]

# How far both inner products of the test may differ, over the norms of the vectors. It allows for single precision.
ADJOINT_TOLERANCE = 1e-4
# The largest entry that A may make of random numbers, and the inverse of the smallest such: beyond, squares of products
# leave the range of doubles.
LARGEST_PRODUCT = 1e60


class FunctionMap(LinearMap):
    """A map given by two functions of arrays.

    Parameters
    ----------
    shape, data_shape : tuple of int
        The shapes of x and of y.
    forward, adjoint : callable
        The functions. They may return vectors.
    names : tuple of str
        What errors call them.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        data_shape: tuple[int, ...],
        functions: tuple[Callable[[Any], Any], Callable[[Any], Any]],
        names: tuple[str, str],
    ) -> None:
        self.shape, self.data_shape, self.functions, self.names = shape, data_shape, functions, names

    def _called(self, side: int, a: Floats, shape: tuple[int, ...]) -> Floats:
        try:
            out = np.asarray(self.functions[side](a.copy()))  # it may write into its argument
        except NotImplementedError as error:
            msg = f"{self.names[side]} is not implemented ({error}). Restoration needs A and its adjoint: define both."
            raise TypeError(msg) from error
        if out.size != math.prod(shape):
            what = ("y", "x")[side]
            msg = f"{self.names[side]} returned shape {out.shape}, but {what} has shape {shape}. Check the operator."
            raise ValueError(msg)
        if out.dtype.kind not in "fciu" or not np.isfinite(out).all():
            msg = f"{self.names[side]} returned {out.dtype} with NaN, infinite or no numbers. Check the operator."
            raise ValueError(msg)
        return out.reshape(shape)

    def forward(self, x: Floats) -> Floats:
        """Return ``A x``."""
        return self._called(0, x, self.data_shape)

    def adjoint(self, y: Floats) -> Floats:
        """Return ``A' y``."""
        return self._called(1, y, self.shape)


@dataclass(frozen=True, eq=False)
class General(Operator):
    """An operator of another package, or of the user.

    Attributes
    ----------
    source : object
        The matrix, linear operator or pair of functions.
    shape : tuple of int, optional
        The shape of x.
    """

    source: Any
    shape: tuple[int, ...] | None = None

    def bind(self, data_shape: tuple[int, ...], *, complex_data: bool) -> LinearMap:
        """Return the map for data of a shape, tested."""
        if isinstance(self.source, tuple):
            if self.shape is None:
                msg = "shape is missing: a pair of functions does not tell that of x. Pass shape=(rows, columns)."
                raise TypeError(msg)
            found = FunctionMap(self.shape, data_shape, self.source, ("operator[0]", "operator[1]"))
        else:
            found = _matrix_map(self.source, self.shape, data_shape)
        check_adjoint(found, complex_domain=complex_data)
        found.gain = mean_gain(found, complex_domain=complex_data)
        return found


def as_operator(operator: Any, shape: Any) -> Operator:
    """Return what the user passed as an operator.

    Parameters
    ----------
    operator : object
        An `Operator`; a matrix; an object with `shape` and either `matvec` and `rmatvec`, or `@` and `.H` or `.T`; or
        a pair of functions.
    shape : tuple of int, optional
        The shape of x, for those that do not know it.
    """
    if isinstance(operator, Operator):
        if shape is not None:
            msg = f"shape goes with operators that do not know that of x, got {shape!r}. Leave it out."
            raise ValueError(msg)
        return operator
    known = None if shape is None else _checked_shape(shape)
    if isinstance(operator, tuple | list) and len(operator) == 2 and all(map(callable, operator)):
        return General(tuple(operator), known)
    source = np.asarray(operator) if isinstance(operator, list | tuple) else operator
    size = getattr(source, "shape", None)
    products = hasattr(source, "matvec") or hasattr(source, "__matmul__")
    if not (products and isinstance(size, tuple) and len(size) == 2):
        msg = (
            "operator must be Blur, Mask, Fourier, Downsample, a matrix, an object with shape, matvec and rmatvec, or "
            f"a pair of functions (forward, adjoint), got {type(operator).__name__}."
        )
        raise TypeError(msg)
    return General(source, known)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of x that the user passed, one length or several."""
    lengths = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    return tuple(_validate.whole(n, "shape", 1, " Pass the shape of x, such as shape=(64, 64).") for n in lengths)


def _matrix_map(source: Any, shape: tuple[int, ...] | None, data_shape: tuple[int, ...]) -> FunctionMap:
    """Return the map of an object that multiplies vectors."""
    rows, columns = source.shape
    if rows != math.prod(data_shape):
        msg = (
            f"operator has {rows} rows, but y has {math.prod(data_shape)} entries, shape {data_shape}. An array is "
            "taken for a matrix that multiplies x.ravel(); a point spread function goes into Blur(psf)."
        )
        raise ValueError(msg)
    if shape is None:
        told = getattr(source, "dims", None)  # pylops
        if told is not None and math.prod(told) == columns:
            shape = tuple(int(n) for n in told)
        elif columns == rows:
            shape = data_shape
        elif len(data_shape) == 1:
            shape = (columns,)
        else:
            msg = f"shape is missing: operator has {columns} columns. Pass that of x, such as shape=({columns},)."
            raise TypeError(msg)
    if math.prod(shape) != columns:
        msg = f"shape {shape} has {math.prod(shape)} entries, but operator has {columns} columns. Make them equal."
        raise ValueError(msg)
    return FunctionMap(shape, data_shape, *_products(source))


def _products(source: Any) -> tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], tuple[str, str]]:
    """Return the products with A and A', as functions of arrays, and their names."""
    if hasattr(source, "matvec") and hasattr(source, "rmatvec"):
        return (lambda x: source.matvec(x.ravel()), lambda y: source.rmatvec(y.ravel())), ("matvec", "rmatvec")
    if hasattr(source, "H"):
        transposed, name = source.H, "operator.H @"
    else:
        matrix: NDArray[Any] = source.T
        transposed, name = matrix.conj(), "operator.T.conj() @"
    return (lambda x: source @ x.ravel(), lambda y: transposed @ y.ravel()), ("operator @", name)


def check_adjoint(a: FunctionMap, *, complex_domain: bool) -> None:
    """Raise unless both functions are linear, adjoint to each other, and not zero.

    Notes
    -----
    ``<A u, v> = <u, A' v>`` must hold for random u and v. The error says which side is wrong: the one that is not
    linear, or A' if both are, for A is what the user means.
    """
    rng = np.random.default_rng(0)

    def draw(shape: tuple[int, ...]) -> Floats:
        return rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex_domain else 0.0)

    x, x2, y, y2 = draw(a.shape), draw(a.shape), draw(a.data_shape), draw(a.data_shape)
    ahead, back = a.forward(x), a.adjoint(y)
    if np.iscomplexobj(ahead) and not complex_domain:
        msg = f"{a.names[0]} returned complex numbers for a real array, but y is real. Pass complex data."
        raise TypeError(msg)
    if not ahead.any():
        msg = f"{a.names[0]} returned zeros for a random array: nothing of x is seen. Check the operator."
        raise ValueError(msg)
    largest = float(np.abs(ahead).max())
    if not 1 / LARGEST_PRODUCT < largest < LARGEST_PRODUCT:
        msg = (
            f"{a.names[0]} returned magnitudes up to {largest:.3g} for random numbers, beyond the range from "
            f"{1 / LARGEST_PRODUCT:g} to {LARGEST_PRODUCT:g}. Divide the operator, y and sigma by {largest:.0e}."
        )
        raise ValueError(msg)
    for name, function, one, two, done in ((a.names[0], a.forward, x, x2, ahead), (a.names[1], a.adjoint, y, y2, back)):
        error = _relative(function(one - 2 * two), done - 2 * function(two))
        if error > ADJOINT_TOLERANCE:
            msg = (
                f"{name} is not linear: f(a - 2 b) and f(a) - 2 f(b) differ by {error:.2g} of their size. Restoration "
                "needs a linear operator; subtract a constant background from y first."
            )
            raise ValueError(msg)
    left, right = _dot(y, ahead), _dot(back, x)
    scale = max(_norm(y) * _norm(ahead), _norm(back) * _norm(x))
    if abs(left - right) > ADJOINT_TOLERANCE * scale:
        msg = (
            f"{a.names[1]} is not the adjoint of {a.names[0]}: for random u and v, <A u, v> = {left:.6g}, but "
            f"<u, A' v> = {right:.6g}.{_hint(a, x2, y2, left, right)}"
        )
        raise ValueError(msg)


def _relative(a: Floats, b: Floats) -> float:
    return _norm(a - b) / max(_norm(a), _norm(b), 1e-300)


def _norm(a: Floats) -> float:
    return float(np.linalg.norm(a))


def _dot(a: Floats, b: Floats) -> complex:
    return complex(np.vdot(a, b))


def _hint(a: FunctionMap, x: Floats, y: Floats, left: complex, right: complex) -> str:
    """Return what may be wrong: a factor, if it is the same for other vectors, or a missing conjugate."""
    left2, right2 = _dot(y, a.forward(x)), _dot(a.adjoint(y), x)
    if left and left2 and abs(right / left - right2 / left2) < ADJOINT_TOLERANCE * abs(right / left):
        return f" It is {abs(right / left):.4g} times as large as it should be: divide {a.names[1]} by this."
    plain = _dot(a.adjoint(y.conj()).conj(), x)
    if abs(left2 - plain) < ADJOINT_TOLERANCE * abs(left2):
        return f" {a.names[1]} lacks a complex conjugate."
    return f" Check {a.names[1]}: it must be the conjugate transpose."
