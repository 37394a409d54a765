"""Numbers as text, rounded to what is known of them."""

from __future__ import annotations

import math

# Significant digits of a number without a known error.
DIGITS = 3


def plain(value: float, digits: int = DIGITS) -> str:
    """Return a number with so many significant digits, without an exponent if it is between 1e-4 and 1e6.

    Examples
    --------
    >>> plain(12345.6), plain(0.012345), plain(12.0), plain(0.0)
    ('12300', '0.0123', '12', '0')
    """
    if not value or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits}g}"
    text = _to_place(value, _place(value) - digits + 1)
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_error(value: float, error: float) -> str:
    """Return a number and its standard error, rounded to it: two digits of the error if they begin with 1, else one.

    Examples
    --------
    >>> with_error(643.2, 98.7), with_error(45.512, 1.23), with_error(0.12345, 0.0005)
    ('640 ± 100', '45.5 ± 1.2', '0.1235 ± 0.0005')
    """
    if not (math.isfinite(error) and error > 0 and math.isfinite(value)):
        return plain(value)
    place = _place(error)
    shown = round(error / 10.0 ** (place - 1))  # two digits, from 10 to 100
    if shown < 20:
        place -= 1
    if not -7 < place < 6:
        digits = max(_place(value) - place + 1, 1) if value else 1
        return f"{value:.{digits - 1}e} ± {error:.{max(_place(error) - place, 0)}e}"
    return f"{_to_place(value, place)} ± {_to_place(error, place)}"


def _place(value: float) -> int:
    """Return the power of ten of the first digit."""
    return math.floor(math.log10(abs(value)))


def _to_place(value: float, place: int) -> str:
    """Return a number rounded to a power of ten."""
    return f"{round(value, -place):.{max(-place, 0)}f}"
