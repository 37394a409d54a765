"""The standard error of a risk under a fitted distribution of means, by the delta method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._normal import phi
from .._validate import Array
from .npmle import SPACING

__all__ = ["Parameters", "parameter_covariance", "parameters_of"]

# All in units of sigma. Derivatives are differences over this step: the error is of the order of its square.
STEP = 0.01
# Means below 1 are not told apart one by one: of each, y^2 tells less about the mean than the noise adds. Only their
# number and energy count.
SMALL = 1.0
# Atoms this close are neighbours on the grid of the fit, and stand for one mean between them.
NEIGHBOURS = 1.5 * SPACING
# Directions with a smaller share of the information than this are rounding.
LEAST_INFORMATION = 1e-9


class Parameters(NamedTuple):
    """What the data tell about a fit: the masses of groups of atoms, where they lie, and the energy of small means.

    A function of the mean, such as a risk or a density, changes with the parameters by its values at `means` times
    `combinations`.

    Attributes
    ----------
    means : ndarray
        The atoms of the fit, then the ends of differences, in units of sigma.
    combinations : ndarray
        Per mean (rows) and parameter (columns).
    masses : ndarray
        Entries in each group. The first parameters are these.
    sizes : ndarray
        Entries that each parameter is about.
    energy : ndarray
        The gradient of the energy of the small means; of size 0 if there are none.
    """

    means: Array
    combinations: Array
    masses: Array
    sizes: Array
    energy: Array


def parameters_of(atoms: Array, masses: Array) -> Parameters:
    """Return the parameters of a fit, given ascending means in units of sigma and the number of entries at each.

    Neighbours on the grid form a group, and all means below sigma form one. A group has a mass and, but for the small
    means, a place. The small means have an energy, the sum of their squares.
    """
    first = np.append(True, (np.diff(atoms) > NEIGHBOURS) & (atoms[1:] >= SMALL))
    group = np.cumsum(first) - 1
    totals = np.bincount(group, masses).astype(np.float64)
    average = np.zeros((atoms.size, totals.size))
    average[np.arange(atoms.size), group] = masses / totals[group]
    small = atoms[0] < SMALL
    places, moved = (atoms @ average)[int(small) :], totals.size - int(small)
    means = np.concatenate([atoms, places + STEP, places - STEP, [0.0, STEP] if small else []])
    combinations = np.zeros((means.size, totals.size + moved + int(small)))
    combinations[: atoms.size, : totals.size] = average
    at, place = atoms.size + np.arange(moved), totals.size + np.arange(moved)
    combinations[at, place], combinations[at + moved, place] = 1 / (2 * STEP), -1 / (2 * STEP)
    sizes, energy = np.concatenate([totals, totals[int(small) :]]), np.empty(0)
    if small:
        combinations[-2:, -1] = -1 / STEP**2, 1 / STEP**2
        sizes, energy = np.append(sizes, totals[0]), np.zeros(combinations.shape[1])
        energy[0], energy[-1] = np.square(atoms) @ average[:, 0], 1.0
    return Parameters(means, combinations, totals, sizes, energy)


def parameter_covariance(parameters: Parameters, densities: Array, weights: Array) -> Array:
    """Return the covariance of the fitted parameters for fixed means of the data.

    Parameters
    ----------
    parameters : Parameters
        Those of the fit.
    densities : ndarray
        The density of the magnitudes at the nodes of a quadrature (rows), for each of ``parameters.means``.
    weights : ndarray
        The weights of the quadrature.

    Returns
    -------
    ndarray
        ``J`` is the information about the parameters that the fitted law holds. ``J^-1`` is their covariance if the
        means are drawn anew; what the draw of the means adds is subtracted. The energy of the small means cannot be
        negative: its variance is that of a normal cut off at 0.
    """
    from scipy.special import ndtr

    count, scale = parameters.masses.size, np.sqrt(parameters.sizes)
    columns = densities @ parameters.combinations
    mixture = columns[:, :count] @ parameters.masses
    scaled = columns * np.sqrt(weights / np.maximum(mixture, 1e-300))[:, None] * scale
    shares, directions = np.linalg.eigh(scaled.T @ scaled)
    inverse = directions / np.maximum(shares, LEAST_INFORMATION) @ directions.T
    inverse[np.arange(count), np.arange(count)] -= 1
    covariance: Array = inverse * np.multiply.outer(scale, scale)
    if parameters.energy.size:
        slope = covariance @ parameters.energy
        variance = max(float(parameters.energy @ slope), 1e-300)
        mean = parameters.masses[0] * parameters.energy[0] / np.sqrt(variance)
        hazard = float(phi(mean)) / float(ndtr(mean))
        covariance -= hazard * (hazard + mean) * np.multiply.outer(slope, slope) / variance
    return covariance
