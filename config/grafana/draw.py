"""Draws the dashboard hapax.json without Grafana: one SVG file for each row, with the panels of the row.

It queries a Prometheus with the expressions of the panels, and needs matplotlib:

    python3 -m venv venv
    venv/bin/pip install matplotlib
    venv/bin/python config/grafana/draw.py --prometheus http://127.0.0.1:9090 --minutes 60 --out pictures

`make pictures` draws the pictures of the docs, with pictures.py. The layout, titles, units and legends are those of the
dashboard. Colours, the numbers on the axes and the size of a panel are not exactly those of Grafana. It is an error if
the dashboard has a feature of Grafana that this file does not draw.
"""

import argparse
import json
import math
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path

try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import Rectangle
    from matplotlib.textpath import text_to_path
    from matplotlib.ticker import MaxNLocator
except ImportError:
    sys.exit("draw.py needs matplotlib: python3 -m pip install matplotlib")

HERE = Path(__file__).resolve().parent
# The value of a variable that has no --var. It has the effect of the choice "All".
ALL = ".*"
POINTS_MAX = 240
COLOURS = ["#1f77b4", "#e07b00", "#2a8f2a", "#c9302c", "#8256b0", "#8c564b", "#d058a8", "#6b6b6b", "#8f9000", "#0f9fb0"]
DASHES = ["-", (0, (4, 1.5)), (0, (1, 1.2))]
TEXT, FAINT, GRID, BACKGROUND = "#24292e", "#646c76", "#e4e5e8", "#f4f5f5"

# The scales for each unit of a panel. A scale has the least value for which it is used, the divisor of the numbers on
# the axis, and the unit that is written after the numbers.
SECONDS = [(0, 1e-6, " µs"), (1e-3, 1e-3, " ms"), (1, 1, " s"), (120, 60, " min"), (7200, 3600, " h"), (172800, 86400, " d")]
BYTES = [(1024**n, 1024**n, unit) for n, unit in enumerate([" B", " KiB", " MiB", " GiB", " TiB"])]
COUNT = [(0, 1, ""), (1e4, 1e3, " K"), (1e6, 1e6, " M"), (1e9, 1e9, " G")]
UNITS = {
    "s": SECONDS,
    "bytes": BYTES,
    "short": COUNT,
    "percentunit": [(0, 0.01, " %")],
    "reqps": [(least, divisor, unit + " req/s") for least, divisor, unit in COUNT],
    "ops": [(least, divisor, unit + " ops/s") for least, divisor, unit in COUNT],
}

# Seconds between two times on an axis.
TIMES = [15, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800]

# Sizes in points (1/72 inch). A picture is as wide as the text of a page.
WIDTH, PLOT, TITLE, AXIS, LINE, GAP, PADDING, LEFT = 720, 104, 22, 18, 11.5, 6, 8, 47
SMALL = 7.5

matplotlib.rcParams.update({
    "font.family": "DejaVu Sans",
    "font.size": SMALL,
    "svg.fonttype": "none",
    "svg.hashsalt": "hapax",
    "path.simplify_threshold": 0.2,
})


class Fault(Exception):
    """An error that the user can correct."""


class Source:
    """A Prometheus, and the span of time to draw."""

    def __init__(self, url, start, end, scrape_seconds, variables):
        self.url, self.variables = url.rstrip("/"), variables
        self.start, self.end = int(start.timestamp()), int(end.timestamp())
        if self.start >= self.end:
            raise Fault(f"the start ({start}) must be before the end ({end})")
        self.step = max(scrape_seconds, math.ceil((self.end - self.start) / POINTS_MAX))
        self.rate_interval = max(self.step + scrape_seconds, 4 * scrape_seconds)

    def series(self, target):
        """Returns the series of one query: their labels, times and values. Series without a number are left out."""
        expression = target["expr"].replace("$__rate_interval", f"{self.rate_interval:g}s")
        expression = re.sub(r"\$(\w+)", self.value, expression)
        query = {"query": expression, "start": self.start, "end": self.end, "step": self.step}
        times = [self.start + number * self.step for number in range(int((self.end - self.start) / self.step) + 1)]
        for series in self.ask(query):
            numbers = {round(float(time), 3): float(value) for time, value in series["values"]}
            values = [numbers.get(round(time, 3), math.nan) for time in times]
            if any(map(math.isfinite, values)):
                yield legend(target["legendFormat"], series["metric"]), times, values

    def value(self, variable):
        if variable[1].startswith("__"):
            raise Fault(f"the variable {variable[0]} of Grafana is not known; known is $__rate_interval")
        return self.variables.get(variable[1], ALL)

    def ask(self, query):
        url = f"{self.url}/api/v1/query_range?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise Fault(f"Prometheus refused {query['query']}: {error} {error.read(1000).decode(errors='replace')}")
        except (OSError, ValueError, KeyError) as error:
            raise Fault(f"no answer of a Prometheus from {self.url}: {error}")


