"""Values of the program itself, in float64 at small sizes, for the check of what was made of it."""


def real_values(request, cap, graph):
    """Inputs by name and outputs, as numbers in a text; the statistics of those inputs; and a note on forced types."""
    torch.manual_seed(0)
    program = KINDS[request["kind"]](request, cap)
    model, inputs = program.build()
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    user = (one for one in inputs if isinstance(one, torch.Tensor))
    values = {}
    for one in graph["inputs"]:
        tensor = next(user) if one["kind"] == "user_input" else tensors[one["target"]]
        values[one["name"]] = tensor.detach().clone()
    if sum(v.numel() for v in values.values()) > MOST_CHECKED:
        raise Refused(f"its tensors are too large to be checked on the host (more than {MOST_CHECKED} elements), and "
                      "its sizes are no numbers that are assigned at the top of the file, so that smaller ones are "
                      "not to be had")
    forced = [n for n in graph["nodes"] if n["op"] in ("to", "_to_copy", "float", "half", "bfloat16", "type_as")
              and n["dtype"] in ("f32", "f16", "bf16")]
    with torch.no_grad(), casts_give_float64():
        made = model.double()(*[as_float64(one) for one in inputs])
    outputs = outputs_of(made)
    if any(one.is_floating_point() and one.isnan().any() for one in outputs):
        raise Refused("the outputs have NaN on the program's own inputs")
    listed_values = lambda tensor: " ".join(map(repr, tensor.to(torch.float64).reshape(-1).tolist()))
    notes = [f"the code forces {n['dtype']} ('{n['op']}'): checked in float64" for n in forced[:1]]
    return ({name: listed_values(tensor) for name, tensor in values.items()}, [listed_values(o) for o in outputs],
            values, notes)


OF_ONE_CALL = "of one call"


def by_statistics(one, tensor):
    """A distribution like that of a tensor's values, where the program does not show one."""
    if one["kind"] == "buffer":
        raise Refused(f"the buffer '{one['name']}' holds computed values, which no distribution gives")
    flat_values = tensor.to(torch.float64).reshape(-1)
    low, high = float(flat_values.min()), float(flat_values.max())
    if not tensor.is_floating_point():
        return {"integers": [int(low), int(high) + 1]}, f"integers between the least and the largest {OF_ONE_CALL}"
    mean, deviation = float(flat_values.mean()), float(flat_values.std()) if flat_values.numel() > 1 else 0.0
    if deviation == 0:
        return {"constant": low}, f"the one value {OF_ONE_CALL}"
    spread = max(high - mean, mean - low) / deviation
    if spread < 2:
        return {"uniform": [low, high]}, f"uniform between the least and the largest value {OF_ONE_CALL}"
    if low >= 0 or high <= 0:
        return {"uniform": [low, high]}, f"uniform between the least and the largest value {OF_ONE_CALL}, for its sign"
    return {"normal": [mean, deviation]}, f"normal, by mean and deviation {OF_ONE_CALL}"


def imported(request):
    """As a definition, else as the program itself."""
    if request.get("as_program"):
        return as_program(request, "asked for")
    if request.get("tensors") and FlashInfer(request).values:
        return as_program(request, "a workload gives integers")
    try:
        return translated(request)
    except Exception as error:  # what no translation can be made of may run all the same
        return as_program(request, one_line_of(error))


def merged_with_smaller(request, own):
    """The graph at its own and at smaller sizes, the request and the cap that gave these; or with itself, and none."""
    kept = [{**request, "keep_constants": True}] if request["kind"] == "flashinfer" else []
    for one, cap in itertools.product([request] + kept, CAPS):
        try:
            graph = merged(own, traced(one, cap))
        except Exception:  # at other sizes the program may not run at all
            continue
        if sum(math.prod(p[1] for p in tensor["shape"]) for tensor in graph["inputs"]) <= MOST_CHECKED:
            return graph, one, cap
    return merged(own, own), request, None


def translated(request):
    own = traced(request)
    graph, request, cap = merged_with_smaller(request, own)
    for one, spec in zip(graph["inputs"], own["inputs"]):
        one["target"] = spec.get("target")
    graph = named(graph, request)
    problem_of({**graph, "inputs": [{**one, "draw": one["draw"] or {"constant": 0}} for one in graph["inputs"]]})
    inputs, outputs, tensors, notes = real_values(request, cap, graph)
    for one in graph["inputs"]:
        if one["draw"] is None:
            one["draw"], one["how"] = by_statistics(one, tensors[one["name"]])
    made = problem_of(graph)
    used = {name: inputs[name] for name in made["used"]}
    return {"file": file_text(made["problem"]), "small": made["small"], "notes": made["notes"] + notes,
            "inputs": used, "outputs": dict(zip(made["problem"]["outputs"], outputs)), "torch": torch.__version__}


def one_line_of(error):
    text = " ".join(str(error).split())
    if isinstance(error, (Refused, Untranslatable)):
        return text[:400]
    return f"{type(error).__name__}: {text}"[:400]


def main():
    request = json.loads(sys.stdin.read())
    answers = os.fdopen(os.dup(3), "w")
    try:
        if MISSING is not None:
            raise Refused(f"python3 here cannot import torch ({MISSING})")
        answer = imported(request)
    except (Exception, SystemExit) as error:  # whatever it is, one line tells of it
        answer = {"error": one_line_of(error)}
    answers.write(json.dumps(answer))
    answers.close()
    os.close(3)


if __name__ == "__main__":
    main()
