"""Losses, distances, attention, and reads at an index that a tensor holds."""


def averaged(t, self, reduction):
    """PyTorch's numbers: 0 none, 1 mean, 2 sum."""
    if reduction == 0:
        return self
    return mean_of(t, self, None) if reduction == 1 else simple(t, self, "sum", None)


def loss(names, make):
    @operator_of(*names)
    def handler(t, self, target, reduction=1, weight=None, **more):
        if weight is not None:
            raise Untranslatable("a loss with weights has no translation")
        return averaged(t, elementwise(t, [self, target], lambda x, y: make(x, y, more)), reduction)


loss(["mse_loss"], lambda x, y, _: f"({x} - {term(y)})^2")
loss(["l1_loss"], lambda x, y, _: f"abs({x} - {term(y)})")
loss(["binary_cross_entropy"], lambda x, y, _:
     f"-({atom(y)} * maximum(log({x}), -100) + (1 - {term(y)}) * maximum(log(1 - {term(x)}), -100))")
loss(["binary_cross_entropy_with_logits"], lambda x, y, _:
     f"maximum({x}, 0) - {atom(x)} * {atom(y)} + log1p(exp(-abs({x})))")


@operator_of("smooth_l1_loss", "huber_loss")
def _smooth(t, self, target, reduction=1, beta=1.0, delta=1.0, op="", **_):
    end = number(delta if op == "huber_loss" else beta)
    def make(x, y):
        off = f"abs({x} - {term(y)})"
        if op == "huber_loss":
            return f"where({off} < {end}, 0.5 * {off}^2, {end} * ({off} - 0.5 * {end}))"
        return f"where({off} < {end}, 0.5 * {off}^2 / {end}, {off} - 0.5 * {end})"
    return averaged(t, elementwise(t, [self, target], make), reduction)


@operator_of("kl_div")
def _kl_div(t, self, target, reduction=1, log_target=False, **_):
    def make(x, y):
        if log_target:
            return f"exp({y}) * ({y} - {term(x)})"
        return f"where({y} > 0, {atom(y)} * (log({y}) - {term(x)}), 0)"
    return averaged(t, elementwise(t, [self, target], make), reduction)


@operator_of("cross_entropy_loss", "nll_loss", "nll_loss_nd")
def _cross_entropy(t, self, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0, op="", **_):
    if weight is not None or label_smoothing or target.dtype not in ("i8", "i32", "i64"):
        raise Untranslatable(f"{op} with weights, smoothing or probabilities has no translation")
    at = min(1, len(self.sizes) - 1)
    logs = _softmax(t, self, at, op="log_softmax") if op == "cross_entropy_loss" else self
    t.note_labels(target, logs.sizes[at])
    sizes = [t.n.unify(a, b) for a, b in zip(target.sizes, logs.sizes[:at] + logs.sizes[at + 1:])]
    def read(indices):
        return f"-{atom(logs.read(indices[:at] + [target.read(indices)] + indices[at:]))}"
    return averaged(t, Value(sizes, read, self.dtype), reduction)


def distance(t, one, other, p, eps, keepdim=False):
    off = elementwise(t, [one, other], lambda x, y: f"{x} - {term(y)} + {number(eps)}")
    return _norm(t, off, p=p, dim=[-1], keepdim=keepdim)


@operator_of("pairwise_distance")
def _pairwise_distance(t, x1, x2, p=2, eps=1e-6, keepdim=False, **_):
    return distance(t, x1, x2, p, eps, keepdim)


@operator_of("triplet_margin_loss")
def _triplet(t, anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1, **_):
    near, far = (t.n.keep(distance(t, anchor, one, p, eps), "distance") for one in (positive, negative))
    if swap:
        other = t.n.keep(distance(t, positive, negative, p, eps), "distance")
        far = elementwise(t, [far, other], lambda x, y: f"minimum({x}, {y})")
    made = elementwise(t, [near, far], lambda x, y: f"maximum({x} - {y} + {number(margin)}, 0)")
    return averaged(t, made, reduction)


@operator_of("margin_ranking_loss")
def _margin_ranking(t, input1, input2, target, margin=0.0, reduction=1, **_):
    return averaged(t, elementwise(t, [input1, input2, target], lambda x, y, s:
                                   f"maximum({number(margin)} - {atom(s)} * ({x} - {term(y)}), 0)"), reduction)


@operator_of("hinge_embedding_loss")
def _hinge(t, self, target, margin=1.0, reduction=1, **_):
    return averaged(t, elementwise(t, [self, target], lambda x, y:
                                   f"where({y} == 1, {x}, maximum({number(margin)} - {term(x)}, 0))"), reduction)


@operator_of("cosine_similarity")
def _cosine(t, x1, x2, dim=1, eps=1e-8, **_):
    squares = [simple(t, elementwise(t, [x], lambda v: f"{atom(v)}^2"), "sum", [dim]) for x in (x1, x2)]
    product = simple(t, elementwise(t, [x1, x2], lambda a, b: f"{atom(a)} * {atom(b)}"), "sum", [dim])
    end = number(eps * eps)
    return elementwise(t, [product] + squares, lambda d, a, b:
                       f"{d} / sqrt(maximum({a}, {end}) * maximum({b}, {end}))")


@operator_of("scaled_dot_product_attention")
def _attention(t, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, **_):
    if dropout_p:
        raise Untranslatable("dropout draws random numbers inside of the model")
    if enable_gqa:
        raise Untranslatable("attention with grouped heads (enable_gqa) has no translation")
    lead = "abcdefgh"[:len(query.sizes) - 2]
    width = query.sizes[-1]
    score = contracted(t, f"{lead}qd,{lead}kd->{lead}qk", [query, key])
    by = f" / sqrt({width.mark()})" if scale is None else f" * {scale if isinstance(scale, str) else number(scale)}"
    scores = elementwise(t, [score], lambda s: f"{s}{by}")
    if attn_mask is not None and attn_mask.dtype == "bool":
        scores = elementwise(t, [attn_mask, scores], lambda m, s: f"where({m}, {s}, -infinity)", query.dtype)
    elif attn_mask is not None:
        scores = elementwise(t, [scores, attn_mask], lambda s, m: f"{s} + {m}")
    if is_causal:
        plain = t.n.keep(scores, "score")
        scores = Value(plain.sizes, lambda i: f"where({i[-1]} <= {i[-2]}, {plain.read(i)}, -infinity)", plain.dtype)
    weights = t.n.keep(_softmax(t, scores, -1), "weight")
    return contracted(t, f"{lead}qk,{lead}kd->{lead}qd", [weights, value])


# Reads at an index that was read.

@operator_of("embedding")
def _embedding(t, weight, indices, **_):
    t.note_labels(indices, weight.sizes[0])
    rank = len(indices.sizes)
    return Value(indices.sizes + weight.sizes[1:],
                 lambda i: weight.read([indices.read(i[:rank])] + i[rank:]), weight.dtype)


@operator_of("index_select")
def _index_select(t, self, dim, index, **_):
    at = axis(len(self.sizes), dim)
    t.note_labels(index, self.sizes[at])
    return Value(self.sizes[:at] + index.sizes + self.sizes[at + 1:],
                 lambda i: self.read(i[:at] + [index.read([i[at]])] + i[at + 1:]), self.dtype)


@operator_of("gather")
def _gather(t, self, dim, index, **_):
    at = axis(len(self.sizes), dim)
    t.note_labels(index, self.sizes[at])
    return Value(index.sizes, lambda i: self.read(i[:at] + [index.read(i)] + i[at + 1:]), self.dtype)
