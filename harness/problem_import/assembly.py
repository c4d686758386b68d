"""From a translation to the problem's file: names of sizes, inputs that are used, PyTorch's expression."""

# What the smallest of the other sizes is: sizes that do not go together are refused when they are tried.
LEAST_SIZE = 2
MARK = re.compile(r"\x02(\d+)\x02")


def marks_in(t, texts):
    """The sizes that texts name, with all that these are expressions of, in an order in which each comes after
    those that it needs."""
    order = []

    def visit(number):
        size = t.n.found(t.n.sizes[number])
        if size in order or size.kind == "number":
            return
        for inner in MARK.findall(size.text):
            visit(int(inner))
        order.append(size)

    for text in texts:
        for number in MARK.findall(text):
            visit(int(number))
    return order


def axis_name(name):
    return name.lower() if len(name) > 1 else name


def name_sizes(t, graph, sizes):
    """Names from the program where one has that number, else made ones; what never varies and has no name stays a
    number."""
    known = [(name, tuple(pair)) for name, pair in graph.get("names", [])]
    for size in sizes:
        if size.kind != "free":
            continue
        if size.pair[0] == size.pair[1]:
            size.kind = "number"
            continue
        fits = [name for name, pair in known if pair == size.pair]
        fits = [size.hint] if size.hint else fits
        wanted = next((name for name in fits if axis_name(name) not in t.n.taken), (fits or ["size"])[0])
        size.name = t.n.unused(axis_name(wanted))
    for size in sizes:
        if size.kind == "derived":
            size.name = t.n.unused("out_size" if not size.parts else "elements")


def draw_of(t, one):
    """A draw as the file has it: bounds that follow from sizes are expressions."""
    kind, value = next(iter(one["draw"].items()))

    def bound(number):
        if not isinstance(number, dict):
            return shown(number)
        own, small = number["pair"]
        label = t.labels.get(one["name"])
        if label is not None and t.n.found(label).pair == (own, small):
            return label.mark()
        return t.sized((own, small), signs=(1, -1)) or shown(own)

    if kind == "integers" and one["name"] in t.labels and value[1] == t.n.found(t.labels[one["name"]]).pair[0]:
        value = [value[0], {"pair": t.n.found(t.labels[one["name"]]).pair}]
    return {kind: [bound(v) for v in value] if isinstance(value, list) else bound(value)}


def shown(value):
    if isinstance(value, float):
        value = float(f"{value:.12g}")
        return int(value) if value == int(value) and abs(value) < 1e15 else value
    return value


def made_statements(t, one):
    """What changes the drawn values of an input: a graph of its own, whose result is the input."""
    inner = Translation({"inputs": [{**one, "shape": one["shape"]}], "nodes": one["made"]["nodes"], "outputs": []})
    inner.n = t.n
    inner.values = {one["name"]: t.values[one["name"]]}
    before = len(t.n.statements)
    inner.run()
    result = inner.value_of(one["made"]["output"])
    sizes = t.values[one["name"]].sizes
    for a, b in zip(result.sizes, sizes):
        t.n.unify(a, b)
    t.n.define(one["name"], list(range(len(sizes))), result, ends=False)
    statements = t.n.statements[before:]
    del t.n.statements[before:]
    return statements


# PyTorch's expression.

def pytorch_text(t, graph):
    nodes = {node["name"]: node for node in graph["nodes"]}
    final, uses, assigned = {}, {}, set()
    current = {}
    for node in graph["nodes"]:  # who changes a tensor in place gives its later value
        rename = lambda name: current.get(name, name)
        final[node["name"]] = {name: rename(name) for name in set(names_in(node["arguments"]))}
        if node.get("mutates"):
            current[node["mutates"]] = node["name"]

    def count(name):
        uses[name] = uses.get(name, 0) + 1
        if name in nodes and uses[name] == 1:
            for inner in names_in([nodes[name]["args"], nodes[name]["kwargs"]]):
                count(final[name].get(inner, inner))

    def text_of(reference, owner=None):
        name = reference["node"]
        name = final[owner].get(name, name) if owner else name
        text = name
        if name in nodes:
            own = f"made_{re.sub(r'[^0-9a-zA-Z_]', '_', name)}"
            if own in assigned:
                text = own
            else:
                assigned.add(own)
                text = call(nodes[name])
                text = f"({own} := {text})" if uses[name] > 1 else text
        return f"{text}[{reference['item']}]" if "item" in reference else text

    def argument(value, owner):
        if isinstance(value, dict):
            if "node" in value:
                return text_of(value, owner)
            if "pair" in value:
                sized = t.sized(value["pair"])
                text = t.n.with_sizes(sized or str(value["pair"][0]))
                return re.sub(r"sqrt\(([^()]*)\)", r"(\1) ** 0.5", text)
            return f"torch.{PYTORCH_TYPES[value['dtype']]}"
        if isinstance(value, list):
            return "[" + ", ".join(argument(one, owner) for one in value) + "]"
        if value in ("inf", "-inf", "nan"):
            return f"float('{value}')"
        return repr(value)

    def call(node):
        op, args = node["op"], list(node["args"])
        made = t.values[node["name"]]
        parts = [argument(one, node["name"]) for one in args]
        if op in ("view", "reshape", "_unsafe_view", "expand") and isinstance(made, Value):
            parts[1] = "[" + ", ".join(t.n.name_of(size) for size in made.sizes) + "]"
        if op == "layer_norm" and isinstance(made, Value):
            parts[1] = "[" + ", ".join(t.n.name_of(size) for size in made.sizes[-len(args[1]):]) + "]"
        if op == "batch_norm" and node["arguments"]["training"]:
            parts[3] = parts[4] = "None"
        kwargs = [f"{key}={argument(value, node['name'])}" for key, value in node["kwargs"].items()]
        return f"torch.ops.aten.{op}({', '.join(parts + kwargs)})"

    outputs = [{**reference} for reference in graph["outputs"]]
    for reference in outputs:
        reference["node"] = current.get(reference["node"], reference["node"])
        count(reference["node"])
    texts = [text_of(reference) for reference in outputs]
    return texts[0] if len(texts) == 1 else "(" + ", ".join(texts) + ")"


