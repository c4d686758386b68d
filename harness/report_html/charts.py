"""The kinds of charts, as Vega-Lite specifications without data. A page holds its data as rows and
names the kind; the same specification with the rows in it gives the picture as SVG.

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


def _spec(description, layers, height, data="rows", **more):
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


def _quantity(field, **more):
    return {"field": field, "type": "quantitative", **more}


TICKS = {"name": "ticks", "value": [1, 10]}


def _logarithmic(field, title, label="format(datum.value, '~g')"):
    """A logarithmic axis whose ticks, and with them its ends, come with the data: 1, 2, 5, 10, …"""
    return _quantity(
        field, title=title,
        scale={"type": "log", "nice": False,
               "domain": {"expr": "[ticks[0], ticks[length(ticks) - 1]]"}},
        axis={"values": {"expr": "ticks"}, "labelExpr": label})


def _where(condition):
    return [{"filter": condition}]


def bars():
    """A list of bars with words above each: `kind` is head, kernel or published; x in percent."""
    y = {"field": "row", "type": "ordinal", "sort": "ascending", "axis": None}
    x = _quantity("value", title=None, stack=None, scale={"domainMin": 0, "nice": False},
                  axis={"orient": "top", "labelExpr": "datum.value + '%'", "tickCount": 5})
    name = {"baseline": "middle", "align": "left", "limit": 420,
            "fontWeight": {"expr": "datum.kind == 'head' ? 600 : 400"}}
    dy = {"expr": "datum.kind == 'head' ? 5 : -7"}
    size = {"condition": {"test": "datum.kind == 'head'", "value": 14}, "value": 12}
    colour = {"condition": {"test": "datum.kind == 'published'", "value": PUBLISHED}, "value": INK}
    bar = {"type": "bar", "height": 9, "yOffset": 8}
    return _spec(
        "Bars in percent, one for each kernel and each published figure, in groups of problems",
        [
            {"mark": {"type": "rule", "strokeDash": [2, 3], "color": SOFT, "name": "hundred"},
             "encoding": {"x": {"datum": 100, "type": "quantitative"}}},
            # Below the words, so that the line of 100% does not run through them.
            {"transform": _where("datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": dy, "stroke": SURFACE, "strokeWidth": 8,
                      "strokeJoin": "round", "name": "halos"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"},
                          "size": size}},
            {"transform": _where("datum.kind != 'head' && datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": -7, "align": "right", "fontWeight": 600,
                      "stroke": SURFACE, "strokeWidth": 8, "strokeJoin": "round",
                      "name": "value halos"},
             "encoding": {"y": y, "x": {"value": "width"}, "text": {"field": "words"}}},
            {"transform": _where("datum.kind == 'kernel'"),
             "mark": {**bar, "color": MEASURED, "cornerRadiusEnd": 2, "cursor": "pointer",
                      "name": "kernels"},
             "encoding": {"y": y, "x": x, **TOLD}},
            {"transform": _where("datum.kind == 'published'"),
             "mark": {**bar, "fill": "transparent", "stroke": PUBLISHED, "strokeWidth": 1.5,
                      "strokeDash": [4, 2], "cornerRadiusEnd": 2, "name": "published"},
             "encoding": {"y": y, "x": x, **TOLD}},
            {"transform": _where("datum.kind == 'kernel' && isValid(datum.low)"),
             "mark": {"type": "rule", "yOffset": 8, "color": INK, "strokeWidth": 1.5,
                      "name": "intervals"},
             "encoding": {"y": y, "x": _quantity("low"), "x2": {"field": "high"}}},
            {"transform": _where("datum.kind == 'kernel' && isValid(datum.strongest)"),
             "mark": {"type": "point", "shape": "diamond", "yOffset": 8, "fill": SURFACE,
                      "stroke": INK, "strokeWidth": 1.5, "size": 60, "name": "strongest"},
             "encoding": {"y": y, "x": _quantity("strongest"), **TOLD}},
            # Rows without words keep two charts that stand side by side in step.
            {"transform": _where("datum.kind != 'blank' || width > 400"),
             "mark": {"type": "tick", "opacity": 0, "name": "places"}, "encoding": {"y": y}},
            {"transform": _where("datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": dy, "name": "names"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}, "size": size,
                          "color": colour}},
            {"transform": _where("datum.kind != 'head' && datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": -7, "align": "right", "fontWeight": 600,
                      "name": "values"},
             "encoding": {"y": y, "x": {"value": "width"}, "text": {"field": "words"},
                          "color": colour}},
        ],
        {"step": 36},
    )


def run():
    """A search's times round by round, beside the times that were published of such a run."""
    series = {"field": "series", "type": "nominal", "title": None}

    def told_apart(values):
        return {**series, "scale": {"domain": {"expr": "series"}, "range": values}}

    # In this order: published, recorded, and measured again, on one device after the other.
    colour = told_apart([PUBLISHED, MEASURED, BEST, INK, BAD, QUIET])
    dash = told_apart([[6, 3], [1, 0], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3]])
    shape = told_apart(["square", "circle", "triangle-up", "diamond", "cross", "triangle-down"])
    x = {"field": "round", "type": "quantitative", "title": "round",
         "axis": {"tickMinStep": 1, "format": "d", "grid": False}, "scale": {"nice": False}}
    y = _logarithmic("ms", "ms, logarithmic")
    label = {"type": "text", "align": "left", "baseline": "bottom", "dy": -3, "dx": 4,
             "fontSize": 11}
    return _spec(
        "Time of the best kernel of each round in milliseconds, published and measured",
        [
            {"transform": _where("datum.part == 'reference'"),
             "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 1.5, "name": "references"},
             "encoding": {"y": y, "color": colour}},
            {"transform": _where("datum.part == 'round'"),
             "mark": {"type": "line", "strokeWidth": 2, "name": "lines"},
             "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash}},
            {"transform": _where("datum.part == 'round'"),
             "mark": {"type": "point", "size": 80, "cursor": "pointer", "name": "rounds"},
             "encoding": {"x": x, "y": y, "color": colour, "shape": shape, **TOLD}},
            {"transform": _where("datum.part == 'reference'"),
             "mark": {**label, "stroke": SURFACE, "strokeWidth": 5, "name": "halos"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}}},
            {"transform": _where("datum.part == 'reference'"),
             "mark": {**label, "name": "reference names"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"},
                          "color": colour}},
        ],
        340,
        params=[*FILTERS, TICKS, {"name": "series", "value": []}],
    )


