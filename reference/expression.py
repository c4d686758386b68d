"""What the scripts beside this one share, which stands in front of each of them: the types of tensors, and a
problem's expression as a function. The names `torch` and `F` are theirs."""

# By the problem's name of the type; older versions of PyTorch lack some.
TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
         "f8e5m2": "float8_e5m2", "i8": "int8", "i32": "int32", "i64": "int64", "bool": "bool"}


def dtype_of(name):
    dtype = getattr(torch, TYPES[name], None)
    if dtype is None:
        raise RuntimeError(f"this PyTorch has no {TYPES[name]}")
    return dtype


def operator(request):
    """The problem as one PyTorch function of its inputs by name; its attributes are constants of it."""
    inputs = ", ".join(tensor["name"] for tensor in request["tensors"] if tensor["role"] == "input")
    attributes = request["attributes"]
    # Functions inside functions: what the expression has of its own, comprehensions too, sees all names.
    return eval(f"lambda {', '.join(attributes)}: lambda {inputs}: (\n{request['function']}\n)")(**attributes)


def one_line(error):
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:500]


