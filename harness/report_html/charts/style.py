"""What all charts have: colours, configuration, filters, axes.

Colours are the style sheet's custom properties, so that a chart follows light and dark. No chart
needs colour to be read: what colour tells apart also differs by shape, dash, place or words.
"""

INK = "var(--ink)"
SOFT = "var(--ink-2)"
FAINT = "var(--line)"
MEASURED = "var(--measured)"
PUBLISHED = "var(--published)"
BEST = "var(--best)"
BAD = "var(--bad)"
QUIET = "var(--quiet)"
SURFACE = "var(--surface)"

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

CONFIG = {
    "background": "transparent",
    "font": FONT,
    "padding": {"left": 2, "right": 8, "top": 4, "bottom": 2},
    "view": {"stroke": None},
    "axis": {
        "domainColor": FAINT, "gridColor": FAINT, "tickColor": FAINT, "labelColor": SOFT,
        "titleColor": SOFT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "titlePadding": 8, "labelPadding": 4, "gridOpacity": 0.8, "labelOverlap": "greedy",
    },
    "axisX": {"domain": False, "ticks": False},
    "axisY": {"domain": False, "ticks": False},
    "legend": {
        "labelColor": SOFT, "titleColor": SOFT, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "orient": "top", "symbolStrokeColor": SOFT, "labelLimit": 300,
        "offset": 14,
    },
    "title": {"anchor": "start", "color": INK, "fontSize": 16, "fontWeight": 600, "offset": 14,
              "subtitleColor": SOFT, "subtitleFontSize": 12, "subtitlePadding": 6},
    "text": {"color": INK, "fontSize": 12},
    "rule": {"color": SOFT},
    "point": {"filled": True, "size": 70, "opacity": 1},
    "line": {"strokeWidth": 2},
    "bar": {"color": MEASURED},
    "mark": {"aria": False},
}

# A filter on the page hides rows; "" is everything. Rows without the field stay.
FILTER_NAMES = ("device", "problem", "divisor")
FILTERS = [{"name": name, "value": ""} for name in FILTER_NAMES]

FILTERED = {"filter": " && ".join(
    f"(!{name} || !datum.{name} || datum.{name} == {name})" for name in FILTER_NAMES)}

# What the mark stands for, said to screen readers and shown on hover.
TOLD = {"description": {"field": "say"}, "tooltip": {"field": "say"}}


def chart(description, layers, height, data="rows", **more):
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": description,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": data},
        "params": list(FILTERS),
        "transform": [FILTERED],
        "layer": layers,
        "config": CONFIG,
        **more,
    }


def quantity(field, **more):
    return {"field": field, "type": "quantitative", **more}


TICKS = {"name": "ticks", "value": [1, 10]}


def logarithmic(field, title, label="format(datum.value, '~g')"):
    """A logarithmic axis whose ticks, and with them its ends, come with the data: 1, 2, 5, 10, …"""
    return quantity(
        field, title=title,
        scale={"type": "log", "nice": False,
               "domain": {"expr": "[ticks[0], ticks[length(ticks) - 1]]"}},
        axis={"values": {"expr": "ticks"}, "labelExpr": label})


def where(condition):
    return [{"filter": condition}]


# What became of a candidate, for shapes: readers tell four apart, not eleven.
VERDICTS = ["passed", "refused", "never ran", "crashed or hung"]
