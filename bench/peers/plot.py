"""Two bar charts as SVG, in the peers' environment: `plot.py TITLE OUT < [[name, value, low, high], …]`."""

import json
import sys

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

OURS, OTHERS = "#1f6f54", "#9aa5a0"


def main() -> None:
    title, out = sys.argv[1:]
    bars = json.load(sys.stdin)
    mpl.rcParams |= {"svg.hashsalt": "counterfoil", "svg.fonttype": "none", "font.size": 10}
    figure, axes = plt.subplots(figsize=(8, 0.4 * len(bars) + 1), layout="constrained")
    names, values = [bar[0] for bar in bars], [bar[1] for bar in bars]
    errors = [[bar[1] - bar[2] for bar in bars], [bar[3] - bar[1] for bar in bars]]
    colors = [OURS if name == "counterfoil" else OTHERS for name in names]
    axes.bar_label(axes.barh(names, values, xerr=errors, color=colors, ecolor="#555"), fmt="{:.1f}", padding=4)
    axes.set_title(title, loc="left")
    axes.invert_yaxis()
    axes.margins(x=0.12)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
