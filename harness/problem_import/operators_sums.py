"""Operators that merge, split, sum or search axes, and products of tensors."""

import math


# Reshaping.

def product_of(t, sizes):
    """The size that several make together."""
    sizes = [s for s in map(t.n.found, sizes) if not t.n.is_one(s)]
    if len(sizes) <= 1:
        return sizes[0] if sizes else t.n.constant(1)
    flat = [part for s in sizes for part in (s.parts or [s])]
    pair = [math.prod(s.pair[w] for s in flat) for w in (0, 1)]
    return t.n.derived(pair, " * ".join(s.mark() for s in flat), parts=tuple(flat))


def split_of(t, size, pairs):
    """The sizes that one is cut into; one of them is a quotient, so that the whole may vary."""
    size = t.n.found(size)
    if len(size.parts) == len(pairs) and all(p.pair == tuple(q) for p, q in zip(size.parts, pairs)):
        return list(size.parts)
    varying = [i for i, (own, small) in enumerate(pairs) if own != small]
    if len(varying) > 1:
        raise Untranslatable("a view that cuts one size into several that vary has no translation")
    largest = varying[0] if varying else max(range(len(pairs)), key=lambda i: pairs[i][0])
    made = [None if i == largest else t.n.free(pair) for i, pair in enumerate(pairs)]
    others = product_of(t, [m for m in made if m is not None])
    made[largest] = t.n.derived(pairs[largest], f"{size.mark()} // {atom(others.mark())}")
    t.n.constraints.append(f"{size.mark()} % {atom(others.mark())} == 0")
    return made


def reshaped(t, self, pairs):
    """By groups of axes whose products agree, each merged and cut anew."""
    old = [i for i, s in enumerate(self.sizes) if not t.n.is_one(s)]
    new = [i for i, p in enumerate(pairs) if tuple(p) != (1, 1)]
    sizes = [t.n.constant(1)] * len(pairs)
    groups, a, b = [], 0, 0
    while a < len(old) or b < len(new):
        left, right = [], []
        totals = lambda: ([math.prod(self.sizes[i].pair[w] for i in left) for w in (0, 1)],
                          [math.prod(pairs[i][w] for i in right) for w in (0, 1)])
        while not left or not right or totals()[0] != totals()[1]:
            have, want = totals()
            if a < len(old) and (not left or have[0] <= want[0] and right):
                left.append(old[a])
                a += 1
            elif b < len(new):
                right.append(new[b])
                b += 1
            else:
                raise Untranslatable("a view of these sizes has no translation")
        groups.append((left, right))
        if len(right) == 1:
            sizes[right[0]] = product_of(t, [self.sizes[i] for i in left])
        else:
            merged = product_of(t, [self.sizes[i] for i in left])
            for i, size in zip(right, split_of(t, merged, [pairs[i] for i in right])):
                sizes[i] = size

    def read(indices):
        own = ["0"] * len(self.sizes)
        for left, right in groups:
            flat = indices[right[0]]
            for i in right[1:]:
                flat = f"{atom(flat)} * {atom(sizes[i].mark())} + {indices[i]}"
            for place in reversed(left[1:]):
                own[place] = f"{atom(flat)} % {atom(self.sizes[place].mark())}"
                flat = f"{atom(flat)} // {atom(self.sizes[place].mark())}"
            own[left[0]] = flat
            if len(left) == len(right) == 1:
                own[left[0]] = indices[right[0]]
        return self.read(own)
    return Value(sizes, read, self.dtype)


@operator_of("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as")
def _view(t, self, node=None, **_):
    return reshaped(t, self, node["shape"])


# Reductions.

def dims_of(self, dim):
    rank = len(self.sizes)
    if dim is None or dim == []:
        return list(range(rank))
    return sorted(axis(rank, d) for d in (dim if isinstance(dim, list) else [dim]))


def reduced(t, self, dim, keepdim, make, dtype=None):
    """`make(marks, body)` gives the text over the indices of the sizes that go."""
    gone = dims_of(self, dim)
    self = t.n.keep(self) if t.n.is_heavy(self) else self
    left = [i for i in range(len(self.sizes)) if keepdim or i not in gone]
    sizes = [t.n.constant(1) if i in gone else self.sizes[i] for i in left]
    def read(indices):
        own = [t.n.index(self.sizes[i]) if i in gone else None for i in range(len(self.sizes))]
        for i, index in zip(left, indices):
            if i not in gone:
                own[i] = index
        return make([own[i] for i in gone], self.read(own))
    return Value(sizes, read, dtype or self.dtype)


def simple(t, self, reducer, dim, keepdim=False, dtype=None):
    return reduced(t, self, dim, keepdim, lambda marks, body: t.n.reduction(reducer, marks, body), dtype)


