"""Traces a stranger's PyTorch program on the CPU, without memory for its tensors, into a graph as JSON."""

import ast
import builtins
import types

try:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    MISSING = None
except ImportError as error:
    MISSING = str(error)
    TorchDispatchMode = object

NAMES_OF_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3",
                  "float8_e5m2": "f8e5m2", "int8": "i8", "int32": "i32", "int64": "i64", "bool": "bool"}
NOT_SHRUNK = re.compile(r"kernel|stride|pad|dilation|group|heads|layers", re.I)
LEAST_LITERAL = 64
# Largest sizes, in the order in which they are tried. Odd ones leave smaller numbers as they are.
CAPS = (8, 9, 12, 16, 17, 24, 32, 33, 48, 64, 65, 128, 257)


class Refused(Exception):
    """Why a program cannot be imported, in one line."""


def type_name(dtype):
    name = NAMES_OF_TYPES.get(str(dtype).removeprefix("torch."))
    if name is None:
        raise Refused(f"tensors of type {dtype} are no input or output of a problem")
    return name


# A program at its own or at smaller sizes.

def shrunk(value, cap):
    """The largest divisor that is at most the cap, or the cap; half of what is smaller anyway, as far as that is no
    small number, so that as many sizes as possible vary."""
    if value <= cap:
        return value // 2 if cap % 2 == 0 and value >= 4 and value % 2 == 0 else value
    divisors = [d for d in range(1, cap + 1) if value % d == 0]
    return max(divisors) if max(divisors) * 2 > cap else cap


class Shrinker(ast.NodeTransformer):
    """Makes the whole numbers smaller that stand in a piece of the program."""

    def __init__(self, cap, least):
        self.cap, self.least = cap, least

    def visit_Constant(self, node):
        whole = isinstance(node.value, int) and not isinstance(node.value, bool) and node.value >= self.least
        return ast.copy_location(ast.Constant(shrunk(node.value, self.cap)), node) if whole else node


def module_of(source, path, cap=None):
    """The program's names. With a cap, whole numbers are made smaller that it assigns at the top, and large ones of
    get_inputs."""
    tree = ast.parse(source, path)
    for statement in tree.body if cap is not None else []:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if isinstance(target, ast.Name) and not NOT_SHRUNK.search(target.id):
            statement.value = Shrinker(cap, 1).visit(statement.value)
        if isinstance(statement, ast.FunctionDef) and statement.name == "get_inputs":
            Shrinker(cap, LEAST_LITERAL).visit(statement)
    module = types.ModuleType("stranger")
    exec(compile(tree, path, "exec"), module.__dict__)
    return module.__dict__


# How tensors were filled.

class Draws(TorchDispatchMode):
    """Notes for each tensor how its elements were drawn, as far as that is a distribution, and what was computed."""

    def __init__(self):
        super().__init__()
        self.draws, self.kept, self.nodes = {}, [], {}

    def of(self, tensor):
        return self.draws.get(tensor.untyped_storage()._cdata)

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        name = function._schema.name.split("::")[1]
        arguments = arguments_of(function, args, kwargs or {})
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        result = out if isinstance(out, torch.Tensor) else None
        if result is None:
            return out
        draw = self.drawn(name, arguments, first)
        self.kept.append(result)  # no storage's number comes twice
        if first is None or name.endswith("_") or first.untyped_storage()._cdata != result.untyped_storage()._cdata:
            self.draws[result.untyped_storage()._cdata] = draw
        if draw is None:
            self.nodes[result.untyped_storage()._cdata] = (function, args, kwargs or {}, result)
        return out

    def drawn(self, name, a, first):
        plain = name.rstrip("_")
        if name in ("rand", "rand_like"):
            return {"uniform": [0.0, 1.0]}
        if name in ("randn", "randn_like"):
            return {"normal": [0.0, 1.0]}
        if name in ("randint", "randint_like"):
            return {"integers": [a.get("low", 0), a["high"]]}
        if name == "uniform_":
            return {"uniform": [a["from"], a["to"]]}
        if name in ("normal_", "normal"):
            return {"normal": [a["mean"], a["std"]]} if not isinstance(a["mean"], torch.Tensor) else None
        if name == "bernoulli_":
            return {"choice": [0, 1]} if a["p"] == 0.5 else None
        if plain in ("zero", "zeros", "zeros_like", "new_zeros"):
            return {"constant": 0}
        if plain in ("ones", "ones_like", "new_ones"):
            return {"constant": 1}
        if plain in ("fill", "full", "full_like") and not isinstance(a.get("value", a.get("fill_value")), torch.Tensor):
            return {"constant": a.get("value", a.get("fill_value"))}
        draw = self.of(first) if first is not None else None
        if draw is None:
            return None
        if plain in ("_to_copy", "to", "clone", "detach", "alias", "contiguous", "copy", "lift_fresh", "view", "expand",
                     "t", "transpose", "permute", "unsqueeze", "squeeze", "_unsafe_view", "slice", "select"):
            return self.of(a["src"]) if plain == "copy" else draw
        return affine(plain, a, draw)


