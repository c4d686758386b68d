"""Sizes, values and statements of a problem that is being made of a traced program. Needs no PyTorch.

A program is traced twice, at its own and at smaller sizes, so a size is a pair of both numbers: only what is
equal in both is the same size. Texts hold marks in place of names until all names are known."""

import re


class Untranslatable(Exception):
    """What the definition language cannot say, in one line."""


class Size:
    """An axis of the problem (free), a number that no size decides, or an expression of other sizes."""

    def __init__(self, number, pair, kind, text="", hint="", parts=()):
        self.number, self.pair, self.kind, self.text, self.hint = number, tuple(pair), kind, text, hint
        self.parts = parts  # of a product: the sizes that were merged
        self.same = None
        self.name = None

    def mark(self):
        return str(self.pair[0]) if self.kind == "number" else f"\x02{self.number}\x02"


class Value:
    """A tensor by a function that gives an element's expression for indices."""

    def __init__(self, sizes, read, dtype, name=None, kept=None):
        self.sizes, self.read, self.dtype, self.name = list(sizes), read, dtype, name
        self.kept = kept  # of a stored value: the positions of its indices


def is_atom(text):
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and (c == " " or (c == "-" and i == 0)):
            return False
        if depth == 0 and c == "^":
            return False
    return True


def atom(text):
    return text if is_atom(text) else f"({text})"


def term(text):
    """As a term of a sum, or after a reduction: products need no parentheses."""
    depth = 0
    words = []
    for word in re.split(r" ", text):
        if depth == 0:
            words.append(word)
        depth += sum(word.count(c) for c in "([") - sum(word.count(c) for c in ")]")
    loose = {"+", "-", "<", ">", "<=", ">=", "==", "!=", "and", "or", "not"}
    reduces = re.match(r"(sum|product|max|min|argmax|argmin)\(", text) and not is_atom(text)
    return f"({text})" if loose & set(words) or text.startswith("-") or reduces else text


def number(value):
    if isinstance(value, bool):
        return "1" if value else "0"
    if value in (float("inf"), float("-inf")):
        return "infinity" if value > 0 else "-infinity"
    if value != value:
        raise Untranslatable("a constant is NaN")
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return str(int(value))
    return repr(value)


