"""One import: a program or a FlashInfer definition comes on standard input as JSON, the problem's file and values
to check it with go to descriptor 3.

  {"kind": "kernelbench", "path": "19_ReLU.py", "text": "…", "id": "relu", "title": "…"}
  {"kind": "flashinfer", "path": …, "text": the definition's JSON, "axes": {"batch_size": 8}, "scalars": {"s": 0.5},
   "tensors": {"indices": {"file": "/…/blob.safetensors", "key": "indices"}}, …}"""

import contextlib
import functools
import itertools
import math
import operator
import os
import sys

MOST_CHECKED = 200_000  # elements of all inputs and outputs together


class KernelBench:
    """`Model`, `get_inputs` and, where there are any, `get_init_inputs`."""

    def __init__(self, request, cap=None):
        self.module = module_of(request["text"], request["path"], cap)
        for name in ("Model", "get_inputs"):
            if name not in self.module:
                raise Refused(f"no '{name}': expected Model, get_inputs and get_init_inputs, as KernelBench has them")

    def names(self):
        return {key: value for key, value in self.module.items() if isinstance(value, int) and not
                isinstance(value, bool) and re.fullmatch(r"[A-Za-z]\w*", key)}

    def build(self):
        given = self.module.get("get_init_inputs", list)()
        model = self.module["Model"](**given) if isinstance(given, dict) else self.module["Model"](*given)
        inputs = self.module["get_inputs"]()
        again = self.module["get_inputs"]()
        shapes = [[list(getattr(one, "shape", [])) for one in each] for each in (inputs, again)]
        if shapes[0] != shapes[1]:
            raise Refused("get_inputs gives other shapes from call to call")
        return model, list(inputs)


SAFE_TYPES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
              "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


@functools.cache
def safe_tensor(path, key):
    """A tensor of a file in the format safetensors (https://github.com/huggingface/safetensors)."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        if key not in header:
            raise Refused(f"{path}: no tensor '{key}'")
        spec, begin = header[key], file.tell()
        if spec["dtype"] not in SAFE_TYPES:
            raise Refused(f"{path}: '{key}' is of the type {spec['dtype']}: expected one of {', '.join(SAFE_TYPES)}")
        first, last = spec["data_offsets"]
        file.seek(begin + first)
        data = bytearray(file.read(last - first))
    if math.prod(spec["shape"]) == 0:
        raise Refused(f"{path}: '{key}' is empty")
    return torch.frombuffer(data, dtype=getattr(torch, SAFE_TYPES[spec["dtype"]])).reshape(spec["shape"])


class FlashInfer:
    """The `run` of a definition, at a workload's axes; smaller ones are its variable axes made smaller.

    Integers are those of the workload. Of a workload's floating-point tensors, nothing but the shapes is taken."""

    def __init__(self, request, cap=None):
        self.definition, self.scalars = json.loads(request["text"]), dict(request.get("scalars", {}))
        self.path, self.axes, self.values = request["path"], {}, {}
        given = dict(request["axes"])
        for name, place in request.get("tensors", {}).items():
            self.take(name, place, given)
        for name, axis_value in self.definition["axes"].items():
            own = axis_value.get("value", given.get(name))
            if own is None:
                raise Refused(f"axis '{name}' is variable: expected --workload FILE, or --axis {name}=N")
            kept = axis_value["type"] == "const" and (own <= 64 or request.get("keep_constants"))
            self.axes[name] = own if cap is None or kept else shrunk(own, cap)
        self.module = module_of(self.definition["reference"], request["path"])
        if "run" not in self.module:
            raise Refused("reference: no function 'run'")

    def take(self, name, place, axes):
        """What a workload's tensor says: axes, a number, or integers."""
        spec, tensor = self.definition["inputs"].get(name), safe_tensor(place["file"], place["key"])
        if spec is None:
            raise Refused(f"the workload's '{name}' is no input of the definition")
        if spec["shape"] is None:
            self.scalars[name] = tensor.reshape(-1)[0].item()
            return
        if len(spec["shape"]) != tensor.dim() or spec["dtype"] != str(tensor.dtype).removeprefix("torch."):
            raise Refused(f"the workload's '{name}' is {list(tensor.shape)} of {tensor.dtype}: expected "
                          f"{spec['shape']} of {spec['dtype']}")
        for axis_name, size in zip(spec["shape"], tensor.shape):
            own = self.definition["axes"][axis_name].get("value", axes.get(axis_name, size))
            if own != size:
                raise Refused(f"the workload's '{name}' has {size} for the axis '{axis_name}': expected {own}")
            axes[axis_name] = size
        if not tensor.is_floating_point():
            self.values[name] = tensor

    def names(self):
        return self.axes

    def build(self):
        class Run(torch.nn.Module):
            def __init__(self, run):
                super().__init__()
                self.run = run

            def forward(self, *inputs):
                return self.run(*inputs)

        inputs = []
        for name, spec in self.definition["inputs"].items():
            if spec["shape"] is None:
                if name not in self.scalars:
                    raise Refused(f"input '{name}' is a scalar: expected --workload FILE, whose first workload gives it")
                inputs.append(self.scalars[name])
                continue
            dtype = getattr(torch, spec["dtype"])
            shape = [self.axes[axis_name] for axis_name in spec["shape"]]
            if name in self.values:
                if list(self.values[name].shape) != shape:
                    raise RuntimeError(f"the workload's '{name}' does not go with other sizes")
                inputs.append(self.values[name].clone())
                continue
            if not dtype.is_floating_point:
                raise Refused(f"input '{name}': expected --workload FILE, whose first workload gives its integers as "
                              "safetensors")
            inputs.append(torch.randn(shape, dtype=torch.float32).to(dtype))
        return Run(self.module["run"]), inputs


