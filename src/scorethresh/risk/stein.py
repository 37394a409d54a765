"""Stein's formula with jumps: the sums that SURE and SCORE are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from .._validate import Array
from ..rules import PiecewiseLinear, Rule, jumps_of, kinks_of
from ..sample.cells import BANDWIDTHS_PER_CELL, REACH, Cells
from ..sample.magnitudes import NODES, TO_WEIGHTS, Magnitudes, gather
from .curve import RiskCurve, finite_part
from .kernel import REACH_EXACT, Kernel, kernel_sums

# Beyond this many (entry, threshold) pairs the kernel sums of an exact sample are taken on a compressed copy.
_MOST_PAIRS = 1 << 26


def stein_curve(
    sample: Magnitudes, thresholds: Array, *, sigma: float, rule: Rule, kernel: Kernel | None = None
) -> RiskCurve:
    """Return ``||y - x||^2 - P sigma^2 + 2 sigma^2 DOF`` at every threshold.

    DOF is the sum of the rule's derivatives plus, per jump, its height times the density of the entries at the jump, as
    estimated by the kernel; without a kernel there is no such term.
    """
    tried = finite_part(thresholds)
    if sample.cells is not None and tried.size:
        _check_cells(sample.cells, tried, rule, sigma, kernel)
    # Rows: dof, risk, and the sum over entries of the squared terms of the risk; in units of sigma.
    sums = np.zeros((3, thresholds.size))
    if tried.size:
        plain = kernel is None or (kernel.shape == "gaussian" and not callable(kernel.width))
        if plain and isinstance(rule, PiecewiseLinear) and len(rule.jumps(1.0)) <= 1:
            sums[:, : tried.size] = _straight_sums(sample, tried, sigma, rule, kernel)
        else:
            sums[:, : tried.size] = _general_sums(sample, tried, sigma, rule, kernel)
    sums[1:, tried.size :] = killed_sums(sample, sigma)[:, None]
    dof, risk, square = sums
    stderr = standard_error(risk, square, sample.size)
    return RiskCurve(thresholds, risk * sigma**2, dof, stderr * sigma**2, sample.size, sigma)


def killed_sums(sample: Magnitudes, sigma: float) -> Array:
    """Return the risk of killing everything and the sum of its squared terms, in units of sigma."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.square(sample.nodes / sigma) - 1
        sums = np.array([sample.weights @ terms, sample.weights @ terms**2])
    # Squares beyond the largest double, of weights of both signs, add up to no number: that is infinity here.
    total: Array = np.nan_to_num(sums, nan=np.inf, posinf=np.inf)
    return total


