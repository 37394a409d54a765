"""What a model of the noise has to offer."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .stabilisers import Stabiliser


class ChosenNoise(NamedTuple):
    """The noise model for some data: outliers, (*shape), that it does not explain, and remarks on the choice."""

    model: NoiseModel
    outliers: NDArray[np.bool_] | None = None
    remarks: tuple[str, ...] = ()


class NoiseModel(abc.ABC):
    """A kind of noise, as named by the user, with whatever is known of it.

    A subclass states `measure`. The other members have defaults that suit noise about which nothing has to be said per
    channel or per entry.
    """

    #: What it is called in a sentence.
    name: ClassVar[str] = "noise of this model"
    #: Whether constant regions and channels hold no noise. Not for counts: dark regions are constant.
    spares_constants: ClassVar[bool] = True
    #: Whether values at the ends of the range may be clipped noise.
    clips: ClassVar[bool] = True
    #: Whether few slices of a volume may be treated as channels.
    slices: ClassVar[bool] = False
    #: Whether what was removed is compared with the model.
    judged: ClassVar[bool] = True
    #: Whether crops of large data tell as much as all of it. `measure` then gets crops side by side, apart by entries
    #: that are missing.
    sampled: ClassVar[bool] = False
    #: Whether outliers are looked for.
    finds_outliers: ClassVar[bool] = False
    #: What the noise level is measured in, for people to read.
    level_units: ClassVar[str] = "in units of the data"

    @property
    def checks_channels(self) -> bool:
        """Whether noise that channels share is looked for after they were rotated."""
        return False

    @property
    def level_given(self) -> bool:
        """Whether the user gave a noise level, which may be wrong."""
        return False

    def laid_out(
        self, y: NDArray[Any], channel_axis: int | None, missing: NDArray[np.bool_] | None = None
    ) -> NoiseModel:
        """Return the model with what was given per channel or entry in the layout of y: (channels, parts, *shape).

        `missing`, of shape (*shape), marks entries about which nothing has to be known.
        """
        return self

    def of_channels(self, chosen: NDArray[np.bool_]) -> NoiseModel:
        """Return the model of some of the channels."""
        return self

    def of_slices(self) -> NoiseModel:
        """Return the model of slices of a volume, which share one noise level."""
        return self

    def chosen_for(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> ChosenNoise:
        """Return the model to use for y, (channels, parts, *shape): this one, unless its kind is to be found out."""
        return ChosenNoise(self)

    def with_measured(self, stabiliser: Stabiliser) -> NoiseModel:
        """Return the model with what was measured in place of what was not given."""
        return self

    @abc.abstractmethod
    def measure(self, y: NDArray[Any], missing: NDArray[np.bool_] | None) -> Stabiliser | None:
        """Return what stabilises y, (channels, parts, *shape); None if there is no noise. `missing` is (*shape)."""