KINDS = {"kernelbench": KernelBench, "flashinfer": FlashInfer}


@contextlib.contextmanager
def draws_of_fakes():
    with FakeTensorMode(allow_non_fake_inputs=True), Draws() as draws:
        yield draws


def traced(request, cap=None):
    """The graph at one size, and what the program is."""
    program = KINDS[request["kind"]](request, cap)
    with draws_of_fakes() as draws:
        model, inputs = program.build()
    if any(not isinstance(one, (torch.Tensor, int, float, type(None))) for one in inputs):
        raise Refused("get_inputs: expected tensors and numbers")
    with torch.no_grad():
        nodes, outputs, placeholders, exported_program = exported(model, inputs)
    graph_inputs = []
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    user = iter(inputs)
    specs = getattr(program, "definition", {}).get("inputs", {})
    user_names = iter(list(specs) or [None] * len(inputs))
    for name, spec in placeholders.items():
        kind = spec.kind.name
        tensor = next(user) if kind == "USER_INPUT" else tensors.get(spec.target)
        user_name = next(user_names) if kind == "USER_INPUT" else None
        if kind == "USER_INPUT" and not isinstance(tensor, torch.Tensor):
            continue  # a number is a part of the model
        if tensor is None:
            raise Refused(f"a tensor of fixed values inside of the model ('{spec.target}') has no translation")
        shown_name = user_name or name if kind == "USER_INPUT" else spec.target.replace(".", "_")
        graph_inputs.append({"placeholder": name, "name": shown_name, "target": spec.target, "kind": kind.lower(),
                             "shape": list(tensor.shape), "dtype": type_name(tensor.dtype),
                             **filled(draws, tensor, kind)})
        if shown_name in specs:
            graph_inputs[-1]["axes"] = specs[shown_name]["shape"]
            graph_inputs[-1]["how"] = "normal: a Definition says nothing of values"
    graph_inputs.sort(key=lambda one: one["kind"] != "user_input")  # parameters come after what is given
    graph = {"inputs": graph_inputs, "nodes": nodes, "outputs": outputs, "names": program.names()}
    if specs:
        graph["output_names"] = list(program.definition["outputs"])
    return graph


def filled(draws, tensor, kind):
    """How a tensor's elements are drawn: as it was seen, or by a computation on drawn ones."""
    draw = draws.of(tensor)
    if draw is not None:
        return {"draw": draw, "how": "by the call that fills it"}
    made = computation(draws, tensor)
    return made or {"draw": None, "how": ""}


