"""Local low rank: every patch of a series is a matrix, entries x volumes, whose singular values are shrunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats
from ..._kernels import MOST_SIDE, symmetric_eigen
from ..._normal import phi
from ..._validate import Array
from ...noise.bulk import spike_root
from ...risk.singular_values import shrink_stack

__all__ = ["PatchEstimate", "gram_eigenvalues", "shrink_patches"]

# Derivatives of the shrinkage are cut off here. Just above the edge they are infinite for a moment, and on average over
# the noise of a singular value below 3.
MAX_SLOPE = 3.0


@dataclass(frozen=True, eq=False)
class PatchEstimate:
    """What was made of patches with noise of level 1 per entry.

    Attributes
    ----------
    value : ndarray
        The estimate, (patches, entries, volumes).
    divergence : ndarray
        Summed over the volumes, (patches, entries).
    of_volumes : ndarray
        The same summed over the entries, (patches, volumes).
    rank : ndarray
        Singular values that were kept besides the mean, (patches,).
    """

    value: Floats
    divergence: Array
    of_volumes: Array
    rank: NDArray[np.int64]


def _centred(y: Floats, valid: NDArray[np.bool_]) -> tuple[Floats, Floats, Array]:
    """Return the patches less their mean over the valid entries, the mean, and the number of valid entries."""
    count = valid.sum(axis=1)
    shown = _shown(y, valid)
    mean = shown.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None, None]
    return _shown(shown - mean, valid), mean, count


def _shown(values: Floats, valid: NDArray[np.bool_]) -> Floats:
    """Return the values, 0 where entries are not valid."""
    return values if valid.all() else np.where(valid[..., None], values, 0.0)


def _gram(y: Floats) -> Floats:
    """Return the smaller one of both matrices of inner products."""
    adjoint = np.swapaxes(y, 1, 2).conj()
    out: Floats = adjoint @ y if y.shape[2] <= y.shape[1] else y @ adjoint
    return out


def _eigen(matrices: Floats) -> tuple[Array, Floats]:
    """Return eigenvalues, descending, and eigenvectors, as columns, of Hermitian matrices."""
    if matrices.dtype == np.float64 and matrices.shape[1] <= MOST_SIDE:
        found = symmetric_eigen(matrices)
        return found.values, np.swapaxes(found.vectors, 1, 2)
    values, vectors = np.linalg.eigh(matrices)
    return values[:, ::-1], vectors[:, :, ::-1]


def _squared(a: Floats) -> Array:
    """Return squared magnitudes."""
    out: Array = np.square(a.real)
    return out + np.square(a.imag) if np.iscomplexobj(a) else out


def gram_eigenvalues(y: Floats, valid: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the squared singular values of patches less their mean, descending, and the number of valid entries."""
    centred, _, count = _centred(y, valid)
    return np.maximum(_eigen(_gram(centred))[0], 0.0), count


def shrink_patches(y: Floats, valid: NDArray[np.bool_]) -> PatchEstimate:
    """Shrink the singular values of patches with noise of level 1 per entry.

    Parameters
    ----------
    y : ndarray
        Patches, (patches, entries, volumes), in double precision. Real, or complex with both parts together of level 1.
    valid : ndarray of bool
        Which entries of a patch hold data, (patches, entries).

    Returns
    -------
    PatchEstimate
        Values are 0 where entries are not valid.

    Notes
    -----
    The mean over the entries is removed first, which leaves one row less, and added again; it costs one degree of
    freedom per volume. The Jacobian of the shrinkage is diagonal in the basis ``u_i v_j'``, up to couplings that do not
    matter here, so the divergence of row x is ``sum_i |u_xi|^2 g_i``, with ``g_i`` the sum of the diagonal over j. The
    vectors of the bulk are random: their mean ``g`` serves them all. So is where the jump at the edge happens.
    """
    centred, mean, count = _centred(y, valid)
    eigenvalues, vectors = _eigen(_gram(centred))
    spectrum = _shrink_spectrum(np.sqrt(np.maximum(eigenvalues, 0.0)), count, y)
    spikes, values, rank = spectrum.spikes, spectrum.values, spectrum.rank
    leading = vectors[:, :, : spikes.shape[1]]
    ratio = (values / spikes)[:, None]
    if y.shape[2] <= y.shape[1]:
        projected = centred @ leading
        left, right = _squared(projected / spikes[:, None]), _squared(leading)
        shrunk = (projected * ratio) @ np.swapaxes(leading, 1, 2).conj()
    else:
        projected = np.swapaxes(leading, 1, 2).conj() @ centred
        left, right = _squared(leading), np.swapaxes(_squared(projected / spikes[..., None]), 1, 2)
        shrunk = (leading * ratio) @ projected
    share = 1 / np.maximum(count, 1)[:, None]
    of_entries = _spread(left, spectrum.left, rank, 1 - share) + (y.shape[2] + spectrum.jump[:, None]) * share
    of_volumes = _spread(right, spectrum.right, rank, 1.0) + 1 + spectrum.jump[:, None] / y.shape[2]
    return PatchEstimate(_shown(shrunk + mean, valid), np.where(valid, of_entries, 0.0), of_volumes, rank)


