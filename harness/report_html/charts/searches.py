"""Charts of one search."""

from .style import (BAD, BEST, FAINT, FILTERS, INK, MEASURED, PUBLISHED, QUIET, SOFT, SURFACE,
                    TICKS, TOLD, VERDICTS, chart, logarithmic, quantity, where)


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
    y = logarithmic("ms", "ms, logarithmic")
    label = {"type": "text", "align": "left", "baseline": "bottom", "dy": -3, "dx": 4,
             "fontSize": 11}
    return chart(
        "Time of the best kernel of each round in milliseconds, published and measured",
        [
            {"transform": where("datum.part == 'reference'"),
             "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 1.5, "name": "references"},
             "encoding": {"y": y, "color": colour}},
            {"transform": where("datum.part == 'round'"),
             "mark": {"type": "line", "strokeWidth": 2, "name": "lines"},
             "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash}},
            {"transform": where("datum.part == 'round'"),
             "mark": {"type": "point", "size": 80, "cursor": "pointer", "name": "rounds"},
             "encoding": {"x": x, "y": y, "color": colour, "shape": shape, **TOLD}},
            {"transform": where("datum.part == 'reference'"),
             "mark": {**label, "stroke": SURFACE, "strokeWidth": 5, "name": "halos"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}}},
            {"transform": where("datum.part == 'reference'"),
             "mark": {**label, "name": "reference names"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"},
                          "color": colour}},
        ],
        340,
        params=[*FILTERS, TICKS, {"name": "series", "value": []}],
    )


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
    y = logarithmic("ms", "ms, logarithmic")
    return chart(
        "Time of every candidate of a search by round, and the best time so far",
        [
            {"transform": where("datum.part == 'reference'"),
             "mark": {"type": "rule", "strokeDash": [1, 3], "color": SOFT, "name": "references"},
             "encoding": {"y": y}},
            {"transform": where("datum.part == 'reference'"),
             "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -3,
                      "color": SOFT, "fontSize": 11, "name": "reference names"},
             "encoding": {"y": y, "x": {"value": "width"}, "text": {"field": "label"}}},
            {"transform": where("datum.part == 'best'"),
             "mark": {"type": "line", "interpolate": "step-after", "color": BEST,
                      "strokeWidth": 2.5, "name": "best so far"},
             "encoding": {"x": x, "y": y}},
            {"transform": where("datum.part == 'again'"),
             "mark": {"type": "point", "shape": "triangle-up", "fill": "transparent",
                      "stroke": BEST, "strokeWidth": 1.5, "size": 55, "cursor": "pointer",
                      "name": "measured again"},
             "encoding": {"x": x, "y": y, **TOLD}},
            {"transform": where("datum.part == 'candidate' && isValid(datum.ms)"),
             "mark": {"type": "point", "cursor": "pointer", "name": "passed"},
             "encoding": {"x": x, "y": y, **TOLD, **_verdict()}},
            {"transform": where("datum.part == 'candidate' && !isValid(datum.ms)"),
             "mark": {"type": "point", "cursor": "pointer", "name": "failed"},
             "encoding": {"x": x, "y": {"value": -10}, **TOLD, **_verdict()}},
            {"transform": where("datum.part == 'lane' && width > 420"),
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
    y = quantity("y", axis=None, scale={"nice": False, "padding": 14, "reverse": True})
    edge = {"x": x, "y": y, "detail": {"field": "edge"}, "order": {"field": "order"}}
    return chart(
        "Tree of a search: candidates by round, and which kernels each was written from",
        [
            {"transform": where("datum.part == 'edge' && !datum.line_of_best"),
             "mark": {"type": "line", "interpolate": "basis", "color": FAINT, "strokeWidth": 1.2,
                      "name": "edges"},
             "encoding": edge},
            {"transform": where("datum.part == 'edge' && datum.line_of_best"),
             "mark": {"type": "line", "interpolate": "basis", "color": BEST, "strokeWidth": 2.5,
                      "name": "line of the best"},
             "encoding": edge},
            {"transform": where("datum.survived"),
             "mark": {"type": "point", "fill": "transparent", "stroke": INK, "strokeWidth": 1.2,
                      "size": 210, "name": "survivors"},
             "encoding": {"x": x, "y": y}},
            {"transform": where("datum.part == 'candidate'"),
             "mark": {"type": "point", "size": 90, "cursor": "pointer", "name": "candidates"},
             "encoding": {"x": x, "y": y, **TOLD, **_verdict()}},
            {"transform": where("datum.best"),
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
    return chart(
        "Tokens of prompts and replies by round",
        [{
            "mark": {"type": "bar", "stroke": MEASURED, "strokeWidth": 1, "name": "tokens"},
            "encoding": {
                "x": {"field": "round", "type": "ordinal", "title": "round", "sort": None,
                      "axis": {"labelAngle": 0}},
                "xOffset": {"field": "kind", "sort": kinds},
                "y": quantity("tokens", title="tokens", axis={"format": "~s", "tickCount": 4}),
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
    y = quantity("value", title=None, scale={"zero": True}, axis={"tickCount": 4})
    return chart(
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