# What became of a candidate, for shapes: readers tell four apart, not eleven.
VERDICTS = ["passed", "refused", "never ran", "crashed or hung"]
_VERDICT_SHAPES = ["circle", "cross", "triangle-down", "square"]
_VERDICT_COLOURS = [MEASURED, BAD, QUIET, BAD]


def _verdict(**more):
    return {
        "color": {"field": "verdict", "type": "nominal", "title": None, **more,
                  "scale": {"domain": VERDICTS, "range": _VERDICT_COLOURS}},
        "shape": {"field": "verdict", "type": "nominal", "title": None, **more,
                  "scale": {"domain": VERDICTS, "range": _VERDICT_SHAPES}},
    }


def times():
    """Every candidate of a search by round and time; those that did not pass stand at the top."""
    x = {"field": "x", "type": "quantitative", "title": "round",
         "axis": {"tickMinStep": 1, "format": "d", "grid": False}, "scale": {"nice": False}}
    y = _logarithmic("ms", "ms, logarithmic")
    return _spec(
        "Time of every candidate of a search by round, and the best time so far",
        [
            {"transform": _where("datum.part == 'reference'"),
             "mark": {"type": "rule", "strokeDash": [1, 3], "color": SOFT, "name": "references"},
             "encoding": {"y": y}},
            {"transform": _where("datum.part == 'reference'"),
             "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -3,
                      "color": SOFT, "fontSize": 11, "name": "reference names"},
             "encoding": {"y": y, "x": {"value": "width"}, "text": {"field": "label"}}},
            {"transform": _where("datum.part == 'best'"),
             "mark": {"type": "line", "interpolate": "step-after", "color": BEST,
                      "strokeWidth": 2.5, "name": "best so far"},
             "encoding": {"x": x, "y": y}},
            {"transform": _where("datum.part == 'again'"),
             "mark": {"type": "point", "shape": "triangle-up", "fill": "transparent",
                      "stroke": BEST, "strokeWidth": 1.5, "size": 55, "cursor": "pointer",
                      "name": "measured again"},
             "encoding": {"x": x, "y": y, **TOLD}},
            {"transform": _where("datum.part == 'candidate' && isValid(datum.ms)"),
             "mark": {"type": "point", "cursor": "pointer", "name": "passed"},
             "encoding": {"x": x, "y": y, **TOLD, **_verdict()}},
            {"transform": _where("datum.part == 'candidate' && !isValid(datum.ms)"),
             "mark": {"type": "point", "cursor": "pointer", "name": "failed"},
             "encoding": {"x": x, "y": {"value": -10}, **TOLD, **_verdict()}},
            {"transform": _where("datum.part == 'lane' && width > 420"),
             "mark": {"type": "text", "align": "right", "baseline": "middle", "dx": -8,
                      "color": SOFT, "fontSize": 11, "name": "lane"},
             "encoding": {"x": {"value": 0}, "y": {"value": -10}, "text": {"field": "label"}}},
        ],
        320,
        params=[*FILTERS, TICKS],
    )