def _spread(leverage: Array, gains: tuple[Array, Array], rank: NDArray[np.int64], whole: Any) -> Array:
    """Return the divergence of entries or volumes, by their leverage on the spikes and on all other vectors.

    Parameters
    ----------
    leverage : ndarray
        Squares of the entries of leading singular vectors, (patches, entries, k).
    gains : tuple of ndarray
        Those of the spikes, (patches, k), and the mean of the others, (patches,).
    rank : ndarray
        The number of spikes, (patches,).
    whole : float or ndarray
        The sum of an entry's leverage over all vectors.
    """
    spikes, others = gains
    leverage = np.where(np.arange(leverage.shape[2]) < rank[:, None, None], leverage, 0.0)
    rest = np.maximum(whole - leverage.sum(axis=2), 0.0)
    out: Array = np.einsum("bmk,bk->bm", leverage, spikes) + rest * others[:, None]
    return out


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """Shrunk singular values of patches, and the gains of their vectors.

    Attributes
    ----------
    spikes, values : ndarray
        The leading singular values and what becomes of them, (patches, k); spikes are 1 beyond the rank.
    left, right : tuple of ndarray
        The gains of the spikes' vectors, (patches, k), and the mean gain of all other vectors, (patches,).
    jump : ndarray
        The divergence of the jump at the edge, (patches,).
    rank : ndarray
        The number of spikes, (patches,).
    """

    spikes: Array
    values: Array
    left: tuple[Array, Array]
    right: tuple[Array, Array]
    jump: Array
    rank: NDArray[np.int64]


def _shrink_spectrum(s: Array, count: Array, y: Floats) -> _Spectrum:
    """Shrink the singular values of patches with `count` valid entries, less their mean."""
    volumes, parts = y.shape[2], 2 if np.iscomplexobj(y) else 1
    rows = np.maximum(count - 1, 0)
    size = np.minimum(rows, volumes)
    edge = np.sqrt(rows) + np.sqrt(volumes)
    rank = np.minimum(np.count_nonzero(s > edge[:, None], axis=1), size)
    most = max(int(rank.max(initial=0)), 1)
    spikes = np.where(np.arange(most) < rank[:, None], s[:, :most], 1.0)
    values, slopes = shrink_stack(spikes, rank, rows, np.full_like(rows, volumes))
    ratio = values / spikes
    own = np.minimum(slopes, MAX_SLOPE)
    own = own if parts == 1 else (own + ratio) / 2
    gains, rest = _gains(s, spikes, values, own, (rank, size))
    left, right = (
        (
            gains + np.maximum(across - along, 0)[:, None] * ratio,
            (rest + (along - size) * ratio.sum(axis=1)) / np.maximum(along - rank, 1),
        )
        for along, across in ((rows, volumes), (np.full_like(rows, volumes), rows))
    )
    height = (spike_root(edge, *(np.maximum(side - rank - 1, 0) for side in (rows, volumes))) - 1) / edge
    near = np.sqrt(parts) * phi(np.sqrt(parts) * (s - edge[:, None])) / parts
    density = np.where(np.arange(s.shape[1]) < size[:, None], near, 0.0).sum(axis=1)
    return _Spectrum(spikes, values, left, right, np.maximum(height, 0.0) * density, rank)


def _gains(s: Array, spikes: Array, values: Array, own: Array, sizes: tuple[Any, Any]) -> tuple[Array, Array]:
    """Return the gain of every spike's left vector, and the sum of those of the bulk.

    The gain is the sum over j of ``(s_i a_i - s_j a_j)/(s_i^2 - s_j^2)``, with `own` for ``j = i``.
    """
    rank, size = sizes
    most, index = spikes.shape[1], np.arange(s.shape[1])
    kept = np.arange(most) < rank[:, None]
    weighted = np.where(kept, spikes * values, 0.0)
    gap = spikes[:, :, None] ** 2 - s[:, None, :] ** 2
    # The same value, and ties, have no gap.
    counted = kept[:, :, None] & (index < size[:, None])[:, None, :] & (gap != 0)
    inverse = counted / np.where(counted, gap, 1.0)
    among = weighted * inverse.sum(axis=2) - np.einsum("bij,bj->bi", inverse[:, :, :most], weighted)
    rest = np.einsum("bi,bij,bj->b", weighted, inverse, (index >= rank[:, None]).astype(float), optimize=True)
    return np.where(kept, own + among, 0.0), rest
