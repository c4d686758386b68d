"""Charts of a device and of the judge on it."""

from .style import BAD, BEST, INK, MEASURED, PUBLISHED, SOFT, SURFACE, TOLD, chart, quantity, where


def bars():
    """A list of bars with words above each: `kind` is head, kernel or published; x in percent."""
    y = {"field": "row", "type": "ordinal", "sort": "ascending", "axis": None}
    x = quantity("value", title=None, stack=None, scale={"domainMin": 0, "nice": False},
                 axis={"orient": "top", "labelExpr": "datum.value + '%'", "tickCount": 5})
    name = {"baseline": "middle", "align": "left", "limit": 420,
            "fontWeight": {"expr": "datum.kind == 'head' ? 600 : 400"}}
    dy = {"expr": "datum.kind == 'head' ? 5 : -7"}
    size = {"condition": {"test": "datum.kind == 'head'", "value": 14}, "value": 12}
    colour = {"condition": {"test": "datum.kind == 'published'", "value": PUBLISHED}, "value": INK}
    bar = {"type": "bar", "height": 9, "yOffset": 8}
    return chart(
        "Bars in percent, one for each kernel and each published figure, in groups of problems",
        [
            {"mark": {"type": "rule", "strokeDash": [2, 3], "color": SOFT, "name": "hundred"},
             "encoding": {"x": {"datum": 100, "type": "quantitative"}}},
            # Below the words, so that the line of 100% does not run through them.
            {"transform": where("datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": dy, "stroke": SURFACE, "strokeWidth": 8,
                      "strokeJoin": "round", "name": "halos"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"},
                          "size": size}},
            {"transform": where("datum.kind != 'head' && datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": -7, "align": "right", "fontWeight": 600,
                      "stroke": SURFACE, "strokeWidth": 8, "strokeJoin": "round",
                      "name": "value halos"},
             "encoding": {"y": y, "x": {"value": "width"}, "text": {"field": "words"}}},
            {"transform": where("datum.kind == 'kernel'"),
             "mark": {**bar, "color": MEASURED, "cornerRadiusEnd": 2, "cursor": "pointer",
                      "name": "kernels"},
             "encoding": {"y": y, "x": x, **TOLD}},
            {"transform": where("datum.kind == 'published'"),
             "mark": {**bar, "fill": "transparent", "stroke": PUBLISHED, "strokeWidth": 1.5,
                      "strokeDash": [4, 2], "cornerRadiusEnd": 2, "name": "published"},
             "encoding": {"y": y, "x": x, **TOLD}},
            {"transform": where("datum.kind == 'kernel' && isValid(datum.low)"),
             "mark": {"type": "rule", "yOffset": 8, "color": INK, "strokeWidth": 1.5,
                      "name": "intervals"},
             "encoding": {"y": y, "x": quantity("low"), "x2": {"field": "high"}}},
            {"transform": where("datum.kind == 'kernel' && isValid(datum.strongest)"),
             "mark": {"type": "point", "shape": "diamond", "yOffset": 8, "fill": SURFACE,
                      "stroke": INK, "strokeWidth": 1.5, "size": 60, "name": "strongest"},
             "encoding": {"y": y, "x": quantity("strongest"), **TOLD}},
            # Rows without words keep two charts that stand side by side in step.
            {"transform": where("datum.kind != 'blank' || width > 400"),
             "mark": {"type": "tick", "opacity": 0, "name": "places"}, "encoding": {"y": y}},
            {"transform": where("datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": dy, "name": "names"},
             "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}, "size": size,
                          "color": colour}},
            {"transform": where("datum.kind != 'head' && datum.kind != 'blank'"),
             "mark": {"type": "text", **name, "dy": -7, "align": "right", "fontWeight": 600,
                      "name": "values"},
             "encoding": {"y": y, "x": {"value": "width"}, "text": {"field": "words"},
                          "color": colour}},
        ],
        {"step": 36},
    )


def fast_p():
    """The share of problems that are solved more than p times as fast as the reference."""
    x = quantity("p", title="p: times as fast as the reference", scale={"nice": False})
    y = quantity("value", title=None, scale={"domain": [0, 1]},
                 axis={"format": ".0%", "tickCount": 5})
    return chart(
        "fast_p over p, as a step line",
        [
            {"mark": {"type": "area", "interpolate": "step-after", "color": MEASURED,
                      "opacity": 0.12, "name": "area"}, "encoding": {"x": x, "y": y}},
            {"mark": {"type": "rule", "strokeDash": [2, 3], "name": "one"},
             "encoding": {"x": {"datum": 1, "type": "quantitative"}}},
            {"mark": {"type": "line", "interpolate": "step-after", "color": MEASURED,
                      "name": "line"}, "encoding": {"x": x, "y": y}},
            {"transform": where("datum.step"),
             "mark": {"type": "point", "color": MEASURED, "name": "steps"},
             "encoding": {"x": x, "y": y, **TOLD}},
        ],
        220,
    )


def matrix():
    """Which check caught how many mutants of which problem."""
    x = {"field": "problem", "type": "ordinal", "sort": None, "title": None,
         "axis": {"orient": "top", "labelAngle": -55, "labelAlign": "left", "labelLimit": 150,
                  "labelOverlap": False}}
    y = {"field": "check", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": {"expr": "width < 330 ? 110 : 260"}, "labelColor": INK}}
    return chart(
        "Mutants caught, by problem and by the check that spoke first",
        [
            {"mark": {"type": "rect", "color": MEASURED, "cornerRadius": 3, "name": "cells"},
             "encoding": {"x": x, "y": y, **TOLD,
                          "opacity": quantity("mutants", legend=None,
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
    x = quantity("share", title="share of the bounds; 1e+6 and more at the right",
                 scale={"type": "log", "nice": False}, axis={"format": "~e", "tickCount": 6})
    y = {"field": "problem", "type": "ordinal", "sort": None, "title": None,
         "axis": {"labelLimit": {"expr": "width < 330 ? 110 : 200"}, "labelColor": INK}}
    return chart(
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
    y = quantity("value", title="% off", scale={"zero": True}, axis={"tickCount": 4})
    colour = {"condition": {"test": "datum.covers", "value": MEASURED}, "value": BAD}
    return chart(
        "Work timed against itself: intervals of the ratio, in percent from 1",
        [
            {"mark": {"type": "rule", "name": "truth", "strokeDash": [2, 3]},
             "encoding": {"y": {"datum": 0, "type": "quantitative"}}},
            {"mark": {"type": "rule", "strokeWidth": 1.5, "name": "intervals"},
             "encoding": {"x": x, "y": quantity("low"), "y2": {"field": "high"},
                          "color": colour, **TOLD}},
            {"mark": {"type": "point", "size": 14, "name": "values"},
             "encoding": {"x": x, "y": y, "color": colour, **TOLD}},
        ],
        150,
    )
