"""Operators that only say where an element is read: views, slices, joins, triangles, constants."""


def axis(rank, dim):
    return dim + rank if dim < 0 else dim


@operator_of("permute")
def _permute(t, self, dims, **_):
    order = [axis(len(self.sizes), d) for d in dims]
    def read(indices):
        own = [None] * len(order)
        for i, d in zip(indices, order):
            own[d] = i
        return self.read(own)
    return Value([self.sizes[d] for d in order], read, self.dtype)


@operator_of("transpose", "swapaxes")
def _transpose(t, self, dim0, dim1, **_):
    order = list(range(len(self.sizes)))
    a, b = axis(len(order), dim0), axis(len(order), dim1)
    order[a], order[b] = order[b], order[a]
    return _permute(t, self, order)


@operator_of("t", "numpy_T", "mT", "matrix_H")
def _t(t, self, **_):
    return self if len(self.sizes) < 2 else _transpose(t, self, -2, -1)


@operator_of("unsqueeze")
def _unsqueeze(t, self, dim, **_):
    at = axis(len(self.sizes) + 1, dim)
    return Value(self.sizes[:at] + [t.n.constant(1)] + self.sizes[at:],
                 lambda indices: self.read(indices[:at] + indices[at + 1:]), self.dtype)


@operator_of("squeeze")
def _squeeze(t, self, dim=None, **_):
    rank = len(self.sizes)
    dims = range(rank) if dim is None else [axis(rank, d) for d in (dim if isinstance(dim, list) else [dim])]
    gone = {d for d in dims if t.n.is_one(self.sizes[d])}
    left = [d for d in range(rank) if d not in gone]
    def read(indices):
        own = ["0"] * rank
        for i, d in zip(indices, left):
            own[d] = i
        return self.read(own)
    return Value([self.sizes[d] for d in left], read, self.dtype)


@operator_of("expand", "expand_as", "broadcast_to")
def _expand(t, self, node=None, **_):
    self = t.n.keep(self) if t.n.is_heavy(self) else self
    sizes = t.sizes_of(node)
    off = len(sizes) - len(self.sizes)
    for i, size in enumerate(self.sizes):
        if not t.n.is_one(size):
            sizes[off + i] = t.n.unify(sizes[off + i], size)
    return Value(sizes, lambda indices: self.read(
        ["0" if t.n.is_one(s) else i for s, i in zip(self.sizes, indices[off:])]), self.dtype)


@operator_of("broadcast_tensors")
def _broadcast_tensors(t, tensors, **_):
    zero = lambda *texts: texts[0]
    return [elementwise(t, [one] + tensors, zero, one.dtype) for one in tensors]


@operator_of("select")
def _select(t, self, dim, index, **_):
    at = axis(len(self.sizes), dim)
    place = place_from(t, self.sizes[at], index)
    return Value(self.sizes[:at] + self.sizes[at + 1:],
                 lambda indices: self.read(indices[:at] + [place] + indices[at:]), self.dtype)


def place_from(t, size, index):
    """An index from the start or, below 0, from the end."""
    return str(index) if index >= 0 else f"{size.mark()} - {-index}"


@operator_of("slice", "narrow")
def _slice(t, self, dim=0, start=None, step=1, node=None, **_):
    at = axis(len(self.sizes), dim)
    size, made = self.sizes[at], t.sizes_of(node)[at]
    start = start or 0
    if made.pair == size.pair and step == 1:
        return self
    first = place_from(t, size, start)
    shorter = {s - m for s, m in zip(size.pair, made.pair)}
    if step == 1 and len(shorter) == 1:
        made = t.n.derived(made.pair, f"{size.mark()} - {shorter.pop()}")
    sizes = self.sizes[:at] + [made] + self.sizes[at + 1:]
    def moved(i):
        scaled = i if step == 1 else f"{atom(i)} * {step}"
        return scaled if first == "0" else f"{scaled} + {first}"
    return Value(sizes, lambda indices: self.read(indices[:at] + [moved(indices[at])] + indices[at + 1:]), self.dtype)


@operator_of("flip")
def _flip(t, self, dims, **_):
    flipped = {axis(len(self.sizes), d) for d in dims}
    return Value(self.sizes, lambda indices: self.read(
        [f"{self.sizes[d].mark()} - 1 - {term(i)}" if d in flipped else i for d, i in enumerate(indices)]), self.dtype)


@operator_of("cat", "concat", "concatenate")
def _cat(t, tensors, dim=0, **_):
    """One after the other: each but the last is read up to its end."""
    at = axis(len(tensors[0].sizes), dim)
    sizes = list(tensors[0].sizes)
    for one in tensors[1:]:
        for d, size in enumerate(one.sizes):
            if d != at:
                sizes[d] = t.n.unify(sizes[d], size)
    ends = []
    for one in tensors:
        ends.append((ends[-1] + " + " if ends else "") + one.sizes[at].mark())
    pair = [sum(one.sizes[at].pair[w] for one in tensors) for w in (0, 1)]
    sizes[at] = t.n.derived(pair, ends[-1]) if len(tensors) > 1 else sizes[at]
    def read(indices):
        text = ""
        for k, one in enumerate(tensors):
            place = indices[at] if k == 0 else f"{indices[at]} - {atom(ends[k - 1])}"
            own = one.read(indices[:at] + [place] + indices[at + 1:])
            text += f"where({indices[at]} < {ends[k]}, {own}, " if k + 1 < len(tensors) else own
        return text + ")" * (len(tensors) - 1)
    return Value(sizes, read, tensors[0].dtype)


@operator_of("stack")
def _stack(t, tensors, dim=0, **_):
    return _cat(t, [_unsqueeze(t, one, axis(len(one.sizes) + 1, dim)) for one in tensors],
                axis(len(tensors[0].sizes) + 1, dim))


@operator_of("triu", "tril")
def _triangle(t, self, diagonal=0, op="", **_):
    sign = ">=" if op == "triu" else "<="
    def read(indices):
        i, j = indices[-2:]
        shifted = i if diagonal == 0 else f"{i} + {diagonal}" if diagonal > 0 else f"{i} - {-diagonal}"
        return f"where({j} {sign} {shifted}, {self.read(indices)}, 0)"
    return Value(self.sizes, read, self.dtype)


@operator_of("diag", "diag_embed")
def _diag(t, self, diagonal=0, offset=0, op="", **_):
    if diagonal or offset or len(self.sizes) > (2 if op == "diag" else 1):
        raise Untranslatable("a diagonal off the main one has no translation")
    if len(self.sizes) == 2:
        return Value([t.n.unify(*self.sizes)], lambda i: self.read([i[0], i[0]]), self.dtype)
    size = self.sizes[0]
    return Value([size, size], lambda i: f"where({i[0]} == {i[1]}, {self.read([i[0]])}, 0)", self.dtype)


@operator_of("full", "zeros", "ones", "full_like", "zeros_like", "ones_like", "scalar_tensor", "new_zeros", "new_ones",
             "new_full")
def _full(t, fill_value=None, s=None, node=None, op="", **_):
    value = fill_value if fill_value is not None else s if s is not None else 1 if "ones" in op else 0
    return Value(t.sizes_of(node), lambda _: value if isinstance(value, str) else number(value), node["dtype"])


@operator_of("arange")
def _arange(t, start=0, step=1, node=None, **_):
    first = "" if start == 0 else f" + {number(start)}"
    scale = "" if step == 1 else f" * {number(step)}"
    return Value(t.sizes_of(node), lambda i: f"{i[0]}{scale}{first}", node["dtype"])