def tree():
    """Rounds from left to right; a line from each kernel that a candidate's prompt showed."""
    x = {"field": "x", "type": "quantitative", "title": "round", "scale": {"nice": False,
         "padding": 14}, "axis": {"tickMinStep": 1, "format": "d", "grid": False}}
    y = _quantity("y", axis=None, scale={"nice": False, "padding": 14, "reverse": True})
    edge = {"x": x, "y": y, "detail": {"field": "edge"}, "order": {"field": "order"}}
    return _spec(
        "Tree of a search: candidates by round, and which kernels each was written from",
        [
            {"transform": _where("datum.part == 'edge' && !datum.line_of_best"),
             "mark": {"type": "line", "interpolate": "basis", "color": FAINT, "strokeWidth": 1.2,
                      "name": "edges"},
             "encoding": edge},
            {"transform": _where("datum.part == 'edge' && datum.line_of_best"),
             "mark": {"type": "line", "interpolate": "basis", "color": BEST, "strokeWidth": 2.5,
                      "name": "line of the best"},
             "encoding": edge},
            {"transform": _where("datum.survived"),
             "mark": {"type": "point", "fill": "transparent", "stroke": INK, "strokeWidth": 1.2,
                      "size": 210, "name": "survivors"},
             "encoding": {"x": x, "y": y}},
            {"transform": _where("datum.part == 'candidate'"),
             "mark": {"type": "point", "size": 90, "cursor": "pointer", "name": "candidates"},
             "encoding": {"x": x, "y": y, **TOLD, **_verdict()}},
            {"transform": _where("datum.best"),
             "mark": {"type": "text", "dy": -14, "fontSize": 14, "color": BEST, "text": "★",
                      "name": "best"},
             "encoding": {"x": x, "y": y}},
        ],
        200,
        params=[*FILTERS, {"name": "tree_height", "value": 200}],
    )


def tokens():
    """Tokens of a search by round: prompts outlined, replies filled."""
    kinds = ["prompts", "replies"]
    return _spec(
        "Tokens of prompts and replies by round",
        [{
            "mark": {"type": "bar", "stroke": MEASURED, "strokeWidth": 1, "name": "tokens"},
            "encoding": {
                "x": {"field": "round", "type": "ordinal", "title": "round", "sort": None,
                      "axis": {"labelAngle": 0}},
                "xOffset": {"field": "kind", "sort": kinds},
                "y": _quantity("tokens", title="tokens", axis={"format": "~s", "tickCount": 4}),
                "fillOpacity": {"field": "kind", "title": None,
                                "scale": {"domain": kinds, "range": [0.15, 1]}},
                **TOLD,
            },
        }],
        180,
    )


