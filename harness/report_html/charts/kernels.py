"""Charts of one kernel."""

from .style import (BAD, BEST, FAINT, FILTERS, INK, MEASURED, PUBLISHED, QUIET, SOFT, SURFACE,
                    TICKS, TOLD, chart, logarithmic, quantity, where)


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
    return chart(
        "Launch plan: which step uses which buffer",
        [
            {"transform": where("datum.part == 'lane'"),
             "mark": {"type": "rule", "color": FAINT, "strokeWidth": 6, "strokeCap": "round",
                      "name": "lanes"},
             "encoding": {"y": y, "x": {"field": "first", "type": "ordinal", "sort": None},
                          "x2": {"field": "last"}}},
            {"transform": where("datum.part == 'step'"),
             "mark": {"type": "rule", "color": SOFT, "strokeWidth": 1.5, "name": "steps"},
             "encoding": {"x": x, "y": {"field": "top", "type": "ordinal", "sort": None},
                          "y2": {"field": "bottom"}, **TOLD}},
            {"transform": where("datum.part == 'use'"),
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
    x = quantity("percent", title="% from the median", scale={"zero": True})
    return chart(
        "Timed samples of the kernel and its references, each as its distance from the median",
        [
            {"mark": {"type": "rule", "strokeDash": [2, 3], "name": "median"},
             "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
            {"transform": where("datum.part == 'quartiles'"),
             "mark": {"type": "bar", "height": 14, "color": MEASURED, "opacity": 0.25,
                      "name": "quartiles"},
             "encoding": {"y": y, "x": quantity("low"), "x2": {"field": "high"},
                          **TOLD}},
            {"transform": where("datum.part == 'sample'"),
             "mark": {"type": "tick", "color": MEASURED, "opacity": 0.6, "thickness": 1.5,
                      "height": 16, "name": "samples"},
             "encoding": {"y": y, "x": x, **TOLD}},
        ],
        {"step": 34},
    )


def errors():
    """Errors against float64 as a share of their bounds: the kernel beside the libraries."""
    kinds = ["this kernel", "library", "definition"]
    x = quantity("share", title="share of the bound", scale={"type": "log"},
                 axis={"format": "~e", "tickCount": 5})
    y = {"field": "measure", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": 170, "labelColor": INK}}
    kind = {"field": "kind", "title": None}
    return chart(
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
    x = quantity("intensity", title="operations per byte, logarithmic",
                 scale={"type": "log", "nice": False},
                 axis={"format": "~s", "tickCount": 5, "grid": False})
    y = logarithmic("rate", "TFLOP/s, logarithmic")
    return chart(
        "Roofline: operations per second over operations per byte",
        [
            {"transform": where("datum.part == 'roof'"),
             "mark": {"type": "line", "color": INK, "strokeWidth": 2, "name": "roof"},
             "encoding": {"x": x, "y": y, "detail": {"field": "roof"}}},
            {"transform": where("datum.part == 'name'"),
             "mark": {"type": "text", "align": "right", "baseline": "bottom", "color": SOFT,
                      "dx": -4, "dy": -5, "fontSize": 11, "name": "roof names"},
             "encoding": {"x": x, "y": y, "text": {"field": "label"}}},
            {"transform": where("datum.part == 'kernel' && !datum.this"),
             "mark": {"type": "point", "shape": "circle", "fill": "transparent", "stroke": QUIET,
                      "strokeWidth": 1.5, "size": 55, "cursor": "pointer", "name": "others"},
             "encoding": {"x": x, "y": y, **TOLD}},
            {"transform": where("datum.part == 'kernel' && datum.this"),
             "mark": {"type": "point", "shape": "diamond", "color": MEASURED, "size": 170,
                      "name": "this"},
             "encoding": {"x": x, "y": y, **TOLD}},
            {"transform": where("datum.part == 'kernel' && datum.this"),
             "mark": {"type": "text", "dy": 18, "fontWeight": 600, "name": "this one's name",
                      "align": {"expr": "datum.at_right ? 'right' : 'left'"},
                      "dx": {"expr": "datum.at_right ? 8 : -8"}},
             "encoding": {"x": x, "y": y, "text": {"field": "label"}}},
        ],
        280,
        params=[*FILTERS, TICKS],
    )
