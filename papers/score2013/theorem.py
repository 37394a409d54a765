"""Theorem 1 and its corollary: bias and variance of the degrees of freedom and of SCORE, per entry, against P.

Hard thresholding at 2 sigma with the paper's bandwidth ``h = 6 sigma / P^(1/3)``. The theorem states a bias of order
``h^2`` and a variance of order ``1 / (P h)``: both fall like ``P^(-2/3)``. The corollary extends this from the degrees
of freedom to the risk if ``||x0||_4 = o(sqrt P)``. Two signals are equal at P = 100: a tenth of the entries at 3 sigma,
which meets the condition; and a tenth at ``0.3 sigma sqrt(P)``, with ``||x0||_4 ~ P^(3/4)``, which does not.

The bias falls at the predicted rate for both signals. The variance does so for large P. Up to P = 1e7 it falls a little
faster, like P^(-0.69) and P^(-0.75), because the counts and squares add a part of order 1/P that is not yet negligible;
between 1e9 and 1e12 the rates are within 0.004 of -2/3.

The condition is sufficient but, for hard thresholding, not necessary. It bounds the variance of ``||y||^2 / P``, which
does not fall for the second signal (dash-dotted line). But SCORE contains ``||y||^2`` minus the squares of the entries
that are kept, and the remaining squares are below lambda^2, however large the means: an entry far above the threshold
adds sigma^2 to SCORE and nothing to its variance. The second signal even has the smaller error, because its large
entries are far from the threshold.

Lines are exact (sums over independent entries of closed forms and quadratures); markers are simulated. Rates are
fitted to the lines from P = 1e5 on.

Run ``python -m papers.score2013.theorem``.
"""

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import scorethresh as st
from scorethresh.risk.kernel import kernel_moments

from .common import journal, parser, save

LAM = 2.0
SHARE = 0.1
SIGNALS = {"meets": lambda size: 3.0, "fails": lambda size: 0.3 * np.sqrt(size)}
FIT_FROM = 1e5
QUANTITIES = ("dof_bias", "score_bias", "dof_variance", "score_variance")
LABELS = {"meets": r"$\Vert x_0 \Vert_4 \sim P^{1/4}$", "fails": r"$\Vert x_0 \Vert_4 \sim P^{3/4}$"}


def jump_bias(mean, h):
    """Return the bias that one entry adds to the degrees of freedom: a Gaussian widened by h, minus the Gaussian."""
    wide = sum(kernel_moments(mean, a, sigma=1.0, h=h)[0] - np.exp(-((mean - a) ** 2) / 2) for a in (LAM, -LAM))
    return LAM / np.sqrt(2 * np.pi) * float(wide)


def variances(mean, h):
    """Return the variances of one entry's terms in the degrees of freedom, in SCORE and in ||y||^2, by quadrature."""
    marks = np.concatenate([mean + np.arange(-10, 11), *(a + h * np.arange(-9, 10) for a in (LAM, -LAM))])
    marks = np.unique(marks.clip(mean - 10, mean + 10))
    points, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(marks)[:, None] / 2
    y = marks[:-1, None] + half * (1 + points)
    mass = half * weights * np.exp(-((y - mean) ** 2) / 2) / np.sqrt(2 * np.pi)
    kernel = sum(np.exp(-(((y - a) / h) ** 2) / 2) for a in (LAM, -LAM))
    dof = (np.abs(y) > LAM) + LAM * np.sqrt(1 + h**2) / (np.sqrt(2 * np.pi) * h) * kernel
    score = np.where(np.abs(y) > LAM, 0.0, y**2) - 1 + 2 * dof
    spread = [np.sum(mass * (term - np.sum(mass * term)) ** 2) for term in (dof, score)]
    return *map(float, spread), 2 + 4 * mean**2


def exact(size, signal):
    """Return bias and variance of the estimates per entry, exactly."""
    h = st.paper_bandwidth(size, 1.0)
    large = SIGNALS[signal](size)
    bias = (1 - SHARE) * jump_bias(0.0, h) + SHARE * jump_bias(large, h)
    terms = [((1 - SHARE) * a + SHARE * b) / size for a, b in zip(variances(0.0, h), variances(large, h), strict=True)]
    return dict(zip((*QUANTITIES, "energy_variance"), (bias, 2 * bias, *terms), strict=True))