def at_k():
    """pass@k or speedup@k over k, which doubles."""
    x = {"field": "k", "type": "ordinal", "title": "k", "axis": {"labelAngle": 0}}
    y = _quantity("value", title=None, scale={"zero": True}, axis={"tickCount": 4})
    return _spec(
        "A figure over the number k of candidates drawn",
        [
            {"mark": {"type": "line", "color": MEASURED, "name": "line"},
             "encoding": {"x": x, "y": y}},
            {"mark": {"type": "point", "color": MEASURED, "name": "points"},
             "encoding": {"x": x, "y": y, **TOLD}},
            {"mark": {"type": "text", "dy": -11, "name": "values"},
             "encoding": {"x": x, "y": y, "text": {"field": "words"}}},
        ],
        150,
    )


def fast_p():
    """The share of problems that are solved more than p times as fast as the reference."""
    x = _quantity("p", title="p: times as fast as the reference", scale={"nice": False})
    y = _quantity("value", title=None, scale={"domain": [0, 1]},
                  axis={"format": ".0%", "tickCount": 5})
    return _spec(
        "fast_p over p, as a step line",
        [
            {"mark": {"type": "area", "interpolate": "step-after", "color": MEASURED,
                      "opacity": 0.12, "name": "area"}, "encoding": {"x": x, "y": y}},
            {"mark": {"type": "rule", "strokeDash": [2, 3], "name": "one"},
             "encoding": {"x": {"datum": 1, "type": "quantitative"}}},
            {"mark": {"type": "line", "interpolate": "step-after", "color": MEASURED,
                      "name": "line"}, "encoding": {"x": x, "y": y}},
            {"transform": _where("datum.step"),
             "mark": {"type": "point", "color": MEASURED, "name": "steps"},
             "encoding": {"x": x, "y": y, **TOLD}},
        ],
        220,
    )


def distribution():
    """Over all searches, the round in which the best kernel was found."""
    x = {"field": "round", "type": "ordinal", "sort": "ascending",
         "title": "round in which the best kernel was found", "axis": {"labelAngle": 0}}
    whole = "sequence(0, domain('y')[1] + 1, ceil(domain('y')[1] / 6))"
    return _spec(
        "Number of searches by the round in which the best kernel was found",
        [
            # Every round has its place, also one in which no best kernel was found.
            {"mark": {"type": "tick", "opacity": 0, "name": "places"}, "encoding": {"x": x}},
            {"transform": _where("datum.kind == 'search'"),
             "mark": {"type": "bar", "color": MEASURED, "stroke": SURFACE, "strokeWidth": 2,
                      "cursor": "pointer", "name": "searches"},
             "encoding": {
                 "x": x,
                 "y": _quantity("count", title="searches", stack="zero",
                                axis={"format": "d", "values": {"expr": whole}}),
                 "detail": {"field": "name"}, **TOLD}},
            {"transform": _where("datum.kind == 'published'"),
             "mark": {"type": "bar", "fill": PUBLISHED, "fillOpacity": 0.12, "stroke": PUBLISHED,
                      "strokeWidth": 1.5, "strokeDash": [4, 2], "name": "published"},
             "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": "height"}, **TOLD}},
        ],
        180,
    )