def count_of(t, self, dim):
    return product_of(t, [self.sizes[i] for i in dims_of(self, dim)])


def mean_of(t, self, dim, keepdim=False):
    total = simple(t, self, "sum", dim, keepdim)
    return elementwise(t, [total, atom(count_of(t, self, dim).mark())], lambda x, n: f"{x} / {n}")


def variance_of(t, self, dim, correction, keepdim=False):
    mean = t.n.keep(mean_of(t, self, dim, True), "mean")
    off = elementwise(t, [self, mean], lambda x, m: f"({x} - {m})^2")
    total = simple(t, off, "sum", dim, keepdim)
    count = atom(count_of(t, self, dim).mark())
    count = count if correction == 0 else f"({count} - {number(correction)})"
    return elementwise(t, [total, count], lambda x, n: f"{x} / {n}")


@operator_of("sum")
def _sum(t, self, dim=None, keepdim=False, node=None, **_):
    return simple(t, self, "sum", dim, keepdim, node["dtype"])


@operator_of("mean")
def _mean(t, self, dim=None, keepdim=False, **_):
    return mean_of(t, self, dim, keepdim)


@operator_of("prod")
def _prod(t, self, dim=None, keepdim=False, **_):
    return simple(t, self, "product", dim, keepdim)


@operator_of("amax", "amin", "max", "min")
def _extreme(t, self, dim=None, keepdim=False, other=None, op="", **_):
    which = op.replace("a", "", 1) if op in ("amax", "amin") else op
    if other is not None:
        return elementwise(t, [self, other], lambda x, y: f"{which}imum({x}, {y})")
    values = simple(t, self, which, dim, keepdim)
    if op in ("amax", "amin") or dim is None:
        return values
    return [values, simple(t, self, f"arg{which}", dim, keepdim, "i64")]


@operator_of("argmax", "argmin")
def _argument(t, self, dim=None, keepdim=False, op="", **_):
    if dim is None:
        self = reshaped(t, self, [[math.prod(s.pair[w] for s in self.sizes) for w in (0, 1)]])
    return simple(t, self, op, dim, keepdim, "i64")


@operator_of("var", "std", "var_mean")
def _variance(t, self, dim=None, correction=1, unbiased=None, keepdim=False, op="", **_):
    correction = (1 if correction is None else correction) if unbiased is None else int(unbiased)
    variance = variance_of(t, self, dim, correction, keepdim)
    if op == "std":
        return elementwise(t, [variance], lambda v: f"sqrt({v})")
    return [variance, mean_of(t, self, dim, keepdim)] if op == "var_mean" else variance


@operator_of("norm", "linalg_vector_norm", "frobenius_norm", "linalg_norm", "linalg_matrix_norm")
def _norm(t, self, p=None, ord=None, dim=None, keepdim=False, **_):
    order = p if p is not None else ord if ord is not None else 2
    order = 2 if order == "fro" else order
    if order in (float("inf"), float("-inf")):
        return simple(t, elementwise(t, [self], lambda x: f"abs({x})"), "max" if order > 0 else "min", dim, keepdim)
    if order == 1:
        return simple(t, elementwise(t, [self], lambda x: f"abs({x})"), "sum", dim, keepdim)
    if order == 2:
        total = simple(t, elementwise(t, [self], lambda x: f"{atom(x)}^2"), "sum", dim, keepdim)
        return elementwise(t, [total], lambda x: f"sqrt({x})")
    total = simple(t, elementwise(t, [self], lambda x: f"abs({x})^{number(order)}"), "sum", dim, keepdim)
    return elementwise(t, [total], lambda x: f"{atom(x)}^(1 / {number(order)})")


@operator_of("all", "any")
def _all(t, self, dim=None, keepdim=False, op="", **_):
    as_number = elementwise(t, [self], lambda x: f"where({x}, 1, 0)")
    extreme = simple(t, as_number, "min" if op == "all" else "max", dim, keepdim)
    return elementwise(t, [extreme], lambda x: f"{x} == 1", "bool")


@operator_of("logsumexp")
def _logsumexp(t, self, dim, keepdim=False, **_):
    largest = t.n.keep(simple(t, self, "max", dim, True), "largest")
    total = simple(t, elementwise(t, [self, largest], lambda x, m: f"exp({x} - {m})"), "sum", dim, keepdim)
    left = largest if keepdim else _squeeze(t, largest, dims_of(self, dim))
    return elementwise(t, [total, left], lambda s, m: f"log({s}) + {m}")


