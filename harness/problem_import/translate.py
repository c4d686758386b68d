"""A traced graph, as JSON, into the text of a problem's file. Needs no PyTorch.

  {"id", "title", "names": [["batch", [16, 2]], …],
   "inputs": [{"name", "dtype", "shape": [[own, small], …], "draw": {"normal": [0, 1]}, "how": "…", "made": {…}}],
   "nodes": [{"name", "op": "relu", "arguments": {"self": {"node": "x"}}, "args", "kwargs",
              "shape": [[own, small], …], "dtype": "f32", "mutates": "x" or absent}],
   "outputs": ["relu"]}

A number that differs between both sizes is {"pair": [own, small]}."""

import json
import math
import re

CLASSES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "f8e4m3": "fp8", "f8e5m2": "fp8"}
PYTORCH_TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8",
                 "i32": "int32", "i64": "int64", "bool": "bool"}


class Translation:
    def __init__(self, graph):
        self.graph = graph
        self.n = Notation(one["name"] for one in graph["inputs"])
        self.values = {}
        self.labels = {}  # by input: the size that its integers are below
        self.uses = {}
        for node in graph["nodes"]:
            for name in names_in(node["arguments"]):
                self.uses[name] = self.uses.get(name, 0) + 1
        for one in graph["inputs"]:
            hints = one.get("axes") or [""] * len(one["shape"])
            sizes = [self.n.free(pair, hint) for pair, hint in zip(one["shape"], hints)]
            self.values[one["name"]] = self.n.stored(one["name"], sizes, one["dtype"])

    def sizes_of(self, node):
        return [self.n.free(pair) for pair in node["shape"]]

    def is_output(self, node):
        return any(reference["node"] == node["name"] for reference in self.graph["outputs"])

    def note_labels(self, value, size):
        if value.name is not None:
            self.labels[value.name] = size

    # Arguments.

    def argument(self, value):
        if isinstance(value, dict):
            if "node" in value:
                return self.value_of(value)
            if "pair" in value:
                return self.sized(value["pair"]) or Unsized(value["pair"])
            return value
        if isinstance(value, list):
            return [self.argument(one) for one in value]
        return float(value) if value in ("inf", "-inf", "nan") else value

    def value_of(self, reference):
        value = self.values[reference["node"]]
        if isinstance(value, Untranslatable):
            raise value
        return value[reference["item"]] if "item" in reference else value

    def sized(self, pair, signs=(1,)):
        """What an expression of sizes says about a number that goes with them."""
        known = [(self.n.found(s).mark(), s.pair) for s in self.n.sizes if s.pair[0] != s.pair[1]]
        for value in self.values.values():
            if isinstance(value, Value):
                for first in range(len(value.sizes)):
                    rest = value.sizes[first:]
                    marks = [self.n.found(s).mark() for s in rest if not self.n.is_one(s)]
                    numbers = tuple(math.prod(s.pair[w] for s in rest) for w in (0, 1))
                    if numbers[0] != numbers[1] and len(marks) > 1:
                        known.append(("(" + " * ".join(marks) + ")", numbers))
        forms = ((lambda x: x, "{}"), (lambda x: 1 / x, "1 / {}"), (math.sqrt, "sqrt({})"),
                 (lambda x: 1 / math.sqrt(x), "1 / sqrt({})"), (lambda x: x - 1, "{} - 1"), (lambda x: x + 1, "{} + 1"))
        for f, text in forms:
            for mark, numbers in known:
                for sign in signs:
                    if all(math.isclose(sign * f(n), p, rel_tol=1e-6) for n, p in zip(numbers, pair)):
                        inner = mark[1:-1] if "sqrt(" in text and mark.startswith("(") else mark
                        return ("-" if sign < 0 else "") + text.format(inner)
        return None

    # Nodes.

    def translate(self, node):
        handler = OPERATORS.get(node["op"].rstrip("_") if node["op"] not in OPERATORS else node["op"])
        if handler is None:
            raise Untranslatable(f"the operator '{node['op']}' has no translation")
        arguments = {key: self.argument(value) for key, value in node["arguments"].items()}
        try:
            return handler(self, node=node, op=node["op"].rstrip("_"), **arguments)
        except Untranslatable as error:
            raise Untranslatable(f"{error} (operator '{node['op']}')" if node["op"] not in str(error) else str(error))
        except (TypeError, AttributeError, KeyError, IndexError, ValueError) as error:
            raise Untranslatable(f"the operator '{node['op']}' with these arguments has no translation ({error})")

    def run(self):
        for node in self.graph["nodes"]:
            try:
                value = self.translate(node)
                if isinstance(value, Value) and value.name is None:
                    text = value.read(["0"] * len(value.sizes))
                    again = self.uses.get(node["name"], 0) > 1 and (self.n.is_heavy(value) or len(text) > 60)
                    if again or len(text) > 300:
                        value = self.n.keep(value, node["op"].strip("_") + "_made")
                for size, pair in zip(value.sizes if isinstance(value, Value) else [], node["shape"]):
                    if self.n.found(size).pair != tuple(pair):
                        raise Untranslatable(f"the operator '{node['op']}' gives other sizes than were translated")
            except Untranslatable as error:
                value = error  # only what the outputs need counts
            self.values[node["name"]] = value
            if node.get("mutates"):
                self.values[node["mutates"]] = value


class Unsized:
    """A number that goes with the sizes, and that no expression was found for."""

    def __init__(self, pair):
        self.pair = pair

    def refuse(self, *_):
        raise Untranslatable(f"a number ({self.pair[0]}) follows from sizes in a way that was not recognised")

    __float__ = __int__ = __index__ = __eq__ = __lt__ = __mul__ = refuse
    __hash__ = None


def names_in(value):
    if isinstance(value, dict):
        if "node" in value:
            yield value["node"]
        else:
            for one in value.values():
                yield from names_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from names_in(one)


def problem_of(graph):
    """The problem and its small sizes: {"problem": {…}, "small": {axis: size}, "notes": […]}."""
    t = Translation(graph)
    t.run()
    outputs = {}
    for i, reference in enumerate(graph["outputs"]):
        value = t.value_of(reference)
        wanted = graph.get("output_names", [])
        name = t.n.unused(wanted[i] if i < len(wanted) else "output" if i == 0 else f"output_{i + 1}")
        stored = t.n.stored(name, value.sizes, value.dtype)
        t.n.define(name, stored.kept, value, ends=False)
        outputs[name] = (value, stored)
    return assembled(t, graph, outputs)