def assembled(t, graph, outputs):
    statements = list(t.n.statements)
    used = [one for one in graph["inputs"]
            if any(re.search(rf"(?<![\w.]){re.escape(one['name'])}(?![\w])", text.split("=", 1)[1])
                   for text in statements)]
    if not used:
        raise Untranslatable("the outputs follow from no input")
    made = [text for one in used if one.get("made") for text in made_statements(t, one)]
    draws = {one["name"]: draw_of(t, one) for one in used}
    shapes = {name: [size.mark() if t.n.found(size).kind != "number" else "1" for size in value.sizes]
              for name, value in [(one["name"], t.values[one["name"]]) for one in used]}
    shapes.update({name: [t.n.found(s).mark() for s in value.sizes] for name, (value, _) in outputs.items()})
    ends = [t.n.ends[mark].mark() for text in statements + made
            for mark in (f"\x03{n}\x03" for n in re.findall(r"\x04(\d+)\x04", text))]
    draw_texts = [text for draw in draws.values() for text in flat(draw) if isinstance(text, str)]
    sizes = marks_in(t, [m for shape in shapes.values() for m in shape] + statements + made + t.n.constraints + ends
                     + draw_texts)
    name_sizes(t, graph, sizes)
    axes = {}
    for size in sizes:
        if size.kind != "number":
            axes[size.name] = size.pair[0] if size.kind == "free" else t.n.with_sizes(size.text)
    small = {s.name: s.pair[1] for s in sizes if s.kind == "free" and s.pair[0] != s.pair[1]}
    own = {s.name: s.pair[0] for s in sizes if s.kind == "free"}
    classes = [CLASSES.get(value.dtype) for value, _ in outputs.values()]
    shape_of = lambda name: [int(text) if text.isdigit() else text for text in map(t.n.with_sizes, shapes[name])]
    problem = {"schema": 1, "id": graph["id"], "title": graph["title"], "axes": axes}
    if small:
        problem["other_sizes"] = {name: [min(least, LEAST_SIZE), own[name]] for name, least in small.items()}
    if t.n.constraints:
        problem["constraints"] = sorted(set(t.n.with_sizes(text) for text in t.n.constraints))
    problem["inputs"] = {one["name"]: {"dtype": one["dtype"], "shape": shape_of(one["name"]), "draw": {
        kind: [t.n.with_sizes(v) if isinstance(v, str) else v for v in value] if isinstance(value, list) else
        t.n.with_sizes(value) if isinstance(value, str) else value for kind, value in draws[one["name"]].items()}}
        for one in used}
    problem["outputs"] = {name: {"dtype": value.dtype, "shape": shape_of(name)} for name, (value, _) in outputs.items()}
    if made:
        problem["made"] = [t.n.with_names(text) for text in made]
    problem["definition"] = [t.n.with_names(text) for text in statements]
    problem["pytorch"] = pytorch_text(t, graph)
    problem["tolerance"] = next((c for c in ("fp8", "bf16", "fp16", "fp32") if c in classes), "exact")
    notes = [f"{one['name']}: {one['how']}" for one in used if one.get("how")] + t.n.notes
    return {"problem": problem, "small": small, "notes": notes, "used": [one["name"] for one in used]}


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for one in value for text in flat(one)]
    return [value]


# A file in the style of the project's own.

def file_text(problem):
    lines = []
    for key, value in problem.items():
        if key in ("inputs", "outputs"):
            inner = ",\n".join(f"    {json.dumps(name)}: {json.dumps(one)}" for name, one in value.items())
            lines.append(f"  {json.dumps(key)}: {{\n{inner}\n  }}")
        elif key in ("definition", "made"):
            inner = ",\n".join(f"    {json.dumps(text)}" for text in value)
            lines.append(f"  {json.dumps(key)}: [\n{inner}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
