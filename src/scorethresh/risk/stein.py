"""Stein's formula with jumps: the sums that SURE and SCORE are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._kernels import NODES, TO_WEIGHTS
from .._validate import Array
from ..rules import PiecewiseLinear, Rule, jumps_of, kinks_of
from ..sample.cells import BANDWIDTHS_PER_CELL, Cells
from ..sample.magnitudes import Magnitudes, gather
from .curve import RiskCurve, finite_part, or_infinity
from .kernel import Kernel, PiecewisePolynomial, kernel_sums

# Beyond this many (entry, threshold) pairs the kernel sums of an exact sample are taken on a compressed copy.
_MOST_PAIRS = 1 << 26


def stein_curve(
    sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule, kernel: Kernel | None = None
) -> RiskCurve:
    """Return ``||y - x||^2 - P sigma^2 + 2 sigma^2 DOF`` at every threshold.

    DOF is the sum of the rule's derivatives plus, per jump, its height times the kernel estimate of the density of the
    entries at the jump. Without a kernel the jumps are left out. Where squares exceed the largest double, the risk is
    infinite.
    """
    tried = finite_part(thresholds)
    if sample.cells is not None and tried.size:
        # Bandwidths that vary, and those of other shapes, exceed the paper's if there are many entries.
        fixed = kernel is not None and not callable(kernel.bandwidth)
        check_cells(sample.cells, tried, rule, kernel.bandwidth * sigma if fixed else np.inf)  # type: ignore[union-attr, operator]
    # Rows: dof, risk, and the sum over entries of the squared terms of the risk; in units of sigma.
    sums = np.zeros((3, thresholds.size))
    with np.errstate(over="ignore", invalid="ignore"):
        if tried.size:
            plain = kernel is None or (kernel.shape == "gaussian" and not callable(kernel.bandwidth))
            if plain and isinstance(rule, PiecewiseLinear) and len(rule.jumps(1.0)) <= 1:
                sums[:, : tried.size] = _straight_sums(sample, tried, sigma, rule, kernel)
            else:
                sums[:, : tried.size] = _general_sums(sample, tried, sigma, rule, kernel)
        sums[1:, tried.size :] = killed_sums(sample, sigma)[:, None]
        dof, risk, square = or_infinity(sums)
        stderr = standard_error(risk, square, sample.size)
        return RiskCurve(thresholds, risk * sigma**2, dof, stderr * sigma**2, sample.size, sigma)


def killed_sums(sample: Magnitudes, sigma: float) -> Array:
    """Return the risk of killing everything and the sum of its squared terms, in units of sigma."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.square(sample.nodes / sigma) - 1
        # Weights of both signs times infinity add up to no number.
        return or_infinity(np.array([sample.weights @ terms, sample.weights @ terms**2]))


