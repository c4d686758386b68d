"""A problem whose truth is the program itself, in float64, where the definition language cannot say what it does."""

import base64
import inspect

RANDOM = {"rand", "randn", "randint", "bernoulli", "bernoulli_", "rand_like", "randn_like", "randint_like", "randperm",
          "normal", "normal_", "uniform", "uniform_", "multinomial", "native_dropout", "exponential_", "random_"}
MOST_INPUTS = 180  # of a problem's file
MOST_RUN = 400_000_000  # elements of inputs that are made on the host
TOLERANCES = {"fp32": {"class": "fp32", "rms": 1e-4, "largest": 1e-3,
                       "why": "a program shows no lengths of sums: the bounds of products of matrices"}}


class Watch(TorchDispatchMode):
    """Refuses what draws numbers."""

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        if name in RANDOM:
            raise Refused(f"randomness inside of the model ('{name}') is no problem that has one right output")
        return function(*args, **(kwargs or {}))


def tensors_of(model):
    """Parameters and buffers of floating-point types by their names in the model."""
    both = dict(model.named_parameters()) | dict(model.named_buffers())
    return {target: tensor.detach() for target, tensor in both.items() if tensor.is_floating_point()}


def argument_names(program, model, count):
    """What forward() or run() calls its arguments."""
    of = model.run if isinstance(program, FlashInfer) else model.forward
    given = [one.name for one in inspect.signature(of).parameters.values()
             if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    names = given[:count] + [f"input_{i}" for i in range(len(given), count)]
    return [f"{name}_in" if name in RESERVED or name.startswith("output") else name for name in names]


def inputs_shown(program, model, inputs, draws):
    """Inputs of the problem: what get_inputs() gives, then what the model has."""
    entries, arguments = [], []
    for name, one in zip(argument_names(program, model, len(inputs)), inputs):
        if not isinstance(one, torch.Tensor):
            arguments.append(None)
            continue
        arguments.append(name)
        entries.append({"name": name, "target": None, "kind": "user_input", "shape": list(one.shape),
                        "dtype": type_name(one.dtype), **filled(draws, one, "user_input")})
    buffers = dict(model.named_buffers())
    for target, tensor in tensors_of(model).items():
        draw = draws.of(tensor)
        if draw is None and target in buffers:
            continue  # computed by the model: it computes that again
        name = re.sub(r"\W", "_", target)
        entries.append({"name": name if not name[0].isdigit() else f"p_{name}", "target": target, "kind": "parameter",
                        "shape": list(tensor.shape), "dtype": type_name(tensor.dtype),
                        **filled(draws, tensor, "parameter")})
    taken = set()
    for one in entries:
        if one["kind"] == "parameter":
            while one["name"] in taken or one["name"] in RESERVED:
                one["name"] += "_of_model"
        taken.add(one["name"])
    return entries, arguments


def really_run(request, cap, entries):
    """The program on values, twice, with what a problem's inputs are and all else as each building of it makes it."""
    outputs, values = [], None
    for seed in (0, 1):
        torch.manual_seed(seed)
        program = KINDS[request["kind"]](request, cap)
        model, inputs = program.build()
        if values is None:
            own = tensors_of(model)
            values = {one["target"]: own[one["target"]].clone() for one in entries if one["target"] is not None}
            given = [one.clone() if isinstance(one, torch.Tensor) else one for one in inputs]
        with torch.no_grad(), casts_give_float64():
            tensors = {target: tensor.double() for target, tensor in values.items()}
            outputs.append(outputs_of(torch.func.functional_call(model.double(), tensors,
                                                                 tuple(as_float64(one) for one in copies(given)))))
    for first, second in zip(*outputs):
        if first.is_floating_point() and first.isnan().any():
            raise Refused("the outputs have NaN on the program's own inputs")
        if not torch.allclose(first, second, rtol=1e-9, atol=1e-12):
            raise Refused("two buildings of the model give different outputs for the same inputs and parameters: it "
                          "holds drawn values that are no parameters")
    return by_name(entries, given, values)


def by_name(entries, inputs, tensors):
    users = iter(one for one in inputs if isinstance(one, torch.Tensor))
    return {one["name"]: next(users) if one["target"] is None else tensors[one["target"]] for one in entries}


def values_of_own_size(request, entries):
    torch.manual_seed(0)
    model, inputs = KINDS[request["kind"]](request).build()
    return by_name(entries, inputs, tensors_of(model))


def in_base64(tensor):
    return base64.b64encode(tensor.contiguous().numpy().tobytes()).decode()


def copies(values):
    return [one.clone() if isinstance(one, torch.Tensor) else one for one in values]


def tried(request, entries, elements):
    """Values of a run at smaller sizes, or where there are none at the program's own."""
    for cap in (*CAPS, None):
        if cap is None and elements > MOST_RUN:
            break
        try:
            values = really_run(request, cap, entries)
        except Refused:
            raise
        except Exception:  # at other sizes the program may not run at all
            if cap is None:
                raise
            continue
        if [one.dtype for one in values.values()] == [dtype_of(one["dtype"]) for one in entries]:
            return values
    raise Refused(f"its tensors are too large to be tried on the host (more than {MOST_RUN} elements), and it does not "
                  "run at smaller sizes")


def run_watched(model, inputs):
    with torch.no_grad(), Watch():
        return outputs_of(model(*inputs))


def outputs_made(request, program, inputs):
    """Without memory where that can be; else really, where what is computed depends on values."""
    try:
        with draws_of_fakes():
            return run_watched(*program.build())
    except Refused:
        raise
    except Exception:
        if sum(one.numel() for one in inputs if isinstance(one, torch.Tensor)) > MOST_RUN:
            raise
    return run_watched(*KINDS[request["kind"]](request).build())


def as_program(request, why):
    program = KINDS[request["kind"]](request)
    with draws_of_fakes() as draws:
        model, inputs = program.build()
        if any(not isinstance(one, (torch.Tensor, int, float, bool, type(None))) for one in inputs):
            raise Refused("get_inputs: expected tensors and numbers")
        entries, arguments = inputs_shown(program, model, inputs, draws)
    made = outputs_made(request, program, inputs)
    if len(entries) > MOST_INPUTS:
        raise Refused(f"{len(entries)} inputs and parameters: expected at most {MOST_INPUTS} ({why})")
    elements = sum(math.prod(one["shape"]) for one in entries)
    values = tried(request, entries, elements)
    drawn, given = [], {}
    if request["kind"] == "flashinfer":  # whose arguments are in the order of the definition's inputs
        given = {argument: program.values[name] for argument, name in zip(arguments, program.definition["inputs"])
                 if name in program.values}
    if elements <= MOST_RUN and any(one["draw"] is None or one.get("made") for one in entries):
        values = values_of_own_size(request, entries)
    for one in entries:
        if one["name"] in given:
            one["draw"], _ = by_statistics(one, given[one["name"]])
            one["how"] = "the workload's own, under every seed"
        elif one["draw"] is None or one.get("made"):
            one["draw"], one["how"] = by_statistics(one, values[one["name"]])
            if one["target"] is None and request["kind"] == "kernelbench":
                drawn.append(one["name"])
                one["how"] = f"get_inputs() itself, under new seeds; stress inputs are {one['how']}"
    spec = getattr(program, "definition", {})
    numbers = [one for one in inputs if not isinstance(one, torch.Tensor)] if spec else []
    names = list(spec.get("outputs", [])) or [f"output_{i + 1}" if i else "output" for i in range(len(made))]
    outputs = {name: {"dtype": type_name(one.dtype), "shape": list(one.shape)} for name, one in zip(names, made)}
    classes = [CLASSES.get(one["dtype"]) for one in outputs.values()]
    tolerance = next((c for c in ("fp8", "bf16", "fp16", "fp32") if c in classes), "exact")
    inputs_of_file = {one["name"]: {"dtype": one["dtype"], "shape": one["shape"], "draw": one["draw"]} for one in entries}
    axes = {}
    for name, value in program.names().items():
        own = axis_name(name)
        if value >= 1 and own not in RESERVED and own not in inputs_of_file and own not in outputs and len(axes) < 32:
            axes[own] = value
    problem = {"schema": 1, "id": request["id"], "title": request["title"], "axes": axes, "inputs": inputs_of_file,
               "outputs": outputs,
               "program": {"form": request["kind"], "text": spec.get("reference", request["text"]),
                           "arguments": arguments,
                           "parameters": {one["name"]: one["target"] for one in entries if one["target"] is not None},
                           **({"draws": drawn} if drawn else {}),
                           **({"numbers": numbers} if numbers else {}),
                           **({"values": {name: in_base64(one) for name, one in given.items()}} if given else {})},
               "tolerance": TOLERANCES.get(tolerance, tolerance)}
    notes = [f"{one['name']}: {one['how']}" for one in entries if one.get("how")]
    return {"file": file_text(problem), "small": {}, "notes": notes, "inputs": {}, "outputs": {},
            "why": why, "torch": torch.__version__}