def computation(draws, tensor):
    """The operators between one drawn tensor of this shape and this one, or nothing."""
    nodes, names, roots, begun = [], {}, [], set()

    def visit(one):
        key = one.untyped_storage()._cdata
        if key in names:
            return
        draw = draws.draws.get(key)
        if draw is not None and "constant" not in draw:
            roots.append((one, draw))
            names[key] = {"node": "\0root"}
            return
        if key not in draws.nodes or key in begun:  # what is changed in place has itself as an argument
            raise Refused("")
        begun.add(key)
        function, args, kwargs, result = draws.nodes[key]
        for value in list(args) + list(kwargs.values()):
            if isinstance(value, torch.Tensor):
                visit(value)
        names[key] = {"node": f"made{len(nodes)}"}
        nodes.append(node_json(f"made{len(nodes)}", function, args, kwargs, result, name_of))

    def name_of(value):
        return names.get(value.untyped_storage()._cdata) if isinstance(value, torch.Tensor) else None

    try:
        visit(tensor)
    except Refused:
        return None
    if len(roots) != 1 or roots[0][0].shape != tensor.shape or any(n.get("mutates") for n in nodes):
        return None
    return {"draw": roots[0][1], "how": "drawn, then made by statements", "made": {
        "nodes": nodes, "output": names[tensor.untyped_storage()._cdata]}}


# Two sizes in one graph.

def paired(own, small):
    """Equal numbers stay; others become pairs."""
    if isinstance(own, dict) and isinstance(small, dict) and own.keys() == small.keys():
        return {key: paired(own[key], small[key]) for key in own}
    if isinstance(own, list) and isinstance(small, list) and len(own) == len(small):
        return [paired(a, b) for a, b in zip(own, small)]
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (own, small))
    if numbers and own != small:
        return {"pair": [own, small]}
    if own != small:
        raise Refused("the program does something else at smaller sizes")
    return own


def merged(own, small):
    def shapes(a, b):
        if len(a) != len(b):
            raise Refused("the program does something else at smaller sizes")
        return [[x, y] for x, y in zip(a, b)]

    def one(a, b):
        if a.get("op") != b.get("op") or a["name"] != b["name"]:
            raise Refused("the program does something else at smaller sizes")
        both = paired({k: v for k, v in a.items() if k not in ("shape", "made")},
                      {k: v for k, v in b.items() if k not in ("shape", "made")})
        both["shape"] = shapes(a["shape"], b["shape"])
        if a.get("made") and b.get("made"):
            both["made"] = {"output": a["made"]["output"],
                            "nodes": [one(x, y) for x, y in zip(a["made"]["nodes"], b["made"]["nodes"])]}
        return both

    if [len(own[k]) for k in ("inputs", "nodes")] != [len(small[k]) for k in ("inputs", "nodes")]:
        raise Refused("the program does something else at smaller sizes")
    names = [[name, [value, small["names"].get(name, value)]] for name, value in own["names"].items()]
    names.sort(key=lambda item: item[1][0] == item[1][1])
    return {"inputs": [one(a, b) for a, b in zip(own["inputs"], small["inputs"])],
            "nodes": [one(a, b) for a, b in zip(own["nodes"], small["nodes"])],
            "outputs": own["outputs"], "names": names,
            **({"output_names": own["output_names"]} if "output_names" in own else {})}


def named(graph, request):
    """Inputs by their shown names, everywhere."""
    names = {}
    for one in graph["inputs"]:
        name = re.sub(r"\W", "_", one["name"])
        while name in names.values() or name in RESERVED or len(name) > 60:
            name = f"{name[:50]}_input"
        names[one["placeholder"]] = name
        one["name"] = name

    def renamed(value, root=None):
        if isinstance(value, dict):
            if "node" in value:
                return {**value, "node": root if value["node"] == "\0root" else names.get(value["node"], value["node"])}
            return {key: renamed(inner, root) for key, inner in value.items()}
        return [renamed(inner, root) for inner in value] if isinstance(value, list) else value

    for node in graph["nodes"]:
        for key in ("arguments", "args", "kwargs"):
            node[key] = renamed(node[key])
        if node.get("mutates"):
            node["mutates"] = names.get(node["mutates"], node["mutates"])
    for one in graph["inputs"]:
        if one.get("made"):
            one["made"] = renamed(one["made"], one["name"])
    graph["outputs"] = renamed(graph["outputs"])
    graph.update({key: request[key] for key in ("id", "title")})
    return graph
