"""The report's charts as SVG files of their own, for README and other pages. They are made of the same
rows and specifications, follow light and dark, and need no script."""

import copy
import hashlib
import html
import json
import re

from . import charts, rows
from .text import shortened

WIDTH = 820
MOST_KERNELS = 3  # of a problem
_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")
# A picture is one image to whoever reads it, by its title: what is said of its parts is for a chart in a page.
_OF_PARTS = re.compile(r' (?:class|role|aria-hidden|aria-roledescription|aria-label)="[^"]*"')
_EMPTY = re.compile(r'<path d="M0,0h0v0h0Z" pointer-events="none"/>')
_FONT = re.compile(r' font-family="[^"]*"')
_DEFAULTS = re.compile(r' (?:opacity="1"|font-weight="normal"|pointer-events="none")')
_LONG_NUMBER = re.compile(r"\d+\.\d{3,}")


def colours(style_sheet):
    """The custom properties of the style sheet: (light, dark)."""
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style_sheet)
    light, dark = (dict(re.findall(r"--([a-z0-9-]+):\s*(#[0-9a-f]{6})", block))
                   for block in (blocks[0], blocks[1]))
    return light, dark


def _filled(kind, chart_rows, signals, title, words):
    """A specification with its rows in it, at a fixed width."""
    specification = copy.deepcopy(charts.told(charts.KINDS[kind]()))
    specification["width"] = WIDTH
    # Whoever shows the picture may have wider letters than whoever made it.
    specification["config"]["padding"] = {"left": 24, "right": 28, "top": 18, "bottom": 14}
    specification["title"] = {"text": shortened(title, 100),
                              "subtitle": [shortened(line, 160) for line in words]}
    keep = [{key: value for key, value in row.items() if key not in ("tip", "href")}
            for row in chart_rows]
    specification["data"] = {"name": "rows", "values": keep}
    for parameter in specification["params"]:
        parameter["value"] = signals.get(parameter["name"], parameter["value"])
    if kind == "tree":
        specification["height"] = signals["tree_height"]
    for layer in specification["layer"]:
        layer["mark"]["aria"] = False
        for channel in ("description", "tooltip"):
            layer["encoding"].pop(channel, None)
    return specification


def _finished(svg, light, dark, title, digest):
    """Colours that any program can draw, dark ones where the reader's system is dark. `digest` is of
    what the picture shows: where fonts differ, so do pictures of the same."""
    used = sorted(set(_VARIABLE.findall(svg)) | {"surface"})
    svg = _VARIABLE.sub(lambda match: light[match[1]], svg)
    changes = "".join(
        f'[fill="{light[name]}"]{{fill:{dark[name]}}}[stroke="{light[name]}"]{{stroke:{dark[name]}}}'
        for name in used if light[name] != dark[name])
    head, rest = svg.split(">", 1)
    rest = _EMPTY.sub("", _OF_PARTS.sub("", rest))
    rest = _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), rest)
    # What all words have in common is said once, and what holds anyway not at all.
    font = _FONT.search(rest)
    if font:
        head, rest = head + font[0], rest.replace(font[0], "")
    rest = _DEFAULTS.sub("", rest)
    size = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', head)
    frame = (f'<rect width="{size[1]}" height="{size[2]}" rx="8" fill="{light["surface"]}"/>')
    return (f'{head} role="img" aria-label="{title}" data-shows="{digest}"><style>@media (prefers-color-scheme:dark)'
            f"{{{changes}}}</style>{frame}{rest}")


def pictures(report):
    """Every picture as (name, kind, rows, signals, title, words below it)."""
    for device in report.devices:
        if not device.rows:
            continue
        name = device.folder
        published = (f"dashed: published, PyTorch's time ÷ the kernel's, "
                     f"on {report.published['device']}" if report.published else "")
        yield (f"reference-{name}", "bars", rows.reference_bars(report, device, MOST_KERNELS),
               {"divisor": "headline"}, f"% of reference on {device.name}",
               ["solid: the headline library's time ÷ the kernel's, with its 95% interval; "
                "diamond: beside the strongest library configuration", published])
        yield (f"ceiling-{name}", "bars", rows.ceiling_bars(report, device, MOST_KERNELS), {},
               f"% of ceiling on {device.name}",
               ["the time at the rates that copies and library products reach ÷ the kernel's"])
        yield (f"fast_p-{name}", "fast_p", rows.fast_p_rows(device), {}, f"fast_p on {device.name}",
               ["problems whose best kernel is more than p times as fast as the headline library"])
        yield (f"mutants-{name}", "matrix", rows.matrix_rows(report, device), {},
               f"Mutants caught on {device.name}", ["by problem and by the check that spoke first"])
    yield ("best-rounds", "distribution", rows.distribution_rows(report), {},
           "When the best kernel was found",
           ["solid: recorded searches; dashed: published, most of the best"])
    for study in report.studies:
        subtitle = [f"solid: {len(study['searches'])} of {study['problems']} searches; "
                    "dashed: published, most of the best"]
        yield (f"study-{study['name']}", "distribution", rows.study_rows(report, study), {},
               "In which round the best kernel was found", subtitle)
        yield (f"study-{study['name']}-rounds", "so_far", rows.so_far_rows(report, study), {},
               "The best so far, as a share of the last best",
               ["solid: searches whose prompts show profiles; dashed: those without"])
    for search in report.searches:
        name = search["page"].removeprefix("searches/").removesuffix(".html")
        if search["published"]:
            chart_rows, signals = rows.run_rows(report, search)
            yield (f"run-{name}", "run", chart_rows, signals,
                   f"A published run, made again: {search['problem']}",
                   [f"best kernel of each round; published on {report.published['device']}, "
                    f"recorded on {search['device']}" if report.published else search["device"]])
        chart_rows, signals = rows.times_rows(search)
        yield (f"times-{name}", "times", chart_rows, signals,
               f"Search {search['name']}: every candidate", ["line: the best so far"])
        chart_rows, signals = rows.tree_rows(search)
        yield (f"tree-{name}", "tree", chart_rows, signals, f"Search {search['name']}: the tree",
               ["ringed: survivors; ★ the best, and the line that led to it"])


def draw(report, style_sheet, to_svg, wanted=None):
    """Every picture that has anything to show, or those of these names, as (name, SVG)."""
    light, dark = colours(style_sheet)
    for name, kind, chart_rows, signals, title, words in pictures(report):
        if not chart_rows or (wanted is not None and name not in wanted):
            continue
        filled = _filled(kind, chart_rows, signals, title, words)
        digest = hashlib.sha256(json.dumps(filled, sort_keys=True).encode()).hexdigest()
        yield name, _finished(to_svg(filled), light, dark, html.escape(shortened(title, 100), quote=True),
                              digest)
