"""PyTorch's operators as expressions of the definition language; here those of single elements.

A handler takes the translation `t` and an operator's arguments by the names of PyTorch's schema, and gives a
value (or several). What it cannot say raises Untranslatable."""

OPERATORS = {}


def operator_of(*names):
    def register(handler):
        for name in names:
            OPERATORS[name] = handler
        return handler
    return register


# Elementwise.

def elementwise(t, values, make, dtype=None):
    """Of tensors and numbers, which are broadcast."""
    rank = max([len(v.sizes) for v in values if isinstance(v, Value)], default=0)
    sizes = [t.n.constant(1)] * rank
    for value in values:
        if isinstance(value, Value):
            for i, size in enumerate(reversed(value.sizes)):
                at = rank - 1 - i
                if not t.n.is_one(size):
                    sizes[at] = size if t.n.is_one(sizes[at]) else t.n.unify(sizes[at], size)

    def part(value, indices):
        if not isinstance(value, Value):
            return value if isinstance(value, str) else number(value)
        own = indices[rank - len(value.sizes):]
        return value.read(["0" if t.n.is_one(s) else i for s, i in zip(value.sizes, own)])

    # What sums is computed once, and not for each element that it is broadcast to.
    values = [t.n.keep(v) if isinstance(v, Value) and t.n.is_heavy(v) and not t.n.spans(v, sizes) else v
              for v in values]
    kind = dtype or next((v.dtype for v in values if isinstance(v, Value)), "f32")
    return Value(sizes, lambda indices: make(*[part(v, indices) for v in values]), kind)


def unary(name, make):
    @operator_of(name)
    def handler(t, self, **_):
        return elementwise(t, [self], make)


for _name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "erf", "abs", "floor"):
    unary(_name, lambda x, f=_name: f"{f}({x})")
for _name, _text in {
        "neg": "-{0}", "relu": "maximum({x}, 0)", "sigmoid": "1 / (1 + exp(-{0}))", "silu": "{0} / (1 + exp(-{0}))",
        "rsqrt": "1 / sqrt({x})", "reciprocal": "1 / {0}", "square": "{0} * {0}",
        "relu6": "minimum(maximum({x}, 0), 6)",
        "log2": "log({x}) / log(2)", "log10": "log({x}) / log(10)", "exp2": "2 ^ {0}", "logical_not": "not {0}",
        "sign": "where({x} > 0, 1, where({x} < 0, -1, 0))", "softsign": "{0} / (1 + abs({x}))",
        "hardsigmoid": "minimum(maximum({x} + 3, 0), 6) / 6", "hardswish": "{0} * minimum(maximum({x} + 3, 0), 6) / 6",
        "log_sigmoid": "minimum({x}, 0) - log1p(exp(-abs({x})))", "tanhshrink": "{0} - tanh({x})",
        "mish": "{0} * tanh(maximum({x}, 0) + log1p(exp(-abs({x}))))"}.items():
    unary(_name, lambda x, f=_text: f.format(atom(x), x=x))
for _name in ("clone", "contiguous", "alias", "detach", "lift_fresh_copy", "positive"):
    unary(_name, lambda x: x)


@operator_of("leaky_relu")
def _leaky_relu(t, self, negative_slope, **_):
    return elementwise(t, [self], lambda x: f"where({x} > 0, {x}, {number(negative_slope)} * {atom(x)})")


@operator_of("elu")
def _elu(t, self, alpha, scale, input_scale, **_):
    negative = number(alpha * scale)
    def make(x):
        inner = x if input_scale == 1 else f"{number(input_scale)} * {atom(x)}"
        outer = x if scale == 1 else f"{number(scale)} * {atom(x)}"
        below = f"expm1({inner})" if negative == "1" else f"{negative} * expm1({inner})"
        return f"where({x} > 0, {outer}, {below})"
    return elementwise(t, [self], make)


@operator_of("selu")
def _selu(t, self, **_):
    return _elu(t, self, 1.6732632423543772, 1.0507009873554805, 1)


@operator_of("celu")
def _celu(t, self, alpha, **_):
    return _elu(t, self, alpha, 1, 1 / alpha)


@operator_of("gelu")
def _gelu(t, self, approximate, **_):
    if approximate == "tanh":
        return elementwise(t, [self], lambda x: f"0.5 * {atom(x)} * (1 + tanh(0.7978845608028654 * "
                                                f"({x} + 0.044715 * {atom(x)}^3)))")
    return elementwise(t, [self], lambda x: f"0.5 * {atom(x)} * (1 + erf({atom(x)} / sqrt(2)))")


