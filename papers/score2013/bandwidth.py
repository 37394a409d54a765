"""The question that the paper leaves open: which bandwidth?

The figure shows the relative root mean squared error of the estimated risk near the best threshold (averaged over half
a sigma on both sides) against the bandwidth h of SCORE's Gaussian kernel, for three signals and three P. The means are
fixed; only the noise is redrawn. Beside each curve stand the choices that need no h. The line ``known density`` is
Stein's formula with the true density at the jump: its error is the noise of ``||y - x(y)||^2``, which all share.

The error falls slowly up to the best h and rises steeply above it. Compared with the best h, the paper's h (circle)
costs about 10% at P = 1e5, 30 to 45% at 1e4, and about doubles the error at 1e3: it decreases too fast with P, so it is
too wide at small P. The plug-in bandwidth reaches the least error of a Gaussian kernel to within a few per cent. Order
4 and sinc beat every h, by more for denser signals. The mixture beats both in every panel. If the signal is sparse and
P small, the shared noise is as large as the risk: then no density gives the level of the risk, only its shape.

The column ``density`` of the CSV is the part of the error that the density causes: the distance from the curve with
the known density.

Run ``python -m papers.score2013.bandwidth``.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from tqdm import tqdm

import scorethresh as st

from .common import journal, parser, save


def laplace(size, scale):
    """Return `size` evenly spaced quantiles of a Laplace distribution: the same signal at every P."""
    u = (np.arange(size) + 0.5) / size * 2 - 1
    return -scale * np.sign(u) * np.log1p(-np.abs(u))


SIGNALS = {
    "spikes": ("1% spikes at $5\\sigma$", lambda size: np.repeat([5.0, 0.0], [size // 100, size - size // 100])),
    "sparse": ("5% Laplace(3)", lambda size: np.append(laplace(size // 20, 3.0), np.zeros(size - size // 20))),
    "dense": ("Laplace(1)", lambda size: laplace(size, 1.0)),
}
BANDWIDTHS = np.geomspace(0.03, 0.8, 14)
METHODS = {
    "plug-in": st.Score("plugin"),
    "order 4": st.Score(density="order4"),
    "sinc": st.Score(density="sinc"),
    "mixture, jump": st.Score(density="mixture"),
    "mixture": st.Mixture(),
}
MARKERS = "x+^sD"
THRESHOLDS = np.linspace(0, 6, 61)


def known_density(y, jump):
    """Return Stein's formula for hard thresholding and sigma = 1, with the true part of the jump in the DOF."""
    order = np.sort(np.abs(y))
    below = np.searchsorted(order, THRESHOLDS)
    killed = np.append(0.0, np.cumsum(order**2))[below]
    return killed - y.size + 2 * (y.size - below + jump)


def errors(size, signal, draws, rng):
    """Return per method the relative error of the risk, its bias and the part due to the density."""
    x0 = SIGNALS[signal][1](size)
    truth = st.risk_curve(x0, THRESHOLDS, sigma=1.0, method=st.Oracle(x0))
    # Soft thresholding has the same derivative and no jump.
    jump = truth.dof - st.risk_curve(x0, THRESHOLDS, sigma=1.0, rule="soft", method=st.Oracle(x0)).dof
    near = np.abs(THRESHOLDS - THRESHOLDS[np.argmin(truth.risk)]) < 0.51
    scale = truth.risk[near].mean()
    paper = st.paper_bandwidth(size, 1.0)
    methods = {f"h = {h:.4g}": st.Score(h) for h in BANDWIDTHS.tolist()} | {"paper": st.Score("paper")} | METHODS
    found = {name: [] for name in ("known density", *methods)}
    for _ in range(draws):
        y = x0 + rng.normal(size=size)
        found["known density"].append(known_density(y, jump)[near])
        for name, method in methods.items():
            if isinstance(method, st.Mixture):  # needs the whole curve
                found[name].append(st.risk_curve(y, THRESHOLDS, sigma=1.0, method=method).risk[near])
            else:
                found[name].append(st.risk_curve(y, THRESHOLDS[near], sigma=1.0, method=method).risk)
    best = np.array(found["known density"])
    rows = []
    for name, risks in found.items():
        error = (np.array(risks) - truth.risk[near]) / scale
        h = {"paper": paper}.get(name, float(name[4:]) if name.startswith("h =") else "")
        rows.append(
            {
                **{"signal": signal, "P": size, "method": name, "h": h},
                **{"rmse": float(np.sqrt(np.mean(error**2))), "bias": float(error.mean())},
                "density": float(np.sqrt(np.mean(((np.array(risks) - best) / scale) ** 2))),
            }
        )
    return rows


@journal
def draw(rows, sizes):
    """Return the figure: a row per signal, a column per P; the error against h, and beside it the other choices."""
    figure = Figure(figsize=(7.2, 6.4))
    grid = figure.subplots(len(SIGNALS), 2 * len(sizes), squeeze=False, width_ratios=[2, 1] * len(sizes))
    for line, signal in zip(grid, SIGNALS, strict=True):
        for size, axes, side in zip(sizes, line[::2], line[1::2], strict=True):
            side.sharey(axes)
            mine = {r["method"]: r for r in rows if (r["signal"], r["P"]) == (signal, size)}
            curve = [r for name, r in mine.items() if name.startswith("h =")]
            axes.loglog([r["h"] for r in curve], [r["rmse"] for r in curve], "k-", label="SCORE, Gaussian kernel of h")
            axes.loglog(mine["paper"]["h"], mine["paper"]["rmse"], "ko", mfc="w", ms=5, label="the paper's h")
            for k, name in enumerate(METHODS):
                side.plot(k, mine[name]["rmse"], MARKERS[k], color="k", ms=4)
            for part in (axes, side):
                part.axhline(mine["known density"]["rmse"], color="0.6", ls="--", zorder=0, label="known density")
            axes.set_ylim(bottom=0.85 * min(mine[name]["rmse"] for name in [*METHODS, "known density"]))
            side.set_xlim(-0.7, len(METHODS) - 0.3)
            side.set_xticks(
                range(len(METHODS)), list(METHODS) if signal == list(SIGNALS)[-1] else [], rotation=90, fontsize=7
            )
            side.spines["left"].set_visible(False)
            side.tick_params(axis="y", which="both", left=False, labelleft=False)
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.set_xticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_title(f"{SIGNALS[signal][0]}, $P = 10^{{{np.log10(size):.3g}}}$", loc="left")
        line[0].set_ylabel("relative RMSE of the risk")
    for axes in grid[-1][::2]:
        axes.set_xlabel(r"$h / \sigma$")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def main(argv=None):
    """Make the figure and its numbers."""
    command = parser(__doc__)
    command.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of entries")
    command.add_argument("--draws", type=int, default=40, help="draws of the noise per signal and P")
    options = command.parse_args(argv)
    rng = np.random.default_rng(2013)
    cells = [(size, signal) for signal in SIGNALS for size in options.sizes]
    rows = [row for size, signal in tqdm(cells, desc="drawing") for row in errors(size, signal, options.draws, rng)]
    for size, signal in cells:
        mine = [r for r in rows if (r["signal"], r["P"]) == (signal, size) and not r["method"].startswith("h =")]
        print(f"{signal}, P = {size}:", *(f"{r['method']} {r['rmse']:.4f} ({r['density']:.4f});" for r in mine))
    save(options.out, "bandwidth", rows, draw(rows, options.sizes))


if __name__ == "__main__":
    main()
