"""Charts through matplotlib, drawn off screen: `scatter`, `lines`, `bars`. Each comes as PNG with its text form."""

import io

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from helpers.figures.picture import Picture
from helpers.figures.style import LIGHT
from helpers.figures.words import number, table

COLOURS = [LIGHT[name] for name in ("K", "Q", "V", "A", "positive", "negative")]
MARKERS = "osD^vP"
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 2))]
LOOKS = {"font.family": "DejaVu Sans", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False,
         "axes.grid": True, "grid.color": LIGHT["line"], "grid.linewidth": 0.5, "axes.axisbelow": True,
         "axes.titlesize": 12, "axes.titleweight": "bold", "axes.titlelocation": "left", "text.color": LIGHT["ink"],
         "axes.labelcolor": LIGHT["ink"], "axes.edgecolor": LIGHT["soft"], "xtick.color": LIGHT["soft"],
         "ytick.color": LIGHT["soft"], "legend.frameon": False, "text.usetex": False}


def scatter(points, labels, title, groups=None, xlabel="", ylabel=""):
    """Labelled points in the plane.

    points : (n, 2), labels : n words, groups : n names or None; each group has its own colour and mark.
    """
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) != len(labels):
        raise ValueError(f"points must have shape (n, 2) with a label each: points {points.shape}, {len(labels)} labels")
    groups = [""] * len(points) if groups is None else [str(g) for g in groups]
    if len(groups) != len(points):
        raise ValueError(f"groups must hold a name for each point: {len(groups)} names, {len(points)} points")
    names = list(dict.fromkeys(groups))

    def paint(ax):
        for i, name in enumerate(names):
            here = [k for k, g in enumerate(groups) if g == name]
            ax.scatter(points[here, 0], points[here, 1], color=COLOURS[i % 6], marker=MARKERS[i % 6], s=36,
                       label=name or None)
        for (x, y), label in zip(points, labels, strict=True):
            ax.annotate(str(label), (x, y), xytext=(5, 4), textcoords="offset points", fontsize=10)
        ax.margins(0.12)
        if any(names):
            ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    rows = [[str(label), *([g] if any(names) else []), number(x), number(y)]
            for (x, y), label, g in zip(points, labels, groups, strict=True)]
    header = ["", *(["group"] if any(names) else []), xlabel or "x", ylabel or "y"]
    return chart(paint, title, table(rows, header), xlabel, ylabel, (7.2, 4.8))


def lines(x, series, title, xlabel, ylabel, logx=False, logy=False):
    """Curves over the same x.  x : (n,), series : {name: (n,)}."""
    x = np.asarray(x, dtype=float)
    series = {str(name): np.asarray(y, dtype=float) for name, y in series.items()}
    for name, y in series.items():
        if y.shape != x.shape or x.ndim != 1:
            raise ValueError(f"{name} must have a value for each x: x {x.shape}, {name} {y.shape}")

    def paint(ax):
        for i, (name, y) in enumerate(series.items()):
            ax.plot(x, y, color=COLOURS[i % 6], linestyle=DASHES[i % 6], linewidth=2, label=name,
                    marker=MARKERS[i % 6] if len(x) <= 16 else None, markersize=5)
        if logx:
            ax.set_xscale("log", base=2 if np.all(np.log2(x) % 1 == 0) else 10)
        if logy:
            ax.set_yscale("log")
        if len(series) > 1:
            ax.legend()

    few = x if len(x) <= 12 else x[np.round(np.linspace(0, len(x) - 1, 9)).astype(int)]
    at = [int(np.flatnonzero(x == value)[0]) for value in few]
    rows = [[f"{x[i]:.4g}", *(f"{y[i]:.3g}" for y in series.values())] for i in at]
    return chart(paint, title, table(rows, [xlabel or "x", *series]), xlabel, ylabel)


def bars(labels, values, title, ylabel=""):
    """A bar for each label, its number on top.  labels : n words, values : (n,)."""
    values = np.asarray(values, dtype=float)
    if values.shape != (len(labels),):
        raise ValueError(f"values must hold a number for each label: {len(labels)} labels, values {values.shape}")

    def paint(ax):
        drawn = ax.bar(range(len(values)), values, 0.7,
                       color=[COLOURS[4] if v >= 0 else COLOURS[5] for v in values], edgecolor=LIGHT["soft"])
        ax.bar_label(drawn, [number(v) for v in values], padding=2, fontsize=10)
        long = max(map(len, map(str, labels)), default=0) * len(values) > 70
        ax.set_xticks(range(len(values)), [str(label) for label in labels], rotation=40 if long else 0,
                      ha="right" if long else "center")
        ax.grid(axis="x", visible=False)
        ax.axhline(0, color=LIGHT["soft"], linewidth=0.8)
        ax.margins(y=0.12)

    return chart(paint, title, table([[str(a), number(b)] for a, b in zip(labels, values, strict=True)]), "", ylabel)


def chart(paint, title, description, xlabel, ylabel, size=(7.2, 3.8)):
    """Everything charts have in common. No pyplot: nothing is kept open, and the reader's settings do not matter."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOKS)
        figure = Figure(figsize=size, layout="constrained", dpi=110)
        ax = figure.subplots()
        paint(ax)
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
        file = io.BytesIO()
        figure.savefig(file, format="png", metadata={"Software": None})
    return Picture(title, f"{title}\n{description}", png=file.getvalue())