@operator_of("softplus")
def _softplus(t, self, beta, threshold, **_):
    def make(x):
        scaled = x if beta == 1 else f"{number(beta)} * {atom(x)}"
        soft = f"log1p(exp({scaled}))" + ("" if beta == 1 else f" / {number(beta)}")
        return f"where({scaled} > {number(threshold)}, {x}, {soft})"
    return elementwise(t, [self], make)


@operator_of("hardtanh")
def _hardtanh(t, self, min_val, max_val, **_):
    return elementwise(t, [self], lambda x: f"minimum(maximum({x}, {number(min_val)}), {number(max_val)})")


@operator_of("hardshrink", "softshrink")
def _shrink(t, self, lambd, op="", **_):
    end, off = number(lambd), f" - {number(lambd)}" if op == "softshrink" else ""
    on = f" + {number(lambd)}" if op == "softshrink" else ""
    return elementwise(t, [self], lambda x: f"where({x} > {end}, {x}{off}, where({x} < -{end}, {x}{on}, 0))")


@operator_of("clamp", "clamp_min", "clamp_max", "clip")
def _clamp(t, self, min=None, max=None, **_):
    values = [self] + [v for v in (min, max) if v is not None]
    def make(x, *ends):
        ends = list(ends)
        x = f"maximum({x}, {ends.pop(0)})" if min is not None else x
        return f"minimum({x}, {ends.pop(0)})" if max is not None else x
    return elementwise(t, values, make)


def binary(names, make, dtype=None):
    @operator_of(*names)
    def handler(t, self, other, alpha=1, rounding_mode=None, **_):
        if rounding_mode is not None:
            raise Untranslatable(f"division with rounding '{rounding_mode}' has no translation")
        if alpha != 1:
            other = elementwise(t, [other], lambda y: f"{number(alpha)} * {atom(y)}")
        return elementwise(t, [self, other], make, dtype)


binary(["add"], lambda x, y: f"{x} + {term(y) if y.startswith('-') else y}")
binary(["sub"], lambda x, y: f"{x} - {term(y)}")
binary(["rsub"], lambda x, y: f"{y} - {term(x)}")
binary(["mul"], lambda x, y: f"{term(x)} * {atom(y)}")
binary(["div", "true_divide"], lambda x, y: f"{term(x)} / {atom(y)}")
binary(["maximum"], lambda x, y: f"maximum({x}, {y})")
binary(["minimum"], lambda x, y: f"minimum({x}, {y})")
for _name, _symbol in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    binary([_name], lambda x, y, s=_symbol: f"{term(x)} {s} {term(y)}", "bool")
binary(["logical_and", "bitwise_and"], lambda x, y: f"{atom(x)} and {atom(y)}", "bool")
binary(["logical_or", "bitwise_or"], lambda x, y: f"{atom(x)} or {atom(y)}", "bool")


@operator_of("pow")
def _pow(t, self, exponent, **_):
    return elementwise(t, [self, exponent], lambda x, y: f"{atom(x)}^{atom(y)}")


@operator_of("where")
def _where(t, condition, self, other, **_):
    kind = next((v.dtype for v in (self, other) if isinstance(v, Value)), "f32")
    return elementwise(t, [condition, self, other], lambda c, x, y: f"where({c}, {x}, {y})", kind)


@operator_of("masked_fill")
def _masked_fill(t, self, mask, value, **_):
    return elementwise(t, [self, mask, value], lambda x, c, v: f"where({c}, {v}, {x})")


@operator_of("lerp")
def _lerp(t, self, end, weight, **_):
    return elementwise(t, [self, end, weight], lambda x, y, w: f"{x} + {atom(w)} * ({y} - {term(x)})")


@operator_of("addcmul", "addcdiv")
def _addc(t, self, tensor1, tensor2, value=1, op="", **_):
    sign = "*" if op == "addcmul" else "/"
    scale = "" if value == 1 else f"{number(value)} * "
    return elementwise(t, [self, tensor1, tensor2], lambda x, a, b: f"{x} + {scale}{atom(a)} {sign} {atom(b)}")


@operator_of("to", "_to_copy", "type_as", "float", "half", "bfloat16", "double")
def _to(t, self, node=None, **_):
    """A definition is of real numbers: only a cast to integers or conditions says something of the values."""
    kind = node["dtype"]
    if kind in ("i8", "i32", "i64") and self.dtype not in ("bool", "i8", "i32", "i64"):
        return elementwise(t, [self], lambda x: f"where({x} < 0, -floor(-{atom(x)}), floor({x}))", kind)
    if kind == "bool" and self.dtype != "bool":
        return elementwise(t, [self], lambda x: f"{term(x)} != 0", kind)
    return elementwise(t, [self], lambda x: x, kind)


@operator_of("dropout", "feature_dropout", "alpha_dropout")
def _dropout(t, input, p, train, **_):
    if train and p > 0:
        raise Untranslatable("dropout draws random numbers inside of the model")
    return input