def plan():
    """Buffers as lanes, steps of the plan from left to right, a mark where a step uses a buffer."""
    kinds = ["input, read only", "output", "workspace", "set to a byte"]
    x = {"field": "step", "type": "ordinal", "sort": None, "title": None,
         "axis": {"orient": "top", "labelAngle": 0, "labelLimit": 160, "grid": False,
                  "labelExpr": "width / length(domain('x')) < 110 ? split(datum.label, ' ')[0] "
                               ": datum.label"},
         "scale": {"paddingOuter": 0.5}}
    y = {"field": "buffer", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": 190, "labelColor": INK, "grid": True}}
    return _spec(
        "Launch plan: which step uses which buffer",
        [
            {"transform": _where("datum.part == 'lane'"),
             "mark": {"type": "rule", "color": FAINT, "strokeWidth": 6, "strokeCap": "round",
                      "name": "lanes"},
             "encoding": {"y": y, "x": {"field": "first", "type": "ordinal", "sort": None},
                          "x2": {"field": "last"}}},
            {"transform": _where("datum.part == 'step'"),
             "mark": {"type": "rule", "color": SOFT, "strokeWidth": 1.5, "name": "steps"},
             "encoding": {"x": x, "y": {"field": "top", "type": "ordinal", "sort": None},
                          "y2": {"field": "bottom"}, **TOLD}},
            {"transform": _where("datum.part == 'use'"),
             "mark": {"type": "point", "size": 130, "stroke": SURFACE, "strokeWidth": 1,
                      "name": "uses"},
             "encoding": {
                 "x": x, "y": y, **TOLD,
                 "shape": {"field": "kind", "title": None,
                           "scale": {"domain": kinds,
                                     "range": ["circle", "square", "diamond", "cross"]}},
                 "color": {"field": "kind", "title": None,
                           "scale": {"domain": kinds,
                                     "range": [MEASURED, BEST, PUBLISHED, QUIET]}}}},
        ],
        {"step": 34},
        resolve={"scale": {"x": "shared", "y": "shared"}},
    )


def samples():
    """Every timed sample as its distance from its own median, with quartiles."""
    y = {"field": "who", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": 200, "labelColor": INK, "grid": False,
                  "labelExpr": "split(datum.label, '\\n')"}}
    x = _quantity("percent", title="% from the median", scale={"zero": True})
    return _spec(
        "Timed samples of the kernel and its references, each as its distance from the median",
        [
            {"mark": {"type": "rule", "strokeDash": [2, 3], "name": "median"},
             "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
            {"transform": _where("datum.part == 'quartiles'"),
             "mark": {"type": "bar", "height": 14, "color": MEASURED, "opacity": 0.25,
                      "name": "quartiles"},
             "encoding": {"y": y, "x": _quantity("low"), "x2": {"field": "high"},
                          **TOLD}},
            {"transform": _where("datum.part == 'sample'"),
             "mark": {"type": "tick", "color": MEASURED, "opacity": 0.6, "thickness": 1.5,
                      "height": 16, "name": "samples"},
             "encoding": {"y": y, "x": x, **TOLD}},
        ],
        {"step": 34},
    )


def errors():
    """Errors against float64 as a share of their bounds: the kernel beside the libraries."""
    kinds = ["this kernel", "library", "definition"]
    x = _quantity("share", title="share of the bound", scale={"type": "log"},
                  axis={"format": "~e", "tickCount": 5})
    y = {"field": "measure", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": 170, "labelColor": INK}}
    kind = {"field": "kind", "title": None}
    return _spec(
        "Errors against the float64 truth as shares of their bounds",
        [
            {"mark": {"type": "rule", "strokeDash": [4, 2], "color": BAD, "name": "bound"},
             "encoding": {"x": {"datum": 1, "type": "quantitative"}}},
            {"mark": {"type": "point", "size": 100, "strokeWidth": 1.5, "name": "errors"},
             "encoding": {
                 "x": x, "y": y, **TOLD,
                 "shape": {**kind, "scale": {"domain": kinds,
                                             "range": ["circle", "square", "triangle-up"]}},
                 "color": {**kind, "scale": {"domain": kinds,
                                             "range": [MEASURED, PUBLISHED, QUIET]}}}},
        ],
        {"step": 38},
    )


def roofline():
    """Work per second over work per byte, under what the device was measured to do."""
    x = _quantity("intensity", title="operations per byte, logarithmic",
                  scale={"type": "log", "nice": False},
                  axis={"format": "~s", "tickCount": 5, "grid": False})
    y = _logarithmic("rate", "TFLOP/s, logarithmic")
    return _spec(
        "Roofline: operations per second over operations per byte",
        [
            {"transform": _where("datum.part == 'roof'"),
             "mark": {"type": "line", "color": INK, "strokeWidth": 2, "name": "roof"},
             "encoding": {"x": x, "y": y, "detail": {"field": "roof"}}},
            {"transform": _where("datum.part == 'name'"),
             "mark": {"type": "text", "align": "right", "baseline": "bottom", "color": SOFT,
                      "dx": -4, "dy": -5, "fontSize": 11, "name": "roof names"},
             "encoding": {"x": x, "y": y, "text": {"field": "label"}}},
            {"transform": _where("datum.part == 'kernel' && !datum.this"),
             "mark": {"type": "point", "shape": "circle", "fill": "transparent", "stroke": QUIET,
                      "strokeWidth": 1.5, "size": 55, "cursor": "pointer", "name": "others"},
             "encoding": {"x": x, "y": y, **TOLD}},
            {"transform": _where("datum.part == 'kernel' && datum.this"),
             "mark": {"type": "point", "shape": "diamond", "color": MEASURED, "size": 170,
                      "name": "this"},
             "encoding": {"x": x, "y": y, **TOLD}},
            {"transform": _where("datum.part == 'kernel' && datum.this"),
             "mark": {"type": "text", "dy": 18, "fontWeight": 600, "name": "this one's name",
                      "align": {"expr": "datum.at_right ? 'right' : 'left'"},
                      "dx": {"expr": "datum.at_right ? 8 : -8"}},
             "encoding": {"x": x, "y": y, "text": {"field": "label"}}},
        ],
        280,
        params=[*FILTERS, TICKS],
    )


def matrix():
    """Which check caught how many mutants of which problem."""
    x = {"field": "problem", "type": "ordinal", "sort": None, "title": None,
         "axis": {"orient": "top", "labelAngle": -55, "labelAlign": "left", "labelLimit": 150,
                  "labelOverlap": False}}
    y = {"field": "check", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": {"expr": "width < 330 ? 110 : 260"}, "labelColor": INK}}
    return _spec(
        "Mutants caught, by problem and by the check that spoke first",
        [
            {"mark": {"type": "rect", "color": MEASURED, "cornerRadius": 3, "name": "cells"},
             "encoding": {"x": x, "y": y, **TOLD,
                          "opacity": _quantity("mutants", legend=None,
                                               scale={"type": "sqrt", "range": [0.12, 0.5],
                                                      "zero": False})}},
            {"mark": {"type": "text", "name": "counts"},
             "encoding": {"x": x, "y": y, "text": {"field": "mutants"}}},
        ],
        {"step": 28},
    )


def bounds():
    """How far from the bounds libraries, honest kernels and mutants lie."""
    kinds = ["library", "committed", "honest", "mutant"]
    kind = {"field": "kind", "title": None}
    x = _quantity("share", title="share of the bounds; 1e+6 and more at the right",
                  scale={"type": "log", "nice": False}, axis={"format": "~e", "tickCount": 6})
    y = {"field": "problem", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": {"expr": "width < 330 ? 110 : 200"}, "labelColor": INK}}
    return _spec(
        "Errors of libraries, kernels and mutants as shares of the bounds, by problem",
        [
            {"mark": {"type": "rule", "strokeDash": [4, 2], "color": BAD, "name": "bound"},
             "encoding": {"x": {"datum": 1, "type": "quantitative"}}},
            {"mark": {"type": "point", "size": 42, "opacity": 0.75, "name": "errors"},
             "encoding": {
                 "x": x, "y": y,
                 "yOffset": {"field": "kind", "sort": kinds},
                 **TOLD,
                 "shape": {**kind, "scale": {
                     "domain": kinds, "range": ["square", "circle", "triangle-up", "cross"]}},
                 "color": {**kind, "scale": {
                     "domain": kinds, "range": [PUBLISHED, MEASURED, BEST, BAD]}}}},
        ],
        {"step": 14, "for": "offset"},
    )


def noise():
    """Intervals of the ratio of a piece of work to itself: the truth is 0."""
    x = {"field": "run", "type": "quantitative", "title": "measurement", "axis": {"grid": False},
         "scale": {"nice": False}}
    y = _quantity("value", title="% off", scale={"zero": True}, axis={"tickCount": 4})
    colour = {"condition": {"test": "datum.covers", "value": MEASURED}, "value": BAD}
    return _spec(
        "Work timed against itself: intervals of the ratio, in percent from 1",
        [
            {"mark": {"type": "rule", "name": "truth", "strokeDash": [2, 3]},
             "encoding": {"y": {"datum": 0, "type": "quantitative"}}},
            {"mark": {"type": "rule", "strokeWidth": 1.5, "name": "intervals"},
             "encoding": {"x": x, "y": _quantity("low"), "y2": {"field": "high"},
                          "color": colour, **TOLD}},
            {"mark": {"type": "point", "size": 14, "name": "values"},
             "encoding": {"x": x, "y": y, "color": colour, **TOLD}},
        ],
        150,
    )


def so_far():
    """The best so far of each search of a study, as a share of its last best, by round."""
    x = {"field": "round", "type": "ordinal", "sort": "ascending", "title": "after round",
         "axis": {"labelAngle": 0}}
    y = _quantity("value", title="% of the last best", scale={"domain": [0, 100]},
                  axis={"tickCount": 5})
    dash = {"field": "kind", "type": "nominal", "legend": None,
            "scale": {"domain": ["without profiles", "with profiles"], "range": [[4, 3], [1, 0]]}}
    return _spec(
        "The best so far of each search, as a share of its last best, by round",
        [
            {"mark": {"type": "line", "color": MEASURED, "opacity": 0.7, "name": "lines"},
             "encoding": {"x": x, "y": y, "detail": {"field": "name"}, "strokeDash": dash}},
            {"mark": {"type": "point", "color": MEASURED, "filled": True, "size": 30,
                      "name": "points"},
             "encoding": {"x": x, "y": y, "detail": {"field": "name"}, **TOLD}},
        ],
        240,
    )


KINDS = {function.__name__: function for function in (
    bars, run, times, tree, tokens, at_k, fast_p, distribution, plan, samples, errors, roofline,
    matrix, bounds, noise, so_far)}


def vega_specification(kind, compile_vega_lite):
    """A kind of chart as Vega, which needs no compiler in the browser."""
    vega = compile_vega_lite(without_legends(told(KINDS[kind]())))
    if kind == "tree":  # Vega-Lite has no height that depends on the data of a continuous axis
        del vega["height"]
        vega["signals"].append({"name": "height", "update": "tree_height"})
    return vega


# The signs of a legend that a page writes itself, since words wrap and drawings do not: by the field that
# tells marks apart, (sign, colour, value).
LEGENDS = {
    "times": ("verdict", list(zip("●✚▼■", ("measured", "bad", "quiet", "bad"), VERDICTS))),
    "tree": ("verdict", list(zip("●✚▼■", ("measured", "bad", "quiet", "bad"), VERDICTS))),
    "tokens": ("kind", [("□", "measured", "prompts"), ("■", "measured", "replies")]),
    "plan": ("kind", [("●", "measured", "input, read only"), ("■", "best", "output"),
                      ("◆", "published", "workspace"), ("✚", "quiet", "set to a byte")]),
    "errors": ("kind", [("●", "measured", "this kernel"), ("■", "published", "library"),
                        ("▲", "quiet", "definition")]),
    "bounds": ("kind", [("■", "published", "library"), ("●", "measured", "committed"),
                        ("▲", "best", "honest"), ("✚", "bad", "mutant")]),
}
SERIES_SIGNS = list(zip("■●▲◆✚▼", ("published", "measured", "best", "ink", "bad", "quiet")))


def legend(kind, chart_rows, signals):
    """(sign, colour, words) of what is there."""
    if kind == "run":
        return [(sign, colour, name)
                for (sign, colour), name in zip(SERIES_SIGNS, signals["series"])]
    if kind not in LEGENDS:
        return []
    field, entries = LEGENDS[kind]
    there = {row.get(field) for row in chart_rows}
    return [entry for entry in entries if entry[2] in there]


def without_legends(specification):
    for layer in specification["layer"]:
        for encoding in layer["encoding"].values():
            if "scale" in encoding and encoding.get("field") in ("kind", "verdict", "series"):
                encoding["legend"] = None
    return specification


def told(specification):
    """Marks that are described are part of what a screen reader sees, the others are not. Each layer
    has the name of its marks, by which the drawing can be taken apart again."""
    for layer in specification["layer"]:
        layer["name"] = layer["mark"].pop("name").replace(" ", "_").replace("'", "")
        layer["mark"]["aria"] = "description" in layer["encoding"]
    return specification
