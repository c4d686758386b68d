"""All kinds of charts by name, as Vega for a browser and for pictures, and their legends."""

from .devices import bars, bounds, fast_p, matrix, noise
from .kernels import errors, plan, roofline, samples
from .searches import at_k, run, times, tokens, tree
from .studies import distribution, so_far
from .style import VERDICTS

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