class Notation:
    """The statements so far, and everything that they name."""

    def __init__(self, taken):
        self.sizes, self.statements, self.constraints, self.notes = [], [], [], []
        self.taken = set(taken)  # names of tensors and axes
        self.indices = 0
        self.alone = {}  # by index: the sizes where it stands alone
        self.ends = {}   # by index: its own size

    # Sizes.

    def _size(self, pair, kind, **more):
        self.sizes.append(Size(len(self.sizes), pair, kind, **more))
        return self.sizes[-1]

    def free(self, pair, hint=""):
        return self.constant(1) if tuple(pair) == (1, 1) else self._size(pair, "free", hint=hint)

    def constant(self, value):
        return self._size((value, value), "number")

    def derived(self, pair, text, hint="", parts=()):
        for one in self.sizes:
            if one.kind == "derived" and one.text == text:
                return self.found(one)
        return self._size(pair, "derived", text=text, hint=hint, parts=parts)

    def found(self, size):
        while size.same is not None:
            size = size.same
        return size

    def uses(self, size, other):
        """Whether the size is an expression of the other."""
        size = self.found(size)
        if size is other:
            return True
        return any(self.uses(self.sizes[int(n)], other) for n in re.findall(r"\x02(\d+)\x02", size.text))

    def unify(self, one, other):
        """Both are the same from now on, as far as one of them is free."""
        one, other = self.found(one), self.found(other)
        if one is other:
            return one
        if one.pair != other.pair:
            raise Untranslatable(f"sizes {one.pair[0]} and {other.pair[0]} where the same was expected")
        for a, b in ((one, other), (other, one)):
            if b.kind == "free" and not self.uses(a, b):
                b.same = a
                a.hint = a.hint or b.hint
                return a
        return one

    def is_one(self, size):
        return self.found(size).pair == (1, 1)

    # Indices and reads.

    def index(self, size):
        self.indices += 1
        mark = f"\x03{self.indices}\x03"
        self.ends[mark] = size
        return mark

    def stored(self, name, sizes, dtype, squeezed=False):
        kept = [i for i, size in enumerate(sizes) if not (squeezed and self.is_one(size))]
        value = Value(sizes, None, dtype, name, kept)
        value.read = lambda indices: self.element(value, indices)
        return value

    def element(self, value, indices, otherwise=None):
        for i in value.kept:
            if re.fullmatch(r"\x03\d+\x03", indices[i]):
                self.alone.setdefault(indices[i], []).append(value.sizes[i])
        if not value.kept:
            return value.name
        tail = "" if otherwise is None else f" else {otherwise}"
        return f"{value.name}[{', '.join(indices[i] for i in value.kept)}{tail}]"

    def reduction(self, reducer, indices, body, condition=""):
        """Over marks of indices; the result stands alone in parentheses."""
        shown = ", ".join(f"\x04{mark[1:-1]}\x04" for mark in indices)
        return f"({reducer}({shown}{' : ' + condition if condition else ''}) {term(body)})"

    # Statements.

    def unused(self, wanted):
        """A name that nothing has."""
        name = re.sub(r"\W", "_", wanted).strip("_") or "value"
        name = f"n{name}" if name[0].isdigit() else name
        tries = 1
        while name in self.taken or name in RESERVED:
            tries += 1
            name = f"{wanted}_{tries}"
        self.taken.add(name)
        return name

    def keep(self, value, wanted="part"):
        """The value as a tensor that a statement defines."""
        if value.name is not None:
            return value
        name = self.unused(wanted)
        kept = self.stored(name, value.sizes, value.dtype, squeezed=True)
        self.define(name, kept.kept, value, ends=True)
        return kept

    def is_heavy(self, value):
        """Whether an element of it takes a reduction."""
        return bool(REDUCTION.search(value.read(["0"] * len(value.sizes))))

    def spans(self, value, sizes):
        """Whether it has all of these sizes itself."""
        return len(value.sizes) == len(sizes) and all(
            self.is_one(a) == self.is_one(b) for a, b in zip(value.sizes, sizes))

    def define(self, name, kept, value, ends):
        indices = [self.index(size) for size in value.sizes]
        right = value.read([mark if i in kept else "0" for i, mark in enumerate(indices)])
        left = ", ".join((f"\x04{indices[i][1:-1]}\x04" if ends else indices[i]) for i in kept)
        if right.startswith("(") and is_atom(right) and re.match(r"\((sum|product|max|min|arg)", right):
            right = right[1:-1]
        self.statements.append(f"{name}[{left}] = {right}" if kept else f"{name} = {right}")

    # Names in place of marks.

    def with_sizes(self, text):
        return re.sub(r"\x02(\d+)\x02", lambda m: self.name_of(self.sizes[int(m.group(1))]), text)

    def name_of(self, size):
        size = self.found(size)
        if size.kind == "number":
            return str(size.pair[0])
        # What no statement and no shape needs has no name of its own.
        return size.name or (f"({self.with_sizes(size.text)})" if size.kind == "derived" else str(size.pair[0]))

    def with_names(self, text):
        """A statement as the problem's file has it."""
        def end(match):
            mark = f"\x03{match.group(1)}\x03"
            size = self.found(self.ends[mark])
            stands = re.search(r"(?<=[\[ ])" + mark + r"(?=[\],]| else)", text.split("=", 1)[1])
            same = all(self.found(one) is size for one in self.alone.get(mark, []))
            return mark if stands and same and mark in self.alone else f"{mark} < {size.mark()}"

        text = re.sub(r"\x04(\d+)\x04", end, text)
        letters = [c for c in "ijklmnopqrstuvwabcdefgh" if c not in self.taken]
        letters += [f"{c}{n}" for n in range(9) for c in "ijk" if f"{c}{n}" not in self.taken]
        names = {}
        for mark in re.findall(r"\x03\d+\x03", text):
            names.setdefault(mark, letters[len(names)])
        return self.with_sizes(re.sub(r"\x03\d+\x03", lambda m: names[m.group(0)], text))


REDUCTION = re.compile(r"\b(sum|product|max|min|argmax|argmin)\(")

# What no tensor and no axis may be called: the language's own words, and those of C++.
RESERVED = set(
    "exp expm1 log log1p sqrt sin cos tanh erf abs floor minimum maximum where sum product max min argmax argmin "
    "infinity and or not else f16 bf16 f8e4m3 f8e5m2 auto bool break case catch char class const continue default "
    "delete do double enum extern float for friend goto if inline int long namespace new operator private protected "
    "public register return short signed sizeof static struct switch template this throw true false try typedef "
    "typename union unsigned using virtual void volatile while half pow div round fmin fmax problem torch F lambda in "
    "is def None True False import from as assert async await del elif except finally global nonlocal pass raise with "
    "yield blockIdx threadIdx blockDim gridDim "
    "Best Scanned added alignas alignof and_eq as_bf16 as_f16 as_f8e4m3 as_f8e5m2 asm bitand bitor clock column_of "
    "compl consteval constexpr cube dim3 end_item explicit export fabs first_item floor_divide floor_modulo "
    "from_real gemm half2 index_t lane larger larger_of larger_place later_larger later_smaller matrix multiplied "
    "multiply_tiles mutable noexcept over_lanes real requires row_of scan smaller smaller_of smaller_place square "
    "thread_local to_real truth typeid uchar uint ulong ushort warpSize xor".split())
