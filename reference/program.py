"""What several scripts share: a stranger's program as a function of a problem's inputs. `program` of a problem's
file says how they go together:

  {"form": "kernelbench", "text": "import torch …", "arguments": ["x", null], "parameters": {"weight": "linear.weight"}}
  {"form": "flashinfer", "text": "def run(x, y, s, k): …", "arguments": ["x", "y", null, "k"], "parameters": {},
   "numbers": [0.5], "values": {"k": "AAAA…"}}

`arguments` names the input for each argument of forward() or run(), null where get_inputs() or `numbers` gives a
number; `parameters` names the inputs that are parameters or buffers of the model. `draws`, where it is there, names
the arguments whose values get_inputs() draws; `values` has those of inputs of integers that stay the same, in base64.
The name `torch` is the other scripts'."""

import base64
import functools
import random
import sys
import types


def names_of_program(text, path="program.py"):
    """What the text defines."""
    module = types.ModuleType("stranger")
    exec(compile(text, path, "exec"), module.__dict__)
    return module.__dict__


def as_float64(one):
    return one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one


def casts_give_float64():
    """A mode in which casts to a floating-point type give float64, and so does what asks for such a type."""

    class Float64(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, kinds, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            narrow = lambda v: isinstance(v, torch.dtype) and v.is_floating_point
            name = getattr(function, "__name__", "")
            if name in ("float", "half", "bfloat16") and args and isinstance(args[0], torch.Tensor):
                return args[0].double()
            args = tuple(torch.float64 if narrow(v) else v for v in args)
            kwargs = {key: torch.float64 if narrow(v) else v for key, v in kwargs.items()}
            return function(*args, **kwargs)

    return Float64()


def changed_after_drawing(spec):
    """Inputs that get their values from the program or the file, not from a distribution."""
    return [*spec.get("draws", []), *spec.get("values", {})]


def outputs_of(made):
    """A tensor, or several, as a list."""
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    if any(not isinstance(one, torch.Tensor) for one in outputs):
        raise RuntimeError("the program's outputs: expected tensors")
    return outputs


class Program:
    """Built once; called with inputs by name."""

    def __init__(self, spec, device):
        names = names_of_program(spec["text"])
        self.parameters, self.names, self.device = spec["parameters"], spec["arguments"], device
        self.get_inputs, self.values = names.get("get_inputs"), spec.get("values", {})
        self.model, given = None, []
        # What the model has beside parameters and buffers is made where it is computed with.
        with torch.device(device), torch.no_grad():
            if spec["form"] == "flashinfer":
                self.function = names["run"]
                given = iter(spec.get("numbers", []))
            else:
                arguments = names.get("get_init_inputs", list)()
                made = names["Model"](**arguments) if isinstance(arguments, dict) else names["Model"](*arguments)
                self.function = self.model = made.to(device)
                if None in spec["arguments"]:
                    given = (one for one, name in zip(names["get_inputs"](), spec["arguments"]) if name is None)
        self.arguments = [name if name is not None else next(given) for name in spec["arguments"]]

    def __call__(self, inputs):
        arguments = [inputs[one] if isinstance(one, str) else one for one in self.arguments]
        with torch.no_grad():
            if self.model is None:
                return outputs_of(self.function(*arguments))
            tensors = {target: inputs[name] for name, target in self.parameters.items()}
            return outputs_of(torch.func.functional_call(self.model, tensors, tuple(arguments)))

    def draw(self, seed, inputs):
        """Writes what get_inputs() gives under a seed, or the file's values, into inputs by name."""
        for name in inputs.keys() & self.values.keys():
            data = bytearray(base64.b64decode(self.values[name]))
            inputs[name].copy_(torch.frombuffer(data, dtype=inputs[name].dtype).reshape(inputs[name].shape))
        inputs = {name: tensor for name, tensor in inputs.items() if name not in self.values}
        if not inputs:
            return
        seed %= 1 << 32
        torch.manual_seed(seed)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed)
        with torch.device(self.device), torch.no_grad():
            given = dict(zip(self.names, self.get_inputs()))
        for name, tensor in inputs.items():
            if list(given[name].shape) != list(tensor.shape) or given[name].dtype != tensor.dtype:
                raise RuntimeError(f"get_inputs() gives '{name}' another shape or type than before")
            tensor.copy_(given[name])

    def bound(self, inputs):
        """The program with its arguments, its parameters where the inputs lie: as its owner would call it."""
        for name, target in self.parameters.items():
            owner, _, leaf = target.rpartition(".")
            module = self.model.get_submodule(owner)
            if leaf in module._buffers:
                module._buffers[leaf] = inputs[name]
            else:
                module._parameters[leaf].data = inputs[name]
        arguments = [inputs[one] if isinstance(one, str) else one for one in self.arguments]
        return functools.partial(self.function, *arguments)

    def in_float64(self, inputs):
        """The outputs in float64, where the inputs stay as they are."""
        copies = {name: as_float64(one).clone() for name, one in inputs.items()}
        if self.model is not None:
            self.model.double()
        with casts_give_float64():
            return self(copies)
