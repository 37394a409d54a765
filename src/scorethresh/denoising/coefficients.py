"""Thresholds for the coefficients that PyWavelets returns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..noise.level import estimate_sigma
from ..risk.methods import Method, Selector
from ..rules import Rule, as_rule
from ..select.shrink import PosteriorMean, Shrunk
from ..select.threshold import DEFAULT, Selection, find_threshold

__all__ = ["Thresholded", "threshold_coeffs"]


@dataclass(frozen=True, eq=False)
class Thresholded:
    """Coefficients after thresholding.

    Attributes
    ----------
    coeffs : list
        In the structure of the input, for ``pywt.waverec`` and its relatives.
    selections : list
        The `Selection` of every detail band, or its `Shrunk`, in the same structure, without the approximations. Each
        has a predicted risk and degrees of freedom.
    sigma : float
        The noise level of the data that was used.

    See Also
    --------
    threshold_coeffs : Returns this.
    """

    coeffs: list[Any]
    selections: list[Any]
    sigma: float

    def __repr__(self) -> str:
        return f"<Thresholded: {len(self.coeffs)} levels of coefficients, sigma {self.sigma:.4g}>"


def threshold_coeffs(
    coeffs: Any,
    *,
    sigma: float | None = None,
    rule: str | Rule | PosteriorMean = "hard",
    method: str | Method | Selector = DEFAULT,
    norm: bool = False,
) -> Thresholded:
    """Threshold the coefficients of ``pywt.wavedec``, ``wavedec2``, ``wavedecn``, ``swt``, ``swt2`` or ``swtn``.

    Every detail band gets the threshold of least estimated risk. Approximations are not changed.

    Parameters
    ----------
    coeffs : list
        Coarsest level first, as PyWavelets orders them.
    sigma : float, optional
        The noise level of the data. For orthogonal wavelets every band has the same. If None it is estimated by the
        median magnitude of the finest detail, divided by 0.6745.
    rule : str, Rule or PosteriorMean
        As in `select_threshold`; or ``"posterior"``, which has no threshold: every band is shrunk by the distribution
        of its own means, as by `shrink`.
    method
        As in `select_threshold`. The posterior mean takes none.
    norm : bool
        Whether the stationary transform was computed with ``norm=True``, which halves the noise variance per level
        and transformed axis.

    Returns
    -------
    Thresholded
        ``.coeffs`` in the structure of the input, ``.selections`` of the bands.

    See Also
    --------
    select_threshold : The choice for one band.
    shrink : The posterior mean for one band.
    denoise : Denoise data without choosing a transform.

    Examples
    --------
    >>> import pywt
    >>> rng = np.random.default_rng(0)
    >>> clean = pywt.data.demo_signal("blocks", 1024)
    >>> noisy = clean + rng.normal(size=1024)
    >>> found = threshold_coeffs(pywt.wavedec(noisy, "haar"), sigma=1.0)
    >>> estimate = pywt.waverec(found.coeffs, "haar")
    >>> bool(np.mean((estimate - clean) ** 2) < 0.3)
    True
    """
    run = _treatment(rule, method)
    approximation, levels = _split(coeffs)
    finest = _details(levels[-1])[-1]
    step = 2.0 ** (-_transformed_axes(levels[-1]) / 2) if norm else 1.0
    if sigma is None:
        sigma = estimate_sigma(finest.ravel()) / step
    level = _validate.noise_level(sigma)
    selections = []
    for k, bands in enumerate(levels):
        selections.append(_map_bands(bands, functools.partial(run, sigma=level * step ** (len(levels) - k))))
    treated = [_with_estimates(*pair) for pair in zip(levels, selections, strict=True)]
    return Thresholded(approximation + treated, selections, level)


def _treatment(rule: Any, method: Any) -> Callable[..., Selection | Shrunk]:
    """Return what is done to a band, as a function of it and of sigma."""
    if rule == "posterior":
        rule = PosteriorMean()
    if not isinstance(rule, PosteriorMean):
        return functools.partial(find_threshold, rule=as_rule(rule), method=method)
    if method != DEFAULT:
        msg = f'rule="posterior" has no threshold to choose, got method={method!r}. Leave the method out.'
        raise ValueError(msg)
    return rule.run


def _split(coeffs: Any) -> tuple[list[Any], list[Any]]:
    """Return the coarsest approximation, as a list that may be empty, and the levels of details."""
    if not isinstance(coeffs, list | tuple) or not coeffs:
        what = f"{type(coeffs).__name__} of length 0" if isinstance(coeffs, list | tuple) else type(coeffs).__name__
        msg = (
            f"coeffs must be a list as pywt.wavedec returns it, got {what}. For an array of coefficients: "
            "select_threshold."
        )
        raise TypeError(msg)
    # Stationary transforms that are not trimmed have an approximation at every level: pairs, or dicts with a key that
    # consists of the letter a.
    first = coeffs[0]
    paired = isinstance(first, tuple) or (isinstance(first, dict) and any(set(key) == {"a"} for key in first))
    approximation, levels = ([], list(coeffs)) if paired else (list(coeffs[:1]), list(coeffs[1:]))
    if not levels:
        msg = "coeffs holds an approximation and no details: nothing to threshold. Ask pywt for one level or more."
        raise ValueError(msg)
    for k, level in enumerate(levels):
        if not all(isinstance(band, np.ndarray) for band in _details(level)):
            msg = f"level {k} of coeffs must be an array, or a tuple or dict of arrays, got {type(level).__name__}."
            raise TypeError(msg)
    return approximation, levels


def _details(level: Any) -> list[NDArray[Any]]:
    """Return the detail bands of a level; the last is the detail along all axes."""
    if isinstance(level, dict):
        return [level[key] for key in sorted(level) if set(key) != {"a"}]
    if isinstance(level, tuple):
        return _details(level[1]) if len(level) == 2 else list(level)
    return [level]


def _transformed_axes(level: Any) -> int:
    """Return the number of transformed axes; the arrays may have more."""
    if isinstance(level, dict):
        return len(next(iter(level)))
    if isinstance(level, tuple):
        return _transformed_axes(level[1]) if len(level) == 2 else 2
    return 1


def _map_bands(level: Any, run: Callable[[NDArray[Any]], Selection | Shrunk]) -> Any:
    """Return the results of `run` on the detail bands of a level, in their structure, without the approximation."""
    if isinstance(level, dict):
        return {key: run(band) for key, band in level.items() if set(key) != {"a"}}
    if isinstance(level, tuple):
        return _map_bands(level[1], run) if len(level) == 2 else tuple(run(band) for band in level)
    return run(level)


def _with_estimates(level: Any, selections: Any) -> Any:
    """Return a level with its detail bands replaced by their estimates."""
    if isinstance(level, dict):
        return {key: selections[key].estimate if key in selections else band for key, band in level.items()}
    if isinstance(level, tuple) and len(level) == 2:
        return level[0], _with_estimates(level[1], selections)
    if isinstance(level, tuple):
        return tuple(selection.estimate for selection in selections)
    return selections.estimate