@operator_of("softmax", "_softmax", "log_softmax", "_log_softmax")
def _softmax(t, self, dim, op="", **_):
    self = t.n.keep(self, "logits")
    largest = t.n.keep(simple(t, self, "max", [dim], True), "largest")
    total = t.n.keep(simple(t, elementwise(t, [self, largest], lambda x, m: f"exp({x} - {m})"), "sum", [dim], True),
                     "total")
    if op.endswith("log_softmax"):
        return elementwise(t, [self, largest, total], lambda x, m, s: f"{x} - {m} - log({s})")
    return elementwise(t, [self, largest, total], lambda x, m, s: f"exp({x} - {m}) / {s}")


@operator_of("cumsum", "cumprod")
def _scan(t, self, dim, node, op="", **_):
    at = axis(len(self.sizes), dim)
    self = t.n.keep(self, "terms")
    def read(indices):
        mark = t.n.index(self.sizes[at])
        body = self.read(indices[:at] + [mark] + indices[at + 1:])
        return t.n.reduction("sum" if op == "cumsum" else "product", [mark], body, f"{mark} <= {indices[at]}")
    # A statement of its own: as part of another it would be summed again for each element.
    value = Value(self.sizes, read, self.dtype)
    return value if t.is_output(node) else t.n.keep(value, "running")


# Products.

def contracted(t, equation, tensors):
    """An einsum: letters that the right side lacks are summed over."""
    left, right = equation.replace(" ", "").split("->")
    sizes = {}
    for letters, tensor in zip(left.split(","), tensors):
        for letter, size in zip(letters, tensor.sizes):
            known = sizes.get(letter)
            sizes[letter] = size if known is None or t.n.is_one(known) else \
                known if t.n.is_one(size) else t.n.unify(known, size)
    # Factors that are plain reads make a product that is known as one.
    tensors = [one if is_atom(one.read(["0"] * len(one.sizes))) and "(" not in one.read(["0"] * len(one.sizes))
               else t.n.keep(one, "factor") for one in tensors]
    summed = [c for c in sizes if c not in right]
    def read(indices):
        places = dict(zip(right, indices))
        places.update({c: t.n.index(sizes[c]) for c in summed})
        factors = [tensor.read(["0" if t.n.is_one(s) else places[c] for c, s in zip(letters, tensor.sizes)])
                   for letters, tensor in zip(left.split(","), tensors)]
        body = " * ".join(atom(f) for f in factors)
        return t.n.reduction("sum", [places[c] for c in summed], body) if summed else body
    return Value([sizes[c] for c in right], read, tensors[0].dtype)


@operator_of("matmul", "mm", "bmm", "mv", "dot", "vdot")
def _matmul(t, self, other=None, mat2=None, vec=None, tensor=None, **_):
    other = next(v for v in (other, mat2, vec, tensor) if v is not None)
    rows, columns = len(self.sizes), len(other.sizes)
    batch = "abcdefgh"
    more = max(rows, columns, 2) - 2
    left = (batch[more - rows + 2:more] if rows > 2 else "") + ("ik" if rows > 1 else "k")
    right = (batch[more - columns + 2:more] if columns > 2 else "") + ("kj" if columns > 1 else "k")
    out = batch[:more] + ("i" if rows > 1 else "") + ("j" if columns > 1 else "")
    return contracted(t, f"{left},{right}->{out}", [self, other])


@operator_of("einsum")
def _einsum(t, equation, tensors, **_):
    equation = equation.replace(" ", "")
    if "." in equation or any(len(set(part)) != len(part) for part in re.split(r",|->", equation)):
        raise Untranslatable(f"einsum '{equation}' has no translation")
    if "->" not in equation:
        letters = "".join(sorted(c for c in set(equation) - {","} if equation.count(c) == 1))
        equation += "->" + letters
    return contracted(t, equation, tensors)


@operator_of("linear")
def _linear(t, input, weight, bias=None, **_):
    lead = "abcdefgh"[:len(input.sizes) - 1]
    made = contracted(t, f"{lead}k,jk->{lead}j" if len(weight.sizes) > 1 else f"{lead}k,k->{lead}", [input, weight])
    return made if bias is None else elementwise(t, [made, bias], lambda x, b: f"{x} + {b}")


@operator_of("addmm", "baddbmm", "addmv", "addbmm")
def _addmm(t, self, mat1=None, batch1=None, mat=None, mat2=None, batch2=None, vec=None, beta=1, alpha=1, op="", **_):
    if op == "addbmm":
        raise Untranslatable("addbmm has no translation")
    first = next(v for v in (mat1, batch1, mat) if v is not None)
    made = _matmul(t, first, next(v for v in (mat2, batch2, vec) if v is not None))
    scaled = lambda x, by: x if by == 1 else f"{number(by)} * {atom(x)}"
    return elementwise(t, [made, self], lambda x, c: f"{scaled(x, alpha)} + {scaled(c, beta)}")


@operator_of("outer")
def _outer(t, self, vec2, **_):
    return contracted(t, "i,j->ij", [self, vec2])
