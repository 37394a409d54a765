"""Local low rank: every patch of a series is a matrix, entries x volumes, whose singular values are shrunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats
from .._normal import phi
from .._validate import Array
from ..noise.bulk import spike_root
from ..risk.singular_values import shrink_stack

__all__ = ["PatchEstimate", "gram_eigenvalues", "shrink_patches"]

# Derivatives of the shrinkage are cut off here. Just above the edge they are infinite for a moment, and on average over
# the noise of a singular value below 3.
MAX_SLOPE = 3.0
JUMP = True


@dataclass(frozen=True, eq=False)
class PatchEstimate:
    """What was made of patches with noise of level 1 per entry.

    Attributes
    ----------
    value : ndarray
        The estimate, (patches, entries, volumes).
    divergence : ndarray
        Summed over the volumes, (patches, entries).
    rank : ndarray
        Singular values that were kept besides the mean, (patches,).
    risk : ndarray
        Estimated risk per entry and volume, (patches,).
    """

    value: Floats
    divergence: Array
    rank: NDArray[np.int64]
    risk: Array


def _centred(y: Floats, valid: NDArray[np.bool_]) -> tuple[Floats, Floats, Array]:
    """Return the patches less their mean over the valid entries, the mean, and the number of valid entries."""
    count = valid.sum(axis=1)
    shown = np.where(valid[..., None], y, 0.0)
    mean = shown.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None, None]
    return np.where(valid[..., None], shown - mean, 0.0), mean, count


def _gram(y: Floats) -> Floats:
    """Return the smaller one of both matrices of inner products."""
    adjoint = np.swapaxes(y, 1, 2).conj()
    out: Floats = adjoint @ y if y.shape[2] <= y.shape[1] else y @ adjoint
    return out


def gram_eigenvalues(y: Floats, valid: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the squared singular values of patches less their mean, descending, and the number of valid entries."""
    centred, _, count = _centred(y, valid)
    return np.maximum(np.linalg.eigvalsh(_gram(centred))[:, ::-1], 0.0), count


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
    vectors of the bulk are random: their mean ``g`` serves them all.
    """
    centred, mean, count = _centred(y, valid)
    volumes = y.shape[2]
    rows = np.maximum(count - 1, 0)
    eigenvalues, vectors = np.linalg.eigh(_gram(centred))
    s = np.sqrt(np.maximum(eigenvalues[:, ::-1], 0.0))
    size = np.minimum(rows, volumes)
    edge = np.sqrt(rows) + np.sqrt(volumes)
    rank = np.minimum(np.count_nonzero(s > edge[:, None], axis=1), size)
    most = max(int(rank.max(initial=0)), 1)
    spikes = np.where(np.arange(most) < rank[:, None], s[:, :most], 1.0)
    values, slopes = shrink_stack(spikes, rank, rows, np.full_like(rows, volumes))
    ratio = values / spikes
    leading = vectors[:, :, : -most - 1 : -1]
    if volumes <= y.shape[1]:
        projected = centred @ leading
        leverage = np.abs(projected / spikes[:, None]) ** 2
        shrunk = (projected * ratio[:, None]) @ np.swapaxes(leading, 1, 2).conj()
    else:
        leverage = np.abs(leading) ** 2
        shrunk = (leading * ratio[:, None]) @ (np.swapaxes(leading, 1, 2).conj() @ centred)
    leverage = np.where(np.arange(most) < rank[:, None, None], leverage, 0.0)
    own = np.minimum(slopes, MAX_SLOPE)
    own = (own + ratio) / 2 if np.iscomplexobj(y) else own
    gains, rest = _gains(s, spikes, values, own, (rank, size))
    gains += np.maximum(volumes - rows, 0)[:, None] * ratio
    others = (rest + (rows - size) * ratio.sum(axis=1)) / np.maximum(rows - rank, 1)
    share = 1 / np.maximum(count, 1)
    unexplained = np.maximum(1 - share[:, None] - leverage.sum(axis=2), 0.0)
    divergence = np.einsum("bmk,bk->bm", leverage, gains) + unexplained * others[:, None] + volumes * share[:, None]
    if JUMP:
        parts = 2 if np.iscomplexobj(y) else 1
        height = np.maximum(
            (spike_root(edge, np.maximum(rows - rank - 1, 0), np.maximum(volumes - rank - 1, 0)) - 1)
            / np.maximum(edge, 1e-9),
            0.0,
        )
        near = (
            np.where(
                np.arange(s.shape[1]) < size[:, None], phi((s - edge[:, None]) * np.sqrt(parts)) * np.sqrt(parts), 0.0
            ).sum(axis=1)
            / parts
        )
        divergence += (height * near * share)[:, None]
    divergence = np.where(valid, divergence, 0.0)
    residual = (s**2).sum(axis=1) - (values * (2 * spikes - values)).sum(axis=1)
    entries = np.maximum(count, 1) * volumes
    risk = residual / entries - 1 + 2 * divergence.sum(axis=1) / entries
    return PatchEstimate(np.where(valid[..., None], shrunk + mean, 0.0), divergence, rank, risk)


def _gains(s: Array, spikes: Array, values: Array, own: Array, sizes: tuple[Any, Any]) -> tuple[Array, Array]:
    """Return the gain of every spike's left vector, and the sum of those of the bulk.

    The gain is the sum over j of ``(s_i a_i - s_j a_j)/(s_i^2 - s_j^2)``, with `own` for ``j = i``.
    """
    rank, size = sizes
    most = spikes.shape[1]
    kept = np.arange(most) < rank[:, None]
    weighted = spikes * values
    x = spikes[:, :, None] ** 2 - spikes[:, None, :] ** 2
    both = kept[:, :, None] & kept[:, None, :] & (x != 0)
    among = np.where(both, (weighted[:, :, None] - weighted[:, None, :]) / np.where(both, x, 1.0), 0.0).sum(axis=2)
    index = np.arange(s.shape[1])
    bulk = kept[:, :, None] & ((index >= rank[:, None]) & (index < size[:, None]))[:, None, :]
    gap = np.where(bulk, spikes[:, :, None] ** 2 - s[:, None, :] ** 2, 1.0)
    rest = np.where(bulk, weighted[:, :, None] / gap, 0.0).sum(axis=2)
    return np.where(kept, own + among + rest, 0.0), rest.sum(axis=1)
