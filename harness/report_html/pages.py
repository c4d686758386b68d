"""The pages, from the report's data through templates that escape whatever they show."""

import json
from pathlib import Path

import jinja2

from . import charts, code, metrics, pictures, rows, text

TEMPLATES = Path(__file__).parent / "templates"


def _compact(value):
    """Six digits are enough for a place on a page."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _compact(one) for key, one in value.items() if one not in (None, "", [])}
    if isinstance(value, list):
        return [_compact(one) for one in value]
    return text.plain(value) if isinstance(value, str) else value


def chart_table(chart_rows):
    """What a chart shows, as headings and cells: one row for each mark that can be hovered."""
    told = [row for row in chart_rows if "tip" in row]
    headings = []
    for row in told:
        headings += [name for name, _ in row["tip"]["facts"] if name not in headings]
    cells = []
    for row in told:
        facts = dict(row["tip"]["facts"])
        line = [row["tip"]["title"], *(facts.get(name, "") for name in headings)]
        if line not in cells[-1:]:
            cells.append(line)
    return ["", *headings], cells


def _flat(value, prefix=""):
    """Nested members as (dotted name, text)."""
    if isinstance(value, dict):
        return [pair for key, one in value.items() for pair in _flat(one, f"{prefix}{key}.")]
    if isinstance(value, list):
        value = ", ".join(str(one) for one in value)
    return [(prefix.rstrip("."), text.shortened(value, 300))]


def _seen(value):
    """Every text that a template writes goes through here, and is then escaped."""
    return text.plain(value) if type(value) is str else value


class Site:
    def __init__(self, report):
        self.report = report
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True,
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
            finalize=_seen)
        self.environment.filters.update(
            ms=text.milliseconds, in_ms=text.in_milliseconds, percent=text.percent, bytes=text.byte_count,
            grouped=text.grouped, shortened=text.shortened, scientific=text.scientific, flat=_flat)
        self.environment.globals.update(
            report=report, METRICS=metrics.METRICS, rows=rows,
            compact=_compact, chart_table=chart_table, legend=charts.legend, counted=text.counted,
            most=pictures.MOST_KERNELS, verdict_class=rows.verdict_class,
            pretty=lambda value: json.dumps(value, indent=2, ensure_ascii=False))

    def pages(self):
        """Every page as (path, template, what it is about)."""
        for search in self.report.searches:  # what takes longest comes first
            yield search["page"], "search.html", {"search": search}
        yield "judge.html", "judge.html", {}
        yield "index.html", "index.html", {}
        yield "kernels.html", "kernels.html", {}
        yield "searches.html", "searches.html", {}
        yield "problems.html", "problems.html", {}
        if self.report.claims:
            yield "claims.html", "claims.html", {}
        for problem in self.report.catalog:
            yield problem["page"], "problem.html", {"problem": problem}
        for kernel in self.report.kernels:
            yield kernel["page"], "kernel.html", {"kernel": kernel}

    def render(self, path, template, about):
        """`base` leads from the page to the folder of the report."""
        base = "../" * path.count("/")
        return self.environment.get_template(template).render(
            path=path, base=base, pack=code.Pack(), **about)


def chart_script(compile_vega_lite):
    """All kinds of charts as a script, since a page that is opened from a disk cannot read JSON."""
    kinds = {kind: charts.vega_specification(kind, compile_vega_lite) for kind in charts.KINDS}
    return "window.CHARTS = " + json.dumps(kinds, separators=(",", ":")) + ";\n"
