"""The door: blurred, masked or undersampled data in, a restored array out, and a prediction of the error of A x."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .. import _validate
from .._arrays import Floats
from .._containers import in_units, run_inside, values_of
from .._lazy_data import axis_of
from .._progress import Progress
from .channels import PerChannel
from .general import as_operator
from .operator import Operator
from .prior import denoising_prior, users_prior
from .problem import Problem, determined_share, read_data, written
from .result import Restored
from .steps import METHODS, run_steps
from .verdict import check_prediction, verdict_of

__all__ = ["Restorer", "restore"]


@dataclass(frozen=True)
class Restorer:
    """Restore data that were blurred, masked or undersampled; `run` returns the estimate and what is known about it.

    The parameters are those of `restore`, and:

    Parameters
    ----------
    predict : bool
        Whether to predict the error of ``A x``. It takes two more restorations.

    See Also
    --------
    restore : the same in one call, which returns the estimate alone.

    Examples
    --------
    >>> from scorethresh import Blur
    >>> rng = np.random.default_rng(0)
    >>> clean = np.zeros((64, 64))
    >>> clean[16:48, 16:48] = 100.0
    >>> blur = Blur(np.full((5, 5), 1 / 25), boundary="periodic")
    >>> found = Restorer(blur, sigma=2.0).run(blur(clean) + rng.normal(0.0, 2.0, clean.shape))
    >>> bool(np.mean((found.estimate - clean) ** 2) < 20), found.predicted_mse < 2
    (True, True)
    """

    operator: Any
    _: KW_ONLY
    sigma: float | None = None
    method: str = "plug-and-play"
    steps: int | None = None
    prior: Any = None
    x0: Any = None
    shape: Any = None
    channel_axis: Any = None
    predict: bool = True
    seed: int = 0
    progress: bool | float = False

    def __post_init__(self) -> None:
        as_operator(self.operator, self.shape)
        method = _validate.choice("method", self.method, METHODS)
        if self.sigma is not None:
            if np.ndim(self.sigma):
                msg = (
                    f"sigma must be one number, got an array of shape {np.shape(self.sigma)}. If the noise level "
                    "varies, divide y and the rows of A by it, and pass sigma=1."
                )
                raise ValueError(msg)
            _validate.noise_level(values_of(self.sigma))
        if self.steps is not None:
            _validate.whole(self.steps, "steps", 1)
        if self.prior is not None:
            users_prior(self.prior, None)
            if not method.takes_prior:
                msg = f"method {self.method!r} has no prior to replace. Leave prior out, or use method='plug-and-play'."
                raise ValueError(msg)
        _validate.whole(self.seed, "seed", 0)

    def run(self, y: Any) -> Restored:
        """Restore x.

        Parameters
        ----------
        y : array_like
            As in `restore`.

        Returns
        -------
        Restored
            The estimate, the predicted error of ``A x`` with its standard error, the steps and a verdict.
        """
        named = {"channel_axis": axis_of(y, self.channel_axis)}
        inside = run_inside(y, self.sigma, lambda a, sigma: dataclasses.replace(self, **named, sigma=sigma).run(a))
        if inside is not None:
            return inside  # type: ignore[no-any-return]
        operator = as_operator(self.operator, self.shape)
        values = read_data(y, self.channel_axis)
        problem = self._problem(values, operator)
        algorithm = METHODS[self.method].algorithm(problem)
        predicted = self.predict or algorithm.chosen_by_risk
        with Progress("restore", algorithm.steps, self.progress) as bar:
            x, step, trace = run_steps(problem, algorithm, self.seed if predicted else None, bar)
        chosen, share = trace[step], determined_share(problem)
        check_prediction(chosen, problem.sigma)
        return Restored(
            written(x, np.asarray(y).dtype, self.channel_axis, integers=operator.keeps_dtype),
            problem.sigma,
            chosen.predicted_mse,
            chosen.stderr,
            share,
            trace,
            step,
            verdict_of(chosen, problem.sigma, share),
        )

    def _problem(self, y: Floats, operator: Operator) -> Problem:
        complex_data = np.iscomplexobj(y)
        a = PerChannel(operator.bind(y.shape[1:], complex_data=complex_data), len(y))
        gathered = a.gather(y)
        data = gathered.astype(np.complex128 if complex_data else np.float64)
        bad = data.size - int(np.isfinite(data).sum())
        if bad:
            msg = (
                f"y holds {bad} NaN or infinite entries among the {data.size} that the operator uses. A Mask, "
                "True where y is known, leaves them out; other operators need finite data."
            )
            raise ValueError(msg)
        sigma = self._noise_level(a, data)
        single = gathered.real.dtype == np.float32
        precision = np.float32 if single else np.float64
        channels = None if self.channel_axis is None else len(y)
        if self.prior is None:
            prior = denoising_prior(channels, precision)
        else:
            prior = users_prior(self.prior, self.channel_axis)
        x0 = None if self.x0 is None else self._first_iterate(a, complex_data=complex_data and not a.real)
        steps = self.steps or METHODS[self.method].steps or operator.default_steps
        return Problem(a, data, sigma, x0, prior, steps, operator.last_level)

    def _noise_level(self, a: PerChannel, data: Floats) -> float:
        if self.sigma is not None:
            return _validate.noise_level(in_units(self.sigma, None))
        level = a.noise_level(data)
        if level is None:
            msg = "sigma is missing: data of this operator do not tell their noise level. Pass sigma."
            raise TypeError(msg)
        if not level > 0:
            msg = "the noise level of y comes out as 0. Pass sigma, a small one if y holds no noise."
            raise ValueError(msg)
        return level

    def _first_iterate(self, a: PerChannel, *, complex_data: bool) -> Floats:
        x = np.asarray(values_of(self.x0))
        x = x[None] if self.channel_axis is None else np.moveaxis(x, self.channel_axis, 0)
        wanted = a.visible(np.zeros(a.shape)).shape
        if x.shape != wanted:
            given = np.shape(values_of(self.x0))
            msg = f"x0 has shape {given}, but the estimate has {wanted[1:]} per channel. Make them equal."
            raise ValueError(msg)
        if x.dtype.kind not in "fciu" or not np.isfinite(x).all():
            msg = f"x0 must hold finite numbers, got {x.dtype} with others. Leave it out to start from the data."
            raise ValueError(msg)
        if x.dtype.kind == "c" and not complex_data:
            msg = "x0 is complex, but x is real. Pass its real part."
            raise TypeError(msg)
        return a.embed(x.astype(np.complex128 if complex_data else np.float64))


def restore(
    y: Any,
    operator: Any,
    *,
    sigma: float | None = None,
    method: str = "plug-and-play",
    steps: int | None = None,
    prior: Any = None,
    x0: Any = None,
    shape: Any = None,
    channel_axis: int | str | None = None,
    progress: bool = False,
) -> Any:
    """Restore what was blurred, masked or undersampled.

    Parameters
    ----------
    y : array_like
        The data ``A x0 + w``, w white Gaussian noise. One to three axes, and perhaps one of channels; real, integer or
        complex.
    operator : Blur, Mask, Fourier, Downsample, matrix, linear operator, or pair of functions
        A. Of other packages: an object with `shape` and either `matvec` and `rmatvec`, as in SciPy and pylops, or `@`
        and ``.H`` or ``.T``. A pair of functions ``(forward, adjoint)`` takes and returns arrays. These are tested
        before they are used: both sides must be linear, and adjoint to each other.
    sigma : float, optional
        The noise level in units of y (of one part, if y is complex). By default it is estimated, which is possible for
        the ready operators: for `Fourier`, from the highest sampled frequencies.
    method : {"plug-and-play", "iht"}
        ``"plug-and-play"``: `denoise` is the prior, at noise levels that fall step by step. ``"iht"``: iterative hard
        thresholding in undecimated Haar wavelets, with the threshold of least estimated risk. It is simpler and worse.
    steps : int, optional
        The number of steps. By default 8 for `Blur` and `Downsample`, 20 for others; 32 of ``"iht"``, which stops when
        the estimated risk rises.
    prior : callable, optional
        A denoiser ``prior(x, sigma)`` of your own for plug-and-play, by default ours. It gets and returns arrays in the
        layout of the estimate; those for a `Blur` of unknown boundary are larger, by the size of the PSF.
    x0 : array_like, optional
        An estimate to start from.
    shape : tuple of int, optional
        The shape of x, for operators of other packages that do not tell it. By default that of y if A is square, a
        vector if y is one.
    channel_axis : int or str, optional
        The axis of y, and of x, of colours or other channels; its name, if y is a DataArray. A is applied to each.
    progress : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    ndarray, or what y is
        The estimate of x0. Series, DataFrames, DataArrays and quantities stay what they are, if x has the shape of y;
        quantities always do. Single precision stays single. Integers stay integers if A keeps their units, as a blur
        does.

    See Also
    --------
    Restorer : returns a prediction of the error of ``A x``, the steps and a verdict.
    denoise : for A = 1.

    Notes
    -----
    Half-quadratic splitting [1]_: while the level s falls, evenly in its logarithm, from 49/255 of the range of x to
    sigma (a quarter of it where data are missing: `Mask`, `Fourier` and operators of other packages), repeat ::

        x = argmin ||y - A x||^2 / sigma^2 + 0.23 / s^2 ||x - z||^2
        z = denoise(x, sigma=s)

    and return the last z. The first line has a closed form for most of the ready operators; else conjugate gradients,
    started at the last x, solve it.

    The data say nothing about the null space of A. What is there comes from the prior: it looks plausible, and may be
    wrong.

    References
    ----------
    .. [1] K. Zhang, Y. Li, W. Zuo, L. Zhang, L. Van Gool, R. Timofte, "Plug-and-play image restoration with deep
       denoiser prior", IEEE Trans. Pattern Anal. Mach. Intell. 44 (2022), doi:10.1109/TPAMI.2021.3088914.

    Examples
    --------
    >>> from scorethresh import Blur
    >>> rng = np.random.default_rng(0)
    >>> clean = np.repeat(rng.normal(0.0, 10.0, 16), 32)
    >>> blur = Blur(np.full(9, 1 / 9))
    >>> noisy = blur(clean) + rng.normal(0.0, 0.3, 504)
    >>> estimate = restore(noisy, blur)
    >>> bool(np.mean((estimate - clean[4:-4]) ** 2) < 0.2 * np.mean((noisy - clean[4:-4]) ** 2))
    True
    """
    options = {name: value for name, value in locals().items() if name not in ("y", "operator")}
    return Restorer(operator, **options, predict=False).run(y).estimate
