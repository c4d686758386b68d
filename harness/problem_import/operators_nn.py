"""Operators of networks: convolutions, pooling, norms, losses, attention, reads by index."""


def listed(value, count):
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * count if len(value) == 1 else value


def moved(index, scale, offset):
    text = index if scale == 1 else f"{index} * {scale}"
    return text if offset == 0 else f"{text} + {offset}" if offset > 0 else f"{text} - {-offset}"


def window_size(t, size, made, window, stride, padding, dilation):
    """What a window that moves leaves of a size."""
    size = t.n.found(size)
    extent = window.mark() if isinstance(window, Size) else str(window)
    if isinstance(window, Size) and window.pair[0] == window.pair[1]:
        same = stride == 1 and 2 * padding == dilation * (window.pair[0] - 1)
        if same:
            return size
    wide = f" - {extent}" if dilation == 1 else f" - {dilation} * {atom(extent)}"
    text = moved(size.mark(), 1, 2 * padding + dilation - 1) + wide
    return t.n.derived(made, f"({text}) // {stride} + 1" if stride != 1 else f"{text} + 1")


@operator_of("conv1d", "conv2d", "conv3d", "convolution")
def _convolution(t, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, transposed=False,
                 output_padding=0, node=None, **_):
    if transposed:
        return _transposed(t, input, weight, bias, stride, padding, output_padding, groups, dilation, node=node)
    rank = len(weight.sizes) - 2
    stride, dilation = listed(stride, rank), listed(dilation, rank)
    if isinstance(padding, str):
        total = [d * (w.pair[0] - 1) for d, w in zip(dilation, weight.sizes[2:])]
        if padding == "same" and any(x % 2 for x in total):
            raise Untranslatable("a convolution that is padded unevenly has no translation")
        padding = [x // 2 if padding == "same" else 0 for x in total]
    padding = listed(padding, rank)
    batched = len(input.sizes) > rank + 1
    input = t.n.keep(input if batched else _unsqueeze(t, input, 0), "padded")
    channels, outs = weight.sizes[1], weight.sizes[0]
    grouped = isinstance(groups, str) or groups > 1
    count = tuple(a // b for a, b in zip(input.sizes[1].pair, channels.pair))  # of groups, at both sizes
    if not grouped:
        channels = t.n.unify(channels, input.sizes[1])
    elif t.n.is_one(channels) and outs.pair == count:
        t.n.unify(outs, input.sizes[1])
    elif not t.n.is_one(channels):
        t.n.unify(input.sizes[1], t.n.derived(input.sizes[1].pair, f"{channels.mark()} * {atom(str(groups))}"))
    made = node["shape"][2:] if batched else node["shape"][1:]
    sizes = [input.sizes[0], weight.sizes[0]] + [
        window_size(t, input.sizes[2 + i], made[i], weight.sizes[2 + i], stride[i], padding[i], dilation[i])
        for i in range(rank)]
    if bias is not None:
        t.n.unify(bias.sizes[0], outs)
    per_group = f"{atom(outs.mark())} // {atom(str(groups))}"

    def read(indices):
        c = "0" if t.n.is_one(channels) else t.n.index(channels)
        taps = ["0" if t.n.is_one(s) else t.n.index(s) for s in weight.sizes[2:]]
        from_channel = c
        if grouped:
            group = indices[1] if outs.pair == count else f"{indices[1]} // ({per_group})"
            from_channel = group if c == "0" else f"{atom(group)} * {atom(channels.mark())} + {c}"
        places = [indices[0], from_channel]
        for i, tap in enumerate(taps):
            at = moved(indices[2 + i], stride[i], 0)
            at += "" if tap == "0" else f" + {moved(tap, dilation[i], 0)}"
            places.append(moved(at, 1, -padding[i]))
        x = t.n.element(input, places, "0" if any(padding) else None)
        body = f"{x} * {weight.read([indices[1], c] + taps)}"
        over = [m for m in [c] + taps if m != "0"]
        text = t.n.reduction("sum", over, body) if over else body
        return text if bias is None else f"{text} + {bias.read([indices[1]])}"
    if grouped and outs.pair != count:
        t.n.constraints.append(f"{outs.mark()} % {atom(str(groups))} == 0")
    value = Value(sizes, read, input.dtype)
    return value if batched else _squeeze(t, value, 0)


@operator_of("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _transposed(t, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1, node=None,
                **_):
    rank = len(weight.sizes) - 2
    stride, padding, dilation, more = (listed(v, rank) for v in (stride, padding, dilation, output_padding))
    input = t.n.keep(input, "spread")
    t.n.unify(input.sizes[1], weight.sizes[0])
    out_per_group = weight.sizes[1]
    if groups != 1:
        t.n.constraints.append(f"{weight.sizes[0].mark()} % {groups} == 0")
    channels = out_per_group if groups == 1 else t.n.derived(node["shape"][1], f"{out_per_group.mark()} * {groups}")
    if bias is not None:
        t.n.unify(bias.sizes[0], channels)
    sizes = [input.sizes[0], channels]
    for i in range(rank):
        tap = weight.sizes[2 + i]
        steps = f"{input.sizes[2 + i].mark()} - 1"
        text = steps if stride[i] == 1 else f"({steps}) * {stride[i]}"
        text += f" + {dilation[i]} * ({tap.mark()} - 1) + 1" if dilation[i] != 1 else f" + {tap.mark()}"
        sizes.append(t.n.derived(node["shape"][2 + i], moved(text, 1, more[i] - 2 * padding[i])))

    def read(indices):
        own = weight.sizes[0] if groups == 1 else t.n.derived(
            [p // groups for p in weight.sizes[0].pair], f"{weight.sizes[0].mark()} // {groups}")
        c = "0" if t.n.is_one(own) else t.n.index(own)
        from_channel, to_channel = c, indices[1]
        if groups > 1:
            group = indices[1] if t.n.is_one(out_per_group) else f"{indices[1]} // {atom(out_per_group.mark())}"
            from_channel = group if c == "0" else f"{atom(group)} * {atom(own.mark())} + {c}"
            to_channel = "0" if t.n.is_one(out_per_group) else f"{indices[1]} % {atom(out_per_group.mark())}"
        taps = ["0" if t.n.is_one(s) else t.n.index(s) for s in weight.sizes[2:]]
        places, conditions = [indices[0], from_channel], []
        for i, tap in enumerate(taps):
            at = moved(indices[2 + i], 1, padding[i])
            at += "" if tap == "0" else f" - {moved(tap, dilation[i], 0)}"
            if stride[i] != 1:
                conditions.append(f"({at}) % {stride[i]} == 0")
                at = f"({at}) // {stride[i]}"
            places.append(at)
        body = f"{t.n.element(input, places, '0')} * {weight.read([from_channel, to_channel] + taps)}"
        over = [m for m in [c] + taps if m != "0"]
        condition = " and ".join(conditions)
        if not over:
            text = f"where({condition}, {body}, 0)" if conditions else body
        else:
            text = t.n.reduction("sum", over, body, condition)
        return text if bias is None else f"{text} + {bias.read([indices[1]])}"
    return Value(sizes, read, input.dtype)


# Pooling.

@operator_of("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def _pool(t, self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True,
          divisor_override=None, node=None, op="", **_):
    rank = int(op[-2])
    kernel = listed(kernel_size, rank)
    stride = listed(stride, rank) if stride else kernel
    padding, dilation = listed(padding, rank), listed(dilation, rank)
    is_max = op.startswith("max")
    if ceil_mode:
        raise Untranslatable(f"{op} with ceil_mode has no translation")
    if not is_max and any(padding) and not count_include_pad:
        raise Untranslatable(f"{op} without count_include_pad has no translation")
    lead = len(self.sizes) - rank
    self = t.n.keep(self, "pooled")
    sizes = self.sizes[:lead] + [window_size(t, self.sizes[lead + i], node["shape"][lead + i], kernel[i], stride[i],
                                             padding[i], dilation[i]) for i in range(rank)]
    def read(indices):
        taps = [t.n.index(t.n.constant(k)) for k in kernel]
        places = list(indices[:lead])
        for i, tap in enumerate(taps):
            at = f"{moved(indices[lead + i], stride[i], 0)} + {moved(tap, dilation[i], 0)}"
            places.append(moved(at, 1, -padding[i]))
        outside = ("-infinity" if is_max else "0") if any(padding) else None
        text = t.n.reduction("max" if is_max else "sum", taps, t.n.element(self, places, outside))
        return text if is_max else f"{text} / {divisor_override or math.prod(kernel)}"
    return Value(sizes, read, self.dtype)


@operator_of("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def _adaptive(t, self, output_size, node=None, op="", **_):
    rank = int(op[-2])
    made = [tuple(p) for p in node["shape"][-rank:]]
    if all(pair == (1, 1) for pair in made):
        return mean_of(t, self, list(range(-rank, 0)), True)
    raise Untranslatable(f"{op} to other sizes than 1 has no translation")


# Norms.

def normalised(t, self, dims, eps, weight, bias, along):
    """By mean and variance over `dims`; weight and bias lie along the axes `along`."""
    self = t.n.keep(self, "values")
    mean = t.n.keep(mean_of(t, self, dims, True), "mean")
    off = elementwise(t, [self, mean], lambda x, m: f"({x} - {m})^2")
    count = atom(count_of(t, self, dims).mark())
    variance = elementwise(t, [simple(t, off, "sum", dims, True), count], lambda x, n: f"{x} / {n}")
    variance = t.n.keep(variance, "variance")
    made = elementwise(t, [self, mean, variance], lambda x, m, v: f"({x} - {m}) / sqrt({v} + {number(eps)})")
    return scaled(t, made, weight, bias, along)


def laid(t, one, like, along):
    """A tensor along some of another's axes."""
    sizes = [t.n.constant(1)] * len(like.sizes)
    for size, at in zip(one.sizes, along):
        sizes[at] = t.n.unify(size, like.sizes[at])
    return Value(sizes, lambda indices: one.read([indices[at] for at in along]), one.dtype)


def scaled(t, made, weight, bias, along):
    if weight is not None:
        made = elementwise(t, [made, laid(t, weight, made, along)], lambda x, w: f"{term(x)} * {w}")
    if bias is not None:
        made = elementwise(t, [made, laid(t, bias, made, along)], lambda x, b: f"{x} + {b}")
    return made


@operator_of("batch_norm", "cudnn_batch_norm", "native_batch_norm")
def _batch_norm(t, input, weight, bias, running_mean, running_var, training, eps, **_):
    if training:
        return normalised(t, input, [d for d in range(len(input.sizes)) if d != 1], eps, weight, bias, [1])
    mean, variance = (laid(t, one, input, [1]) for one in (running_mean, running_var))
    made = elementwise(t, [input, mean, variance], lambda x, m, v: f"({x} - {m}) / sqrt({v} + {number(eps)})")
    return scaled(t, made, weight, bias, [1])


@operator_of("instance_norm")
def _instance_norm(t, input, weight, bias, use_input_stats, eps, **_):
    if not use_input_stats:
        raise Untranslatable("instance_norm by running statistics has no translation")
    return normalised(t, input, list(range(2, len(input.sizes))), eps, weight, bias, [1])


@operator_of("layer_norm", "native_layer_norm")
def _layer_norm(t, input, normalized_shape, weight=None, bias=None, eps=1e-5, **_):
    along = list(range(len(input.sizes) - len(normalized_shape), len(input.sizes)))
    return normalised(t, input, along, eps, weight, bias, along)


@operator_of("rms_norm")
def _rms_norm(t, input, normalized_shape, weight=None, eps=None, **_):
    if eps is None:
        raise Untranslatable("rms_norm without eps has no translation: it depends on the type")
    along = list(range(len(input.sizes) - len(normalized_shape), len(input.sizes)))
    square = t.n.keep(mean_of(t, elementwise(t, [input], lambda x: f"{atom(x)}^2"), along, True), "mean_square")
    made = elementwise(t, [input, square], lambda x, m: f"{term(x)} / sqrt({m} + {number(eps)})")
    return scaled(t, made, weight, None, along)


@operator_of("group_norm")
def _group_norm(t, input, num_groups, weight=None, bias=None, eps=1e-5, **_):
    batch, channels, rest = input.sizes[0], input.sizes[1], input.sizes[2:]
    pairs = [batch.pair, (num_groups, num_groups), tuple(p // num_groups for p in channels.pair)]
    grouped = reshaped(t, t.n.keep(input, "values"), pairs + [s.pair for s in rest])
    dims = list(range(2, len(grouped.sizes)))
    mean = t.n.keep(mean_of(t, grouped, dims, True), "mean")
    off = elementwise(t, [grouped, mean], lambda x, m: f"({x} - {m})^2")
    count = atom(count_of(t, grouped, dims).mark())
    variance = elementwise(t, [simple(t, off, "sum", dims, True), count], lambda x, n: f"{x} / {n}")
    variance = t.n.keep(variance, "variance")
    per_group = grouped.sizes[2]
    def read(indices):
        group = "0" if num_groups == 1 else f"{indices[1]} // {atom(per_group.mark())}"
        # The element itself is read where it stands, its group's statistics by division.
        x = input.read(indices)
        place = [indices[0], group] + ["0"] * len(dims)
        return f"({x} - {mean.read(place)}) / sqrt({variance.read(place)} + {number(eps)})"
    return scaled(t, Value(input.sizes, read, input.dtype), weight, bias, [1])