def affine(name, a, draw):
    """A distribution that is scaled and moved by numbers."""
    kind, value = next(iter(draw.items()))
    other = a.get("other")
    if isinstance(other, torch.Tensor) or not isinstance(other, (int, float)) and name != "neg":
        return None
    few = kind == "integers" and value[1] - value[0] <= 16
    if kind not in ("uniform", "normal", "constant", "choice") and not few:
        return None
    scale = {"mul": other, "div": 1 / other if other else None, "neg": -1}.get(name, 1)
    off = {"add": other, "sub": -other if other is not None else 0}.get(name, 0)
    if name not in ("mul", "div", "neg", "add", "sub") or scale is None or a.get("alpha", 1) != 1:
        return None
    move = lambda x: x * scale + off
    if kind == "normal":
        return {kind: [move(value[0]), value[1] * abs(scale)]}
    if kind == "uniform":
        return {kind: sorted(map(move, value))}
    if kind == "constant":
        return {kind: move(value)}
    return {"choice": [move(x) for x in (value if kind == "choice" else range(*value))]}


# Graphs.

def arguments_of(function, args, kwargs):
    """By the names of the operator's schema, defaults too."""
    arguments = {}
    for i, argument in enumerate(function._schema.arguments):
        if i < len(args):
            arguments[argument.name] = args[i]
        elif argument.name in kwargs:
            arguments[argument.name] = kwargs[argument.name]
        else:
            arguments[argument.name] = argument.default_value
    return arguments


def plain(value, name_of):
    """An argument as JSON."""
    reference = name_of(value)
    if reference is not None:
        return reference
    if isinstance(value, torch.dtype):
        return {"dtype": type_name(value)}
    if isinstance(value, (list, tuple)):
        return [plain(one, name_of) for one in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return None
    raise Refused(f"an argument of type {builtins.type(value).__name__} has no translation")


def node_json(name, function, args, kwargs, result, name_of):
    schema = function._schema
    arguments = {key: plain(value, name_of) for key, value in arguments_of(function, args, kwargs).items()}
    several = isinstance(result, (list, tuple))
    shape = [list(one.shape) for one in result] if several else list(result.shape)
    node = {"name": name, "op": schema.name.split("::")[1], "arguments": arguments,
            "args": [plain(one, name_of) for one in args],
            "kwargs": {key: plain(value, name_of) for key, value in kwargs.items()
                       if plain(value, name_of) is not None},
            "shape": [] if several else shape, "dtype": type_name((result[0] if several else result).dtype)}
    if schema.arguments and schema.arguments[0].alias_info is not None and schema.arguments[0].alias_info.is_write:
        node["mutates"] = (name_of(args[0]) or {}).get("node")
    return node


def exported(model, inputs):
    """The nodes of what the model computes, by placeholders' names; and those names by parameter and input."""
    program = torch.export.export(model, tuple(inputs), strict=False)
    items, nodes, outputs, names = {}, [], [], {}
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}

    def name_of(value):
        if not isinstance(value, torch.fx.Node):
            return None
        return items.get(value.name) or {"node": value.name}

    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            names[node.name] = specs[node.name]
        elif node.op == "output":
            outputs = [name_of(one) for one in node.args[0]]
        elif node.target is operator.getitem:
            items[node.name] = {"node": node.args[0].name, "item": node.args[1]}
        elif hasattr(node.target, "_schema"):
            if isinstance(value, torch.Tensor) or isinstance(value, (list, tuple)):
                nodes.append(node_json(node.name, node.target, node.args, node.kwargs, value, name_of))
        else:
            raise Refused(f"'{getattr(node.target, '__name__', node.target)}' in the model has no translation")
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    outputs = [one for one, kind in zip(outputs, kinds) if kind == "USER_OUTPUT"]
    random = [n["op"] for n in nodes if n["op"] in ("rand", "randn", "randint", "bernoulli", "rand_like", "randn_like",
                                                    "normal", "uniform", "uniform_", "normal_", "bernoulli_")]
    if random:
        raise Refused(f"randomness inside of the model ('{random[0]}') is no problem that has one right output")
    if any(one is None for one in outputs):
        raise Refused("an output is no tensor")
    return nodes, outputs, names, program
