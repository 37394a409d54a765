"""The choice of a parameter of any estimator, by its risk."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validate
from .._arrays import Floats
from .._containers import in_units, run_inside
from .._progress import Progress
from ..noise.gaussian import GaussianNoise, observe
from ..risk.black_box import BlackBox
from ..risk.monte_carlo import MonteCarloRisk, ProbePlan, default_probes, entries, probe_rows
from ..risk.probe_terms import RiskTerms, check_units, risk_of_terms
from .estimators import Tunable, as_tunable
from .misfit import warn_of_negative_risk
from .parameter_result import ParameterCurve, ParameterSelection, ParameterStatus
from .race import Race, comparing_step, paired_risks
from .space import Space, as_space

__all__ = ["select_parameter"]


@dataclass(frozen=True, eq=False)
class Trial:
    """One evaluation of the risk, at a parameter; with the same probes at all of them."""

    tunable: Tunable
    y: Floats
    noise: GaussianNoise
    weights: Floats | None
    plan: ProbePlan

    def black_box(self, parameter: Any) -> BlackBox:
        """Return the estimator at a parameter, as a function of the data."""
        return BlackBox(lambda z: self.tunable(z, parameter), f"{self.tunable.name} at parameter {parameter!r}")

    def rows(self, parameter: Any, start: int, stop: int) -> list[RiskTerms]:
        """Return what the probes from number `start` to `stop` tell of the risk at a parameter."""
        plan = dataclasses.replace(self.plan, probes=stop)
        return probe_rows(self.black_box(parameter), self.y, self.noise, plan, self.weights, start=start)

    def risk(self, rows: list[RiskTerms]) -> MonteCarloRisk:
        """Return the risk that probes tell."""
        return risk_of_terms(rows, self.y, self.noise, self.weights)

    def risk_at(self, parameter: Any) -> MonteCarloRisk:
        """Return the risk at a parameter, by all probes of the plan."""
        return self.risk(self.rows(parameter, 0, self.plan.probes))

    @property
    def noise_energy(self) -> float:
        """The risk of y itself."""
        return self.noise.energy(self.y, self.weights)

    def check_repeatable(self, parameter: Any) -> None:
        """Raise if the estimator returns another result when it is called again."""
        self.black_box(parameter).check_repeatable(self.y, self.plan.step * self.noise.scale)


def select_parameter(
    estimator: Any,
    y: Any,
    parameters: Any,
    *,
    sigma: Any = None,
    noise: Any = "white",
    X: Any = None,
    step: float | None = None,
    probes: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | float = False,
) -> ParameterSelection:
    """Choose the parameter of any estimator by its estimated risk.

    Nothing has to be known of the estimator: it may jump, iterate until it converges, or be a network.

    Parameters
    ----------
    estimator : callable, Denoiser or scikit-learn estimator
        ``estimator(y, parameter)``, or ``estimator(y, name=value)`` if parameters have names, returns an estimate of
        the shape of y. It must return the same for the same y. Of a `Denoiser`, the named fields are replaced. A
        transformer of scikit-learn is fitted to y, applied to it and inverted if it can be. A regressor takes the
        entries of y as targets.
    y : array_like
        Noisy data ``x0 + w``, of any shape, real or complex. The estimator gets floats in the units of y.
    parameters : sequence, tuple of two numbers, or dict
        Values to be tried. A tuple of two numbers ``(low, high)`` is a range, which is searched; a list of two numbers
        is two values. A dict holds values and ranges by name, of which all combinations are tried.
    sigma : float or array_like, optional
        The noise level in units of y (of one part, if y is complex): a number, or one per entry. By default it is
        estimated.
    noise : {"white", "correlated", "camera", "poisson", "rician", "speckle"}, NoiseModel or array_like
        The noise, as in `denoise`. Counts and other noise that depends on the signal are stabilised first: the
        estimator gets values of noise level 1, such as Anscombe's root, and `estimate` is turned back.
    X : array_like, optional
        The features of a regressor of scikit-learn, one row per entry of y. By default the positions of the entries.
    step : float, optional
        How far the data are moved along a probe, in noise levels; see `divergence`. By default ``1.4 P^(-1/5)``, and
        0.3 at most, to compare parameters, and ``P^(-1/5)`` for the risk of the best.
    probes : int, optional
        The number of random directions; each costs two calls per parameter. By default 2, and more below 1024 entries;
        half of that at parameters that are far off, up to four times as many where these cannot decide.
    seed : int
        The probes are the same for the same seed.
    n_jobs : int, optional
        The number of processes in which parameters are tried, by joblib; -1 is one per core. By default all calls are
        made here. A range is searched one parameter at a time.
    progress : bool or float
        Whether to show a progress bar, by tqdm: on standard error, or in a notebook. A number shows it only if the work
        takes more than that many seconds.

    Returns
    -------
    ParameterSelection
        The parameter, the estimate, its risk with a standard error, its degrees of freedom, and the whole curve.

    See Also
    --------
    divergence : What is estimated for every parameter.
    select_threshold : Choose a threshold, from the distribution of the coefficients.

    Notes
    -----
    At every parameter the estimator is called at ``y + h w`` and ``y - h w``, w draws of the noise, the same for all
    parameters. With x+ and x- the results, the risk is the mean over the draws [1]_ [2]_ of ::

        mean(||y - x+||^2, ||y - x-||^2) - tr(Sigma) + <w, x+ - x-> / h

    This is unbiased for the risk at noise ``sqrt(1 + h^2)`` times as strong. Jumps are included if h is wide enough;
    see `divergence`. Parameters are compared with a wide step, because a common bias does not matter: `curve` has the
    risks at 2 to 4% more noise. The risk of the chosen one is estimated once more, with a smaller step.

    Data of 1024 entries and more take 2 calls per parameter, 4 at those that are not hopeless, and up to 16 at those
    whose risks differ by less than two standard errors over the probes, unless these are below 2% of the risk. A few
    more calls check that the estimator repeats itself, and make the estimate. A parameter that occurs twice is tried
    once.

    Ranges are searched by SciPy's DIRECT with 24 evaluations per number, on a logarithmic scale if the range is
    positive and spans a factor of 10. The risk of stabilised counts is weighted to the units of y squared.

    The choice rests on `sigma` and on noise that is Gaussian and independent of the signal. With sigma too large,
    estimates become too smooth. It cannot work for estimators that draw random numbers, and is weak for those that jump
    rarely and far, such as the support of a regression.

    References
    ----------
    .. [1] S. Ramani, T. Blu, M. Unser, "Monte-Carlo SURE", IEEE Trans. Image Process. 17 (2008),
       doi:10.1109/TIP.2008.2001404.
    .. [2] N. L. Oliveira, J. Lei, R. J. Tibshirani, "Unbiased risk estimation in the normal means problem via coupled
       bootstrap techniques", arXiv:2111.09447.

    Examples
    --------
    The size of a median filter:

    >>> from scipy.ndimage import median_filter
    >>> rng = np.random.default_rng(0)
    >>> steps = np.repeat(rng.normal(0.0, 5.0, 40), 50)
    >>> y = steps + rng.normal(size=steps.size)
    >>> chosen = select_parameter(median_filter, y, [1, 3, 5, 9, 15, 25, 45], sigma=1.0)
    >>> chosen.parameter, str(chosen.status)
    (9, 'interior')
    >>> loss = np.sum((chosen.estimate - steps) ** 2)
    >>> bool(abs(chosen.risk - loss) < 3 * chosen.stderr)
    True
    """
    options = {"noise": noise, "X": X, "step": step, "probes": probes, "seed": seed, "n_jobs": n_jobs}
    inside = run_inside(
        y, sigma, lambda a, s: select_parameter(estimator, a, parameters, sigma=s, progress=progress, **options)
    )
    if inside is not None:
        return inside  # type: ignore[no-any-return]
    tunable, space = as_tunable(estimator, X), as_space(parameters)
    values, gaussian, weights, restore = observe(y, noise, in_units(sigma, None))
    check_units(values, gaussian)
    plan = ProbePlan.make(values, step=step, probes=probes, seed=seed)
    wide = plan if step is not None else dataclasses.replace(plan, step=comparing_step(entries(values)))
    trial = Trial(tunable, values, gaussian, weights, wide)
    race = _race(entries(values), probes, searched=bool(space.ranges))
    with Progress("tune", space.evaluations, progress) as bar:
        tried, rows = _tried(trial, space, race.start, n_jobs, bar)
    rows = race.run(rows, trial.noise_energy, lambda some, a, b: _mapped(trial, [tried[p] for p in some], a, b, n_jobs))
    curve = _curve(tried, rows, trial, space)
    k = int(np.argmin(curve.risk))
    best = curve.parameters[k]
    estimate = restore(trial.black_box(best)(values))
    status = ParameterStatus.EDGE if space.at_end(best) else ParameterStatus.INTERIOR
    if curve.risk[k] > curve.noise_energy:
        status = ParameterStatus.WORSE
    calls = 2 * sum(map(len, rows)) + 3
    risk, stderr, dof = float(curve.risk[k]), float(curve.stderr[k]), float(curve.dof[k])
    if step is None:
        found = dataclasses.replace(trial, plan=plan).risk_at(best)
        risk, stderr, dof = found.risk, found.stderr, found.divergence * curve.size / curve.noise_energy
        calls += 2 * plan.probes
    warn_of_negative_risk(risk, stderr)
    level = float(gaussian.scale.ravel()[0]) if gaussian.scale.size == 1 else gaussian.scale
    return ParameterSelection(best, estimate, risk, stderr, dof, curve, calls, status, level)


def _race(size: int, probes: int | None, *, searched: bool) -> Race:
    """Return how many probes parameters get: as many as the user says, or few at first and more if need be.

    A search looks at risks one by one, so they must be good from the start.
    """
    if probes is not None:
        return Race(probes, probes, probes)
    race = Race.for_size(size)
    if not searched:
        return race
    first = default_probes(size)
    return Race(first, first, max(first, race.last))


def _tried(
    trial: Trial, space: Space, probes: int, n_jobs: Any, bar: Progress
) -> tuple[list[Any], list[list[RiskTerms]]]:
    """Return the parameters that were tried, each once, and what the first probes tell of them."""
    found: dict[Any, tuple[Any, list[RiskTerms]]] = {}
    if space.ranges:

        def risk(parameter: Any) -> float:
            if not found:
                trial.check_repeatable(parameter)
            key = _key(parameter)
            if key not in found:
                found[key] = parameter, trial.rows(parameter, 0, probes)
            bar.step()
            return trial.risk(found[key][1]).risk

        for fixed in space.combinations():
            space.search(fixed, risk)
        return [p for p, _ in found.values()], [rows for _, rows in found.values()]
    distinct = {_key(p): p for p in map(space.parameter, space.combinations())}
    todo = list(distinct.values())
    trial.check_repeatable(todo[0])
    out = []
    for rows in _generated(trial, todo, 0, probes, n_jobs):
        out.append(rows)
        bar.step()
    return todo, out


def _mapped(trial: Trial, todo: list[Any], start: int, stop: int, n_jobs: Any) -> list[list[RiskTerms]]:
    """Return what some probes tell of parameters."""
    return list(_generated(trial, todo, start, stop, n_jobs))


def _generated(trial: Trial, todo: list[Any], start: int, stop: int, n_jobs: Any) -> Iterable[list[RiskTerms]]:
    """Yield what some probes tell of parameters: worked out here, or by joblib."""
    if n_jobs is None:
        return (trial.rows(parameter, start, stop) for parameter in todo)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        msg = f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}. -1 is one process per core."
        raise ValueError(msg)
    try:
        from joblib import Parallel, delayed
    except ImportError:
        error = _validate.missing_extra("joblib")
        raise error from None
    results: Iterable[list[RiskTerms]] = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(trial.rows)(parameter, start, stop) for parameter in todo
    )
    return results


def _key(parameter: Any) -> Any:
    """Return what equal parameters share; one that cannot be hashed is like no other."""
    named = tuple(sorted(parameter.items())) if isinstance(parameter, dict) else parameter
    try:
        hash(named)
    except TypeError:
        return id(parameter)
    # 1, 1.0 and True are equal, but an estimator may tell them apart.
    types = tuple(type(v) for _, v in named) if isinstance(parameter, dict) else type(parameter)
    return types, named


def _curve(tried: list[Any], rows: list[list[RiskTerms]], trial: Trial, space: Space) -> ParameterCurve:
    """Return the curve, in the order of a single range."""
    energy, size = trial.noise_energy, entries(trial.y)
    each = [np.array([row.loss + 2 * row.divergence for row in own]) - energy for own in rows]
    found = [(p, trial.risk(own)) for p, own in zip(tried, rows, strict=True)]
    risk = paired_risks(each)
    order = np.arange(len(found))
    if len(space.ranges) == 1 and not space.values:
        [name] = space.ranges
        order = np.argsort([space.by_name(p)[name] for p in tried], kind="stable")
    risks = np.array([risks for _, risks in found])[order]
    return ParameterCurve(
        tuple(tried[k] for k in order), risk[order], risks[:, 1], risks[:, 2] * size / energy, size, energy
    )