def legend(template, labels):
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda name: labels.get(name[1], ""), template).strip()


def rows(dashboard):
    """Returns the title of each row, with its panels."""
    found = []
    for panel in sorted(dashboard["panels"], key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"])):
        if panel["type"] == "row":
            found.append((panel["title"], []))
            continue
        check(panel)
        if not found:
            raise Fault(f"panel {panel['title']!r} must be in a row")
        found[-1][1].append(panel)
    return found


def check(panel):
    """Fails if a panel has a feature that is not drawn here."""
    field = panel["fieldConfig"]
    unit = field["defaults"].get("unit")
    fault = None
    if panel["type"] != "timeseries":
        fault = f"the type {panel['type']} is not known; known is timeseries"
    elif unit not in UNITS:
        fault = f"the unit {unit} is not known; known are {', '.join(UNITS)}"
    elif field["overrides"] or "thresholdsStyle" in field["defaults"].get("custom", {}):
        fault = "overrides and thresholds are not known"
    if fault:
        raise Fault(f"panel {panel['title']!r}: {fault}")


def draw_row(panels, source, path):
    """Draws the panels of a row as the dashboard places them. Returns False, and draws nothing, if no panel has data."""
    lines, found = {}, False
    for panel in panels:
        series = [series for target in panel["targets"] for series in source.series(target)]
        found = found or bool(series)
        lines.setdefault(panel["gridPos"]["y"], []).append((panel, series))
    if not found:
        return False
    # Panels in one line have the same height, so the panel with the longest legend has the smallest plot.
    heights = [TITLE + PLOT + AXIS + max(legend_height(*drawn) for drawn in line) + PADDING for line in lines.values()]
    height = sum(heights) + GAP * (len(heights) + 1)
    figure = Figure(figsize=(WIDTH / 72, height / 72), facecolor=BACKGROUND)
    top = height - GAP
    for line, line_height in zip(lines.values(), heights):
        for panel, series in line:
            left, width = place(panel)
            draw_panel(figure, panel, series, source, (left, top - line_height, width, line_height))
        top -= line_height + GAP
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    path.write_text("".join(map(shorten, path.read_text().splitlines(keepends=True))))
    return True


def shorten(line):
    """Makes a line of SVG smaller. Hundredths of a point are enough."""
    if "</text>" in line:
        # Most fonts take less room than the one that was measured.
        return line.replace("'DejaVu Sans'", "sans-serif")
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", line)


def place(panel):
    """Returns the left edge and the width of a panel. Grafana has 24 columns."""
    column = (WIDTH - GAP) / 24
    at = panel["gridPos"]
    return GAP + at["x"] * column, at["w"] * column - GAP


def legend_columns(panel, series):
    """Returns how many columns of labels fit into a panel. Each column is as wide as the widest label."""
    font = FontProperties(size=SMALL)
    widths = [text_to_path.get_text_width_height_descent(label, font, False)[0] for label, *_ in series]
    # A label has a line and a space at its left, and a space to the next column.
    fit = int((place(panel)[1] - 2 * PADDING + 9) / (max(widths, default=0) + 22))
    return max(1, min(fit, len(series)))


def legend_height(panel, series):
    return LINE * math.ceil(len(series) / legend_columns(panel, series))


def draw_panel(figure, panel, series, source, box):
    """Draws a panel into a box: left, bottom, width and height in points."""
    left, bottom, width, height = box
    size = figure.get_size_inches() * 72

    def at(x, y):
        """Returns a place in the box, from its upper left corner, in the figure's units."""
        return (left + x) / size[0], (bottom + height - y) / size[1]

    figure.add_artist(Rectangle(at(0, height), width / size[0], height / size[1], transform=figure.transFigure,
                                facecolor="white", edgecolor="#d8dadd", linewidth=0.6, zorder=-1))
    figure.text(*at(PADDING, 15), panel["title"], fontsize=8.5, weight="bold", color=TEXT)
    plot = height - TITLE - AXIS - legend_height(panel, series) - PADDING
    axes = figure.add_axes((*at(LEFT, TITLE + plot), (width - LEFT - PADDING) / size[0], plot / size[1]))
    axes.grid(color=GRID, linewidth=0.6)
    axes.tick_params(length=0, labelcolor=FAINT, pad=4)
    axes.spines[:].set_visible(False)
    for number, (label, times, values) in enumerate(series):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        axes.plot(times, values, color=colour, linestyle=dash, linewidth=1.1, label=label)
    scale_times(axes, source, width)
    scale_values(axes, panel["fieldConfig"]["defaults"], series)
    if not series:
        axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", fontsize=9, color=FAINT)
        return
    figure.legend(*axes.get_legend_handles_labels(), loc="upper left", bbox_to_anchor=at(PADDING, TITLE + plot + AXIS),
                  ncols=legend_columns(panel, series), borderpad=0, borderaxespad=0, handlelength=1.2, handletextpad=0.5,
                  columnspacing=1.2, labelspacing=(LINE - SMALL) / SMALL - 0.12, labelcolor=TEXT, frameon=False)


def scale_times(axes, source, width):
    axes.set_xlim(source.start, source.end)
    step = next((step for step in TIMES if (source.end - source.start) / step <= width / 38), TIMES[-1])
    # A time nearer to the left edge would overlap the label of the lowest value.
    first = source.start + 0.06 * (source.end - source.start)
    ticks = range(math.ceil(first / step) * step, math.ceil(source.end), step)
    form = "%m-%d" if step >= 86400 else "%H:%M" if step >= 60 else "%H:%M:%S"
    axes.set_xticks(ticks, [datetime.fromtimestamp(tick, timezone.utc).strftime(form) for tick in ticks])


def scale_values(axes, defaults, series):
    """Sets the span of the values, and labels it in one unit for the whole axis."""
    values = [value for *_, values in series for value in values if math.isfinite(value)]
    low, top = min(values, default=0), max(values, default=0)
    low = defaults.get("min", low)
    top = top if top > low else low + 1
    margin = 0.06 * (top - low)
    low, top = low if "min" in defaults else low - margin, top + margin
    scales = UNITS[defaults["unit"]]
    _, divisor, unit = next((scale for scale in reversed(scales) if scale[0] <= max(top, -low)), scales[0])
    ticks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low / divisor, top / divisor)
    ticks = [tick for tick in ticks if low <= tick * divisor <= top]
    axes.set_ylim(low, top)
    axes.set_yticks([tick * divisor for tick in ticks], [f"{tick:.6g}{unit}" if tick else "0" for tick in ticks])


