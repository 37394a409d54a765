"""What is returned of data in which no noise was found."""

from __future__ import annotations

import numpy as np

from ..noise.base import NoiseModel
from ..noise.models import MOST_COUNTS
from .error_map import ErrorBlocks, joined
from .layout import Layout
from .result import Denoised
from .verdict import NO_NOISE

_PHOTONS = (
    "No noise was found, and the data were left as they are. But they may be counts of single photons: they are whole "
    "numbers, and neighbours differ as much as counts do. If so, pass noise='poisson'."
)
# Half the mean squared difference of neighbours, over the mean, of data that may be counts. It is 1 for Poisson's law,
# and more where the signal varies.
PHOTON_RATIOS = 0.7, 1.4


def unchanged(layout: Layout, model: NoiseModel, automatic: bool) -> Denoised:
    """Return data as they are, with a doubt if the model was found out and they may be single photons."""
    doubts = (_PHOTONS,) if automatic and may_be_photons(layout) else ()
    verdict = " ".join(doubts) or NO_NOISE
    blocks = ErrorBlocks(layout.shape, joined(layout.shape, ()), 1.0, 0.0)
    return Denoised(
        layout.unchanged(), 0.0, 0.0, 0.0, (), {}, noise=model, verdict=verdict, warnings=doubts, error_blocks=blocks
    )


def may_be_photons(layout: Layout) -> bool:
    """Return whether data may be counts that stand apart, which look like spikes."""
    y, unknown = layout.values, layout.unknown
    known = y if unknown is None else y[:, :, ~unknown]
    if y.shape[1] > 1 or not known.size or known.min() < 0 or known.max() > MOST_COUNTS:
        return False
    if not (known == np.rint(known)).all():
        return False
    values = y.astype(np.float64)
    if unknown is not None:
        values[:, :, unknown] = np.nan
    squares, mean = np.square(np.diff(values, axis=-1)) / 2, float(known.mean(dtype=np.float64))
    if np.isnan(squares).all() or not mean > 0:
        return False
    return PHOTON_RATIOS[0] < float(np.nanmean(squares)) / mean < PHOTON_RATIOS[1]
