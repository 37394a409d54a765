"""The commands `demo` and `paper`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import Denoiser, io
from .._validate import missing_extra
from .messages import PartlyDone, echo
from .options import Force

_SCRIPTS = ("fig_risk", "theorem", "bandwidth")


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture.")] = Path(
        "scorethresh-demo.png"
    ),
    force: Force = False,
) -> None:
    """Denoise a picture and an electrocardiogram; print the predicted and the true error."""
    import pywt

    io.check_free(output, force=force)
    rng = np.random.default_rng(1)
    panels: list[tuple[str, Any]] = []
    for name, clean, sigma in (("picture", pywt.data.camera(), 20.0), ("heartbeat", pywt.data.ecg(), 10.0)):
        noisy = clean + rng.normal(0.0, sigma, clean.shape)
        found = Denoiser().run(noisy)
        true = float(np.mean((found.estimate - clean) ** 2))
        echo(f"{name:<10} noise of {sigma:g}, estimated as {found.sigma:.3g}; mean squared error {sigma**2:g} before,")
        echo(f"{'':<10} after {found.predicted_mse:.3g} ± {found.stderr:.2g} predicted, {true:.3g} true")
        panels += [(f"{name}, noisy", noisy), (f"{name}, denoised", found.estimate)]
    if importlib.util.find_spec("matplotlib") is None:
        echo(f"There is no picture of them: {missing_extra('matplotlib')}")
        return
    _draw(output, panels, force=force)
    echo(f"saved {output}")


def _draw(path: Path, panels: list[tuple[str, Any]], *, force: bool) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(2, 2, height_ratios=[2, 1]).flat, panels, strict=True):
        axes.set_title(title)
        if values.ndim == 2:
            axes.imshow(values, cmap="gray", vmin=0, vmax=255)
            axes.set_axis_off()
        else:
            axes.plot(values, lw=0.7)
    with io.replacing(path, force=force) as beside:
        figure.savefig(beside, dpi=120)


def paper(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="A folder.")] = Path("out/score2013"),
) -> None:
    """Draw the figures of the paper; in a checkout of the repository."""
    if not Path("papers/score2013").is_dir():
        msg = "the figures are in the repository, not in the package. Run this in a checkout of it."
        raise ValueError(msg)
    for package in ("matplotlib", "tqdm"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra(package, "papers")
    for name in _SCRIPTS:
        # In a process of its own, so that the working directory does not get onto the import path of this one.
        command = [sys.executable, "-m", f"papers.score2013.{name}", "--out", str(output)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as script:
            for line in script.stdout or ():
                echo(line.rstrip("\n"))
        if script.returncode:
            msg = f"papers/score2013/{name}.py failed with exit code {script.returncode}. See its own message above."
            raise PartlyDone(msg)
