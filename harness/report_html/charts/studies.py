"""Charts of several searches."""

from .style import MEASURED, PUBLISHED, SURFACE, TOLD, chart, quantity, where


def distribution():
    """Over all searches, the round in which the best kernel was found."""
    x = {"field": "round", "type": "ordinal", "sort": "ascending",
         "title": "round in which the best kernel was found", "axis": {"labelAngle": 0}}
    whole = "sequence(0, domain('y')[1] + 1, ceil(domain('y')[1] / 6))"
    return chart(
        "Number of searches by the round in which the best kernel was found",
        [
            # Every round has its place, also one in which no best kernel was found.
            {"mark": {"type": "tick", "opacity": 0, "name": "places"}, "encoding": {"x": x}},
            {"transform": where("datum.kind == 'search'"),
             "mark": {"type": "bar", "color": MEASURED, "stroke": SURFACE, "strokeWidth": 2,
                      "cursor": "pointer", "name": "searches"},
             "encoding": {
                 "x": x,
                 "y": quantity("count", title="searches", stack="zero",
                               axis={"format": "d", "values": {"expr": whole}}),
                 "detail": {"field": "name"}, **TOLD}},
            {"transform": where("datum.kind == 'published'"),
             "mark": {"type": "bar", "fill": PUBLISHED, "fillOpacity": 0.12, "stroke": PUBLISHED,
                      "strokeWidth": 1.5, "strokeDash": [4, 2], "name": "published"},
             "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": "height"}, **TOLD}},
        ],
        180,
    )


def so_far():
    """The best so far of each search of a study, as a share of its last best, by round."""
    x = {"field": "round", "type": "ordinal", "sort": "ascending", "title": "after round",
         "axis": {"labelAngle": 0}}
    y = quantity("value", title="% of the last best", scale={"domain": [0, 100]},
                 axis={"tickCount": 5})
    dash = {"field": "kind", "type": "nominal", "legend": None,
            "scale": {"domain": ["without profiles", "with profiles"], "range": [[4, 3], [1, 0]]}}
    return chart(
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
