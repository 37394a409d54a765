"""The paper's experiment: true risk, SCORE and Jansen's estimate against the threshold.

Sorted magnitudes ``1 / i^gamma`` are scaled to a signal-to-noise ratio of 5.65 dB. The data are one draw of 2e5
entries; the bandwidth is the paper's, ``6 sigma / P^(1/3)``. The paper does not state gamma, so four are shown.

SCORE follows the true risk for every gamma, and the true risk at its minimum is within 1.1% of the least. Jansen's
estimate assumes the density of pure noise at the threshold. It is as good for gamma = 1 and nearly as good for 2, where
nearly all means are small. For gamma = 0.8 its threshold is too low and costs 3%. For gamma = 0.5 every mean is above
sigma/2: no threshold beats y itself, SCORE keeps nearly all of it, and Jansen's estimate has a deep false minimum. For
gamma = 2 about 30 entries carry the signal: the risk is flat beyond 4.5 sigma, and the minima of both estimates fall
somewhere on the flat part. The insets enlarge the neighbourhood of the minimum. There the level of one draw is off by
the noise of ``||y - x(y)||^2``, about 0.003 per entry, and SCORE is slightly high because of the width of its kernel;
the shape is right.

Run ``python -m papers.score2013.fig_risk``.
"""

import numpy as np
from matplotlib.figure import Figure

import scorethresh as st

from .common import journal, parser, save

GAMMAS = (0.5, 0.8, 1.0, 2.0)
SNR = 5.65
CURVES = {
    "true": ("true risk", {"ls": "-", "color": "0.6", "lw": 2.6, "marker": "o", "mec": "0.4"}),
    "score": ("SCORE", {"ls": "--", "color": "k", "marker": "x"}),
    "jansen": ("Jansen", {"ls": ":", "color": "k", "lw": 1.4, "marker": "v"}),
}


def power_law(size, gamma):
    """Return means ``c / i^gamma``, in units of sigma, with c from the signal-to-noise ratio."""
    x0 = np.arange(1, size + 1) ** -gamma
    return x0 * np.sqrt(size * 10 ** (SNR / 10) / np.sum(x0**2))


def curves(size, gamma, thresholds, rng):
    """Return the three curves for one draw, per entry and in units of sigma^2."""
    x0 = power_law(size, gamma)
    y = x0 + rng.normal(size=size)
    methods = {"true": st.Oracle(x0), "score": st.Score("paper"), "jansen": st.Jansen()}
    return {k: st.risk_curve(y, thresholds, sigma=1.0, method=m).risk / size for k, m in methods.items()}


def lines(axes, thresholds, risks):
    """Draw the three curves with their minima."""
    for name, (label, look) in CURVES.items():
        mark = [int(np.argmin(risks[name]))]
        axes.plot(thresholds, risks[name], label=label, markevery=mark, mfc="w", ms=6, **look)


@journal
def draw(thresholds, found):
    """Return the figure: one panel per gamma."""
    figure = Figure(figsize=(6.6, 4.6))
    for axes, (gamma, risks) in zip(figure.subplots(2, 2).flat, found.items(), strict=True):
        lines(axes, thresholds, risks)
        best = np.argmin(risks["true"])
        if best > 0:
            inset = axes.inset_axes([0.42, 0.3, 0.56, 0.5])
            lines(inset, thresholds, risks)
            low, high = thresholds[best] - 0.8, min(thresholds[best] + 1.6, thresholds[-1])
            shown = np.concatenate([risk[(thresholds >= low) & (thresholds <= high)] for risk in risks.values()])
            inset.set(xlim=(low, high), ylim=(shown.min() - 0.1 * np.ptp(shown), shown.max()))
            inset.tick_params(labelsize=6)
        axes.set_title(rf"$\gamma = {gamma:g}$")
        axes.set_xlim(0, thresholds[-1])
        axes.set_ylim(min(0.0, *(1.05 * risk.min() for risk in risks.values())))
        axes.set_xlabel(r"$\lambda / \sigma$")
        axes.set_ylabel(r"risk / $(P \sigma^2)$")
    figure.axes[0].legend(loc="lower right", handlelength=3)
    return figure


def main(argv=None):
    """Make the figure and its numbers."""
    command = parser(__doc__)
    command.add_argument("--size", type=int, default=200_000, help="number of entries")
    options = command.parse_args(argv)
    thresholds = np.linspace(0, 7, 281)
    rng = np.random.default_rng(2013)
    found = {gamma: curves(options.size, gamma, thresholds, rng) for gamma in GAMMAS}
    rows = []
    for gamma, risks in found.items():
        columns = zip(thresholds.tolist(), *(risks[name].tolist() for name in CURVES), strict=True)
        rows += [dict(zip(("gamma", "threshold", *CURVES), (gamma, *row), strict=True)) for row in columns]
        best = {name: thresholds[np.argmin(risk)] for name, risk in risks.items()}
        paid = {name: risks["true"][np.argmin(risk)] for name, risk in risks.items()}
        print(f"gamma {gamma:g}:", *(f"{name} minimum at {best[name]:.3f}, risk {paid[name]:.5f};" for name in CURVES))
    save(options.out, "fig_risk", rows, draw(thresholds, found))


if __name__ == "__main__":
    main()