def standard_error(total: Array, square: Array, size: int) -> Array:
    """Return that of a total of independent terms, from the total and the sum of the terms' squares."""
    if size == 1:
        return np.full(total.shape, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        error: Array = np.sqrt((square - total**2 / size).clip(min=0) * (size / (size - 1)))
    return np.nan_to_num(error, nan=np.inf, posinf=np.inf)


def add_jump(smooth: RiskCurve, rule: Rule, density: Callable[[Array], Array]) -> RiskCurve:
    """Return the curve with the jumps of the rule added, given the density of |Y| times P at any positions."""
    tried = finite_part(smooth.thresholds)
    jump = np.zeros(smooth.thresholds.size)
    if tried.size:
        for positions, heights in jumps_of(rule, tried):
            jump[: tried.size] += heights * density(positions)
    return dataclasses.replace(smooth, risk=smooth.risk + 2 * smooth.sigma**2 * jump, dof=smooth.dof + jump)


def _check_cells(cells: Cells, thresholds: Array, rule: Rule, sigma: float, kernel: Kernel | None) -> None:
    kinks = kinks_of(rule, thresholds)
    missing = kinks[~cells.have(kinks)]
    what = f"{missing[0]:.17g} and {missing.size - 1} more are not edges of its cells" if missing.size else ""
    if not missing.size and rule.polynomial_width < cells.grain:
        what = "its cells are too wide for a rule that bends everywhere"
    if what:
        msg = (
            f"this sample was not compressed for this rule and these thresholds: {what}. Pass the same thresholds and "
            "rule to Magnitudes.compress, or use Magnitudes.exact(y)."
        )
        raise ValueError(msg)
    # Bandwidths that vary, and other shapes, are wider than the paper's wherever there are many entries.
    bandwidth = np.inf if kernel is None or callable(kernel.width) else kernel.width * sigma
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
    widths = [kernel.widths(positions / sigma) for positions, _ in jumps] if kernel is not None else []
    for k, t in enumerate(thresholds):
        nodes = _off_jumps(sample.nodes, [positions[k] for positions, _ in jumps])
        dof = np.broadcast_to(rule.derivative(nodes, t), nodes.shape).astype(np.float64)
        risk = np.square((nodes - rule(nodes, t)) / sigma) - 1
        for (positions, heights), h in zip(jumps, widths, strict=True):
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
    count = thresholds.size
    starts, slopes, smooth = _polynomials(rule, thresholds, sigma)
    cuts = np.zeros((slopes.shape[0] + 1, count), dtype=np.int64)
    cuts[-1] = sample.nodes.size
    for p, start in enumerate(starts, start=1):
        # Entries at a start belong below it, except at 0, where every rule is the identity.
        cuts[p] = np.where(start > 0, np.searchsorted(sample.nodes, start, side="right"), 0)

    z = sample.nodes / sigma
    powers = np.zeros((5, z.size + 1))
    term = sample.weights
    with np.errstate(over="ignore", invalid="ignore"):  # entries beyond 1e77 sigma: see _total
        for q in range(5):
            np.cumsum(term, out=powers[q, 1:])
            term = term * z if q < 4 else term
        within = np.diff(powers[:, cuts], axis=1)
        within[0] = np.rint(within[0])  # a count, also of weighted nodes, for cells end where pieces do
        c0, c1, c2 = smooth.transpose(1, 0, 2)
        sums = np.stack(
            [
                (slopes * within[0]).sum(axis=0),
                _total([c0, c1, c2], within),
                _total([c0 * c0, 2 * c0 * c1, c1 * c1 + 2 * c0 * c2, 2 * c1 * c2, c2 * c2], within),
            ]
        )
    if kernel is not None:
        assert not callable(kernel.width)
        for positions, heights in jumps_of(rule, thresholds):
            many = sample.cells is None and sample.size * count > _MOST_PAIRS
            add = _jump_on_cells if many and np.array_equal(positions, thresholds) else _jump
            share = kernel.share(kernel.width) * heights / sigma
            sums += add(sample, thresholds, positions, share, sigma, rule, kernel.width)
    return sums


def _total(coefficients: list[Array], within: Array) -> Array:
    """Return the sum of coefficients times sums of powers, over powers and pieces.

    Where a coefficient is 0, as those of the last piece mostly are, the sum of powers may be infinite or no number.
    """
    factors = np.stack(coefficients)
    terms = factors * within[: len(factors)]
    if not np.isfinite(terms).all():
        terms[factors == 0] = 0
    total: Array = terms.sum(axis=(0, 1))
    return total


def _polynomials(rule: PiecewiseLinear, thresholds: Array, sigma: float) -> tuple[list[Array], Array, Array]:
    """Return, per piece and threshold: where it starts (the first left out), its slope, the terms' coefficients."""
    pieces = rule.pieces(thresholds)
    starts = [np.broadcast_to(piece.start, thresholds.size) for piece in pieces[1:]]
    slopes, smooth = np.empty((len(pieces), thresholds.size)), np.empty((len(pieces), 3, thresholds.size))
    for p, (_, intercept, b) in enumerate(pieces):
        a = intercept / sigma
        slopes[p] = b
        smooth[p, 0], smooth[p, 1], smooth[p, 2] = a * a - 1 + 2 * b, -2 * (1 - b) * a, (1 - b) ** 2
    return starts, slopes, smooth


def _jump(
    sample: Magnitudes, thresholds: Array, positions: Array, share: Array, sigma: float, rule: PiecewiseLinear, h: float
) -> Array:
    """Return what the one jump of a rule of straight pieces adds to dof, risk and squares."""
    reach = REACH_EXACT if sample.cells is None else REACH
    starts, _, smooth = _polynomials(rule, thresholds, sigma)
    k1, k2, ks = kernel_sums(sample, positions / sigma, starts, smooth, sigma=sigma, h=h, reach=reach)
    return np.stack([share * k1, 2 * share * k1, 4 * share * (ks + share * k2)])


def _jump_on_cells(
    sample: Magnitudes, thresholds: Array, positions: Array, share: Array, sigma: float, rule: PiecewiseLinear, h: float
) -> Array:
    """Return what `_jump` does, for a jump at the threshold, when there are too many thresholds to sum at each.

    As a function of the threshold a kernel sum is as smooth as the kernel: it is interpolated from 12 points per
    cell, to rounding. The squares have steps in them; they are interpolated linearly from the ends of the cells.
    """
    width = BANDWIDTHS_PER_CELL * h * sigma / 2
    bins, where = np.unique(np.floor(positions / width), return_inverse=True)
    edges = np.unique(np.concatenate([bins, bins + 1])) * width
    small = gather(sample.nodes, Cells.make(edges, rule, sigma, h * sigma))

    points = (bins[:, None] + (1 + NODES) / 2).ravel() * (width / sigma)
    k1 = kernel_sums(small, points, [], np.zeros((1, 3, points.size)), sigma=sigma, h=h, reach=REACH)[0]
    series = k1.reshape(bins.size, NODES.size) @ TO_WEIGHTS.T
    t = 2 * (positions / width - bins[where]) - 1
    last, this = np.zeros((2, t.size))
    for q in range(NODES.size - 1, 0, -1):  # Clenshaw's sum of the Chebyshev series
        last, this = this, 2 * t * this - last + series[where, q]
    dof = share * (t * this - last + series[where, 0])

    starts, _, smooth = _polynomials(rule, edges, sigma)
    _, k2, ks = kernel_sums(small, edges / sigma, starts, smooth, sigma=sigma, h=h, reach=REACH)
    squares = 4 * share * (np.interp(positions, edges, ks) + share * np.interp(positions, edges, k2))
    return np.stack([dof, 2 * dof, squares])