def standard_error(total: Array, square: Array, size: int) -> Array:
    """Return the standard error of a total of independent terms, given the sum of the terms' squares."""
    if size == 1:
        return np.full(total.shape, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        error: Array = np.sqrt((square - total**2 / size).clip(min=0) * (size / (size - 1)))
    return or_infinity(error)


def add_jump(smooth: RiskCurve, rule: Rule, density: Callable[[Array], Array]) -> RiskCurve:
    """Return the curve with the jumps of the rule added, given the density of |Y| times P at any positions.

    A jump adds its height times the density at its position to the degrees of freedom, and 2 sigma^2 times that to the
    risk.
    """
    tried = finite_part(smooth.thresholds)
    jump = np.zeros(smooth.thresholds.size)
    with np.errstate(over="ignore", invalid="ignore"):
        if tried.size:
            for positions, heights in jumps_of(rule, tried):
                jump[: tried.size] += heights * density(positions)
        risk, dof = smooth.risk + 2 * smooth.sigma**2 * jump, smooth.dof + jump
    return dataclasses.replace(smooth, risk=or_infinity(risk), dof=or_infinity(dof))


def check_cells(cells: Cells, thresholds: Array, rule: Rule, bandwidth: float) -> None:
    """Raise if a sample on these cells cannot serve the rule, the thresholds or a kernel of that bandwidth."""
    kinks = kinks_of(rule, thresholds)
    missing = kinks[~cells.have(kinks)]
    what = f"{missing[0]:.17g} and {missing.size - 1} more are not edges of its cells" if missing.size else ""
    if not missing.size and rule.polynomial_width < cells.polynomial_width:
        what = "its cells are too wide for a rule that bends everywhere"
    if what:
        msg = (
            f"this sample was not compressed for this rule and these thresholds: {what}. Pass the same thresholds and "
            "rule to Magnitudes.compress, or use Magnitudes.exact(y)."
        )
        raise ValueError(msg)
    if bandwidth < cells.bandwidth * (1 - 1e-9):
        msg = (
            f"this sample was compressed for bandwidths of at least {cells.bandwidth:.8g}, got "
            f"{bandwidth:.8g}. Pass bandwidth={bandwidth:.8g} to Magnitudes.compress, or use Magnitudes.exact(y)."
        )
        raise ValueError(msg)


def _general_sums(sample: Magnitudes, thresholds: Array, sigma: float, rule: Rule, kernel: Kernel | None) -> Array:
    """Return dof, risk and squares for any rule: the definition, evaluated threshold by threshold."""
    z = sample.nodes / sigma
    sums = np.empty((3, thresholds.size))
    jumps = jumps_of(rule, thresholds) if kernel is not None else []
    bandwidths = [kernel.bandwidths(positions / sigma) for positions, _ in jumps] if kernel is not None else []
    for k, t in enumerate(thresholds):
        nodes = _off_jumps(sample.nodes, [positions[k] for positions, _ in jumps])
        dof = np.broadcast_to(rule.derivative(nodes, t), nodes.shape).astype(np.float64)
        risk = np.square((nodes - rule(nodes, t)) / sigma) - 1
        for (positions, heights), h in zip(jumps, bandwidths, strict=True):
            dof += heights[k] / sigma * kernel.terms(z, positions[k] / sigma, h[k])  # type: ignore[union-attr]
        risk += 2 * dof
        sums[:, k] = sample.weights @ dof, sample.weights @ risk, sample.weights @ risk**2
    return sums


def _off_jumps(nodes: Array, positions: list[float]) -> Array:
    """Return the sorted nodes with those at a jump moved just below it, where the paper's formula counts them."""
    for position in positions:
        first, last = np.searchsorted(nodes, position), np.searchsorted(nodes, position, side="right")
        if first < last and position > 0:
            nodes = nodes.copy()
            nodes[first:last] = np.nextafter(position, 0)
    return nodes


def _straight_sums(
    sample: Magnitudes, thresholds: Array, sigma: float, rule: PiecewiseLinear, kernel: Kernel | None
) -> Array:
    """Return what `_general_sums` does, for a rule of straight pieces, from cumulative sums of powers.

    On a piece the rule is ``a + b z``, so an entry's term of the risk is the polynomial
    ``((1 - b) z - a)^2 - 1 + 2 b``, and sums over the entries of a piece are differences of cumulative sums.
    """
    slopes, (starts, coefficients) = risk_terms(rule, thresholds, sigma)
    cuts = np.zeros((slopes.shape[0] + 1, thresholds.size), dtype=np.int64)
    cuts[-1] = sample.nodes.size
    for p, start in enumerate(starts, start=1):
        # Entries at a start belong below it, except at 0, where every rule is the identity.
        cuts[p] = np.where(start > 0, np.searchsorted(sample.nodes, start, side="right"), 0)

    z = sample.nodes / sigma
    powers = np.zeros((5, z.size + 1))
    term = sample.weights
    for q in range(5):
        np.cumsum(term, out=powers[q, 1:])
        term = term * z if q < 4 else term
    within = np.diff(powers[:, cuts], axis=1)
    within[0] = np.rint(within[0])  # a count, also of weighted nodes, for cells end where pieces do
    c0, c1, c2 = coefficients.transpose(1, 0, 2)
    sums = np.stack(
        [
            (slopes * within[0]).sum(axis=0),
            _total([c0, c1, c2], within),
            _total([c0 * c0, 2 * c0 * c1, c1 * c1 + 2 * c0 * c2, 2 * c1 * c2, c2 * c2], within),
        ]
    )
    if kernel is not None:
        assert not callable(kernel.bandwidth)
        for positions, heights in jumps_of(rule, thresholds):
            share = kernel.normalisation(kernel.bandwidth) * heights / sigma
            many = sample.cells is None and sample.size * thresholds.size > _MOST_PAIRS
            add = _jump_on_cells if many and np.array_equal(positions, thresholds) else _jump_sums
            sums += add(sample, thresholds, _Jump(positions, share, kernel.bandwidth), rule, sigma)
    return sums


def _total(coefficients: list[Array], within: Array) -> Array:
    """Return the sum of coefficients times sums of powers, over powers and pieces.

    A sum of powers may overflow. It counts for nothing where its coefficient is 0, as on the last piece of most rules,
    and so does an infinite coefficient on a piece without entries.
    """
    factors = np.stack(coefficients)
    terms = factors * within[: len(factors)]
    if not np.isfinite(terms).all():
        terms[(factors == 0) | (within[0] == 0)] = 0
    total: Array = terms.sum(axis=(0, 1))
    return total


def risk_terms(rule: PiecewiseLinear, thresholds: Array, sigma: float) -> tuple[Array, PiecewisePolynomial]:
    """Return the slopes of the rule, and an entry's term of the risk; per piece and threshold."""
    pieces = rule.pieces(thresholds)
    starts = [np.broadcast_to(piece.start, thresholds.size) for piece in pieces[1:]]
    slopes, coefficients = np.empty((len(pieces), thresholds.size)), np.empty((len(pieces), 3, thresholds.size))
    for p, (_, intercept, b) in enumerate(pieces):
        a = intercept / sigma
        slopes[p] = b
        coefficients[p, 0], coefficients[p, 1] = a * a - 1 + 2 * b, -2 * (1 - b) * a
        coefficients[p, 2] = (1 - b) ** 2
    return slopes, PiecewisePolynomial(starts, coefficients)


class _Jump(NamedTuple):
    """A jump of a rule at every threshold.

    Attributes
    ----------
    positions
        In units of y.
    share
        The height over sigma, times the factor that turns kernel sums into densities.
    bandwidth
        In units of sigma.
    """

    positions: Array
    share: Array
    bandwidth: float


def _jump_sums(sample: Magnitudes, thresholds: Array, jump: _Jump, rule: PiecewiseLinear, sigma: float) -> Array:
    """Return what the jump of a rule of straight pieces adds to dof, risk and squares."""
    positions, share, h = jump
    _, terms = risk_terms(rule, thresholds, sigma)
    k1, k2, ks = kernel_sums(sample, positions / sigma, terms, sigma=sigma, bandwidth=h)
    dof = np.where(k1 == 0, 0.0, share * k1)  # a share beyond the largest double, where no entry is near
    return np.stack([dof, 2 * dof, 4 * share * (ks + share * k2)])


def _jump_on_cells(sample: Magnitudes, thresholds: Array, jump: _Jump, rule: PiecewiseLinear, sigma: float) -> Array:
    """Return what `_jump_sums` does, for a jump at the threshold, if there are too many thresholds to sum at each.

    As a function of the threshold a kernel sum is as smooth as the kernel: it is interpolated from 12 points per
    cell, to rounding. The squares have steps in them; they are interpolated linearly from the ends of the cells.
    """
    positions, share, h = jump
    width = BANDWIDTHS_PER_CELL * h * sigma / 2
    bins, where = np.unique(np.floor(positions / width), return_inverse=True)
    edges = np.unique(np.concatenate([bins, bins + 1])) * width
    small = gather(sample.nodes, Cells.make(edges, rule, sigma, h * sigma))

    points = (bins[:, None] + (1 + NODES) / 2).ravel() * (width / sigma)
    none = PiecewisePolynomial([], np.zeros((1, 3, points.size)))
    k1 = kernel_sums(small, points, none, sigma=sigma, bandwidth=h)[0]
    series = k1.reshape(bins.size, NODES.size) @ TO_WEIGHTS.T
    t = 2 * (positions / width - bins[where]) - 1
    last, this = np.zeros((2, t.size))
    for q in range(NODES.size - 1, 0, -1):  # Clenshaw's sum of the Chebyshev series
        last, this = this, 2 * t * this - last + series[where, q]
    dof = share * (t * this - last + series[where, 0])

    _, terms = risk_terms(rule, edges, sigma)
    _, k2, ks = kernel_sums(small, edges / sigma, terms, sigma=sigma, bandwidth=h)
    squares = 4 * share * (np.interp(positions, edges, ks) + share * np.interp(positions, edges, k2))
    return np.stack([dof, 2 * dof, squares])