def draw(source, dashboard, out):
    """Draws all rows of a dashboard into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for title, panels in rows(json.loads(dashboard.read_text())):
        path = out / f"dashboard-{title.lower()}.svg"
        if draw_row(panels, source, path):
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
        else:
            print(f"{path}: left out, because no panel has data")


def variable(text):
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE")
    return name, value


def instant(text):
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a time such as 2026-11-24T20:00:00Z")
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prometheus", required=True, metavar="URL")
    parser.add_argument("--dashboard", type=Path, default=HERE / "hapax.json", metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--start", type=instant, metavar="TIME", help="UTC unless it names a zone [default: --minutes before the end]")
    parser.add_argument("--end", type=instant, metavar="TIME", help="[default: now]")
    parser.add_argument("--minutes", type=float, default=60, help="[default: 60]")
    parser.add_argument("--scrape-seconds", type=float, default=15, help="the scrape interval of Prometheus [default: 15]")
    parser.add_argument("--var", type=variable, action="append", default=[], metavar="NAME=VALUE",
                        help="a variable of the dashboard, such as collection=default; a regular expression [default: .*]")
    arguments = parser.parse_args()
    end = arguments.end or datetime.now(timezone.utc)
    start = arguments.start or end - timedelta(minutes=arguments.minutes)
    try:
        source = Source(arguments.prometheus, start, end, arguments.scrape_seconds, dict(arguments.var))
        draw(source, arguments.dashboard, arguments.out)
    except (Fault, OSError, json.JSONDecodeError) as fault:
        return f"draw.py: {fault}"


if __name__ == "__main__":
    sys.exit(main())
