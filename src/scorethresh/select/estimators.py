"""What may be tuned, as functions of the data and a parameter: functions, denoisers, scikit-learn's estimators."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Floats

__all__ = ["Tunable", "as_tunable"]


class Tunable(abc.ABC):
    """An estimator with a parameter. Objects are frozen, and picklable if what they hold is."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What errors call it."""

    @abc.abstractmethod
    def __call__(self, y: Floats, parameter: Any) -> Any:
        """Return the estimate at a parameter; a dict holds several by name."""


@dataclass(frozen=True, eq=False)
class Function(Tunable):
    """A function ``f(y, parameter)``, or ``f(y, **parameters)`` if they have names."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """The name of the function."""
        inner = getattr(self.function, "func", self.function)  # that of a partial
        return str(getattr(inner, "__name__", repr(inner)))

    def __call__(self, y: Floats, parameter: Any) -> Any:
        """Return the function of y."""
        return self.function(y, **parameter) if isinstance(parameter, Mapping) else self.function(y, parameter)


@dataclass(frozen=True, eq=False)
class Runner(Tunable):
    """A frozen object such as a `Denoiser`, whose ``run(y)`` returns something with an `estimate`."""

    runner: Any

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.runner).__name__

    def __call__(self, y: Floats, parameter: Any) -> Any:
        """Return the estimate with some fields replaced."""
        return dataclasses.replace(self.runner, **_by_name(parameter, self.name)).run(y).estimate


@dataclass(frozen=True, eq=False)
class Transformer(Tunable):
    """A transformer of scikit-learn: fitted to y and applied to it, and back if there is an inverse."""

    transformer: Any

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.transformer).__name__

    def __call__(self, y: Floats, parameter: Any) -> Any:
        """Return the transformed y."""
        fresh = _with_parameters(self.transformer, parameter)
        found = fresh.fit_transform(y)
        return fresh.inverse_transform(found) if hasattr(fresh, "inverse_transform") else found


@dataclass(frozen=True, eq=False)
class Regressor(Tunable):
    """A regressor of scikit-learn: fitted to the entries of y as targets, and evaluated at the same features."""

    regressor: Any
    X: Any = None

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.regressor).__name__

    def __call__(self, y: Floats, parameter: Any) -> Any:
        """Return the fitted values."""
        X = np.indices(y.shape).reshape(y.ndim, -1).T.astype(np.float64) if self.X is None else self.X
        fresh = _with_parameters(self.regressor, parameter)
        return np.reshape(fresh.fit(X, y.ravel()).predict(X), y.shape)


def as_tunable(estimator: Any, X: Any = None) -> Tunable:
    """Return what a user's `estimator` stands for; `X` holds the features of a regressor."""
    if all(callable(getattr(estimator, name, None)) for name in ("fit", "get_params", "set_params")):
        if isinstance(estimator, type):
            msg = f"estimator must be an object, got the class {estimator.__name__}. Make one: {estimator.__name__}()."
            raise TypeError(msg)
        from sklearn.base import is_regressor

        if is_regressor(estimator):
            return Regressor(estimator, X)
        if not hasattr(estimator, "fit_transform"):
            msg = f"estimator must be a regressor or a transformer of scikit-learn, or a function, got {estimator!r}."
            raise TypeError(msg)
        found: Tunable = Transformer(estimator)
    elif dataclasses.is_dataclass(estimator) and callable(getattr(estimator, "run", None)):
        if isinstance(estimator, type):
            msg = f"estimator must be an object, got the class {estimator.__name__}. Make one: {estimator.__name__}()."
            raise TypeError(msg)
        found = Runner(estimator)
    elif callable(estimator):
        found = Function(estimator)
    else:
        msg = (
            f"estimator must be a function of y and a parameter, a Denoiser, or an estimator of scikit-learn, got "
            f"{estimator!r}."
        )
        raise TypeError(msg)
    if X is not None:
        msg = f"X holds the features of a regressor of scikit-learn, got it with {found.name}. Leave it out."
        raise ValueError(msg)
    return found


def _with_parameters(estimator: Any, parameter: Any) -> Any:
    """Return an unfitted copy with some parameters set."""
    from sklearn.base import clone

    return clone(estimator).set_params(**_by_name(parameter, type(estimator).__name__))


def _by_name(parameter: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(parameter, Mapping):
        msg = f"parameters of {name} need a name: pass a dict such as {{'alpha': [0.1, 1.0]}}, not the values alone."
        raise TypeError(msg)
    return parameter
