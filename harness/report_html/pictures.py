"""The report's charts as SVG files of their own, for README and other pages. They are made of the same
rows and specifications, follow light and dark, and need no script."""

import copy
import html
import re

from . import charts, rows
from .text import plain

WIDTH = 820
_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")


def colours(style_sheet):
    """The custom properties of the style sheet: (light, dark)."""
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style_sheet)
    light, dark = (dict(re.findall(r"--([a-z0-9-]+):\s*(#[0-9a-f]{6})", block))
                   for block in (blocks[0], blocks[1]))
    return light, dark


def _filled(kind, chart_rows, signals):
    """A specification with its rows in it, at a fixed width."""
    specification = copy.deepcopy(charts.told(charts.KINDS[kind]()))
    specification["width"] = WIDTH
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


def _finished(svg, light, dark, title):
    """Colours that any program can draw, dark ones where the reader's system is dark."""
    used = sorted(set(_VARIABLE.findall(svg)) | {"surface"})
    svg = _VARIABLE.sub(lambda match: light[match[1]], svg)
    changes = "".join(
        f'[fill="{light[name]}"]{{fill:{dark[name]}}}[stroke="{light[name]}"]{{stroke:{dark[name]}}}'
        for name in used if light[name] != dark[name])
    head, rest = svg.split(">", 1)
    size = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', head)
    frame = (f'<rect width="{size[1]}" height="{size[2]}" rx="8" fill="{light["surface"]}"/>')
    return (f'{head} role="img" aria-label="{title}"><style>@media (prefers-color-scheme:dark)'
            f"{{{changes}}}</style>{frame}{rest}")


def pictures(report):
    """Every picture as (name, kind, rows, signals, title)."""
    for device in report.devices:
        if not device.rows:
            continue
        name = device.folder
        yield (f"reference-{name}", "bars", rows.reference_bars(report, device, 3),
               {"divisor": "headline"}, f"Percent of reference on {device.name}")
        yield (f"floor-{name}", "bars", rows.floor_bars(report, device, 3), {},
               f"Percent of floor on {device.name}")
        yield f"fast_p-{name}", "fast_p", rows.fast_p_rows(device), {}, f"fast_p on {device.name}"
        yield (f"mutants-{name}", "matrix", rows.matrix_rows(report, device), {},
               f"Mutants caught on {device.name}")
    yield ("best-rounds", "distribution", rows.distribution_rows(report), {},
           "Searches by the round in which the best kernel was found")
    for search in report.searches:
        name = search["page"].removeprefix("searches/").removesuffix(".html")
        if search["published"]:
            yield (f"run-{name}", "run", *rows.run_rows(report, search),
                   f"Published and measured times of {search['name']}")
        yield (f"times-{name}", "times", *rows.times_rows(search),
               f"Candidates of {search['name']} and the best so far")
        yield f"tree-{name}", "tree", *rows.tree_rows(search), f"Tree of {search['name']}"


def draw(report, style_sheet, to_svg):
    """Every picture that has anything to show, as (name, SVG)."""
    light, dark = colours(style_sheet)
    for name, kind, chart_rows, signals, title in pictures(report):
        if chart_rows:
            svg = to_svg(_filled(kind, chart_rows, signals))
            yield name, _finished(svg, light, dark, html.escape(plain(title), quote=True))