def simulated(size, signal, draws, rng):
    """Return bias and variance of the estimates per entry, from draws."""
    x0 = np.zeros(size)
    x0[: round(SHARE * size)] = SIGNALS[signal](size)
    truth = st.risk_curve(x0, [LAM], sigma=1.0, method=st.Oracle(x0))
    found = np.empty((draws, 2))
    for k in range(draws):
        curve = st.risk_curve(x0 + rng.normal(size=size), [LAM], sigma=1.0, method=st.Score("paper"))
        found[k] = (curve.dof[0] - truth.dof[0]) / size, (curve.risk[0] - truth.risk[0]) / size
    return dict(zip(QUANTITIES, (*found.mean(axis=0).tolist(), *found.var(axis=0, ddof=1).tolist()), strict=True))


def rate(rows, signal, quantity, start=FIT_FROM):
    """Return the slope of the exact values in logarithms, from P = start on."""
    kept = [row for row in rows if (row["signal"], row["source"]) == (signal, "exact") and row["P"] >= start]
    return float(np.polyfit(np.log([row["P"] for row in kept]), np.log([abs(row[quantity]) for row in kept]), 1)[0])


@journal
def draw(rows):
    """Return the figure: bias and variance, degrees of freedom above and SCORE below."""
    figure = Figure(figsize=(6.6, 5.2))
    panels = figure.subplots(2, 2, sharex=True)
    titles = (
        "bias of DOF / P",
        r"bias of SCORE / $(P\sigma^2)$",
        "variance of DOF / P",
        r"variance of SCORE / $(P\sigma^2)$",
    )
    for axes, quantity, title in zip(panels.T.flat, QUANTITIES, titles, strict=True):
        for signal, dashes, marker in (("meets", "-", ("o", 6)), ("fails", "--", ("x", 4))):
            mine = [row for row in rows if row["signal"] == signal]
            line, dots = ([r for r in mine if r["source"] == source] for source in ("exact", "simulated"))
            label = f"{LABELS[signal]}, fitted $P^{{{rate(rows, signal, quantity):.3f}}}$"
            axes.loglog([r["P"] for r in line], [abs(r[quantity]) for r in line], dashes, color="k", label=label)
            axes.loglog(
                [r["P"] for r in dots], [abs(r[quantity]) for r in dots], "k" + marker[0], mfc="w", ms=marker[1]
            )
            if (signal, quantity) == ("fails", "score_variance"):
                energy = [r["energy_variance"] for r in line]
                axes.loglog([r["P"] for r in line], energy, "-.", color="0.5", label=r"$\Vert y \Vert^2 / P$ alone")
        ends = np.array([FIT_FROM, line[-1]["P"]])
        least = min(abs(r[quantity]) for r in rows if r["P"] == ends[1])
        axes.loglog(ends, least / 2.5 * (ends / ends[1]) ** (-2 / 3), color="0.6", lw=2, label="predicted $P^{-2/3}$")
        axes.set_ylim(bottom=least / 25)
        axes.set_title(title)
        axes.legend(loc="lower left", fontsize=7, handlelength=2.6)
    for axes in panels[1]:
        axes.set_xlabel("P")
    return figure


def main(argv=None):
    """Make the figure and its numbers."""
    command = parser(__doc__)
    command.add_argument("--largest", type=float, default=1e5, help="largest P that is simulated")
    command.add_argument("--draws", type=int, default=300, help="draws per simulated point")
    options = command.parse_args(argv)
    rng = np.random.default_rng(2013)
    sizes = [round(size) for size in np.logspace(2, 7, 21)]
    rows = [{"signal": s, "source": "exact", "P": size, **exact(size, s)} for s in SIGNALS for size in sizes]
    tried = [(signal, size) for signal in SIGNALS for size in sizes[::2] if size <= options.largest]
    for signal, size in tqdm(tried, desc="simulating"):
        found = simulated(size, signal, options.draws, rng)
        rows.append({"signal": signal, "source": "simulated", "P": size, **found, "energy_variance": ""})
    for signal in SIGNALS:
        print(f"{signal} the condition, fitted from P = {FIT_FROM:.0e}, predicted -0.667:", end=" ")
        print(*(f"{quantity} {rate(rows, signal, quantity):.3f}" for quantity in QUANTITIES), sep=", ")
    save(options.out, "theorem", rows, draw(rows))


if __name__ == "__main__":
    main()
