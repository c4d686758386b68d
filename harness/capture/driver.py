"""Runs a stranger's program, so that the recorder in this process sees what its function launches.

Standard input holds one JSON object:
  {"program": path, "function": name or null, "problem": id, "device": 0, "samples": n,
   "tensors": [{"name", "dtype", "shape", "role", "distribution": {"kind", "a", "b", "choices"}}, ...],
   "answer": path}
The function is warmed up, called twice with different inputs between notes to the recorder, and then
timed. The answer is one JSON object in a file: {"error": "one line"}, or {"entry": what was called,
"torch": version, "call_ns": [...], "device_ns": [...]}. The program shares this process: what stands in the
answer and in the recorder's log is its word, and is checked by whoever reads it.
"""

import ctypes
import importlib.util
import inspect
import json
import os
import re
import sys

TURN = 4  # the descriptor on which the GPU is asked for
WARM_UP_CALLS = 3
MOST_ATTEMPTS = 3  # to keep outputs apart from what was in their memory before
LONGEST_LINE = 400
SMALLEST_ALONE = 10 << 20  # bytes, from which on it gives a tensor memory of its own
SHORT_HEAD = 80  # of a line that is too long


DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "u8": "uint8", "i32": "int32",
          "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "i8": "int8", "i64": "int64", "bool": "bool"}


COMPILES = re.compile(r"(?<!\bre)\.compile\b")


class Refusal(Exception):
    """Why a program cannot be captured, in one line."""


# What compilers and linkers write before the reason, and what they write of a command that failed.
REASON = re.compile(r"\b(fatal error|fatal|error)\s*:|undefined reference|cannot find -l")


def one_line(error):
    """The error in a line. Where it is a compiler's log, its head and the line with the reason."""
    text = f"{type(error).__name__}: {error}"
    line = " ".join(text.split())
    if len(line) <= LONGEST_LINE:
        return line
    reasons = [" ".join(part.split()) for part in text.splitlines()[1:] if REASON.search(part)]
    ending = reasons[0] if reasons else line[-LONGEST_LINE // 2:]
    ending = ending[-(LONGEST_LINE - SHORT_HEAD):]
    return f"{line[:SHORT_HEAD]} … {ending}"


def shape_text(tensor):
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def load_program(path):
    """The program as a module: it runs here, and may do anything that the sandbox lets it."""
    sys.path.insert(0, os.path.dirname(path))
    specification = importlib.util.spec_from_file_location("captured_program", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["captured_program"] = module
    try:
        specification.loader.exec_module(module)
    except SystemExit as error:
        raise Refusal(f"the program ended itself while it was loaded (status {error.code})") from None
    except BaseException as error:
        raise Refusal(f"the program cannot be loaded: {one_line(error)}") from None
    return module


class Inputs:
    """The problem's inputs as tensors, and new values for them."""

    def __init__(self, torch, tensors):
        self.torch = torch
        self.descriptions = {t["name"]: t for t in tensors if t["role"] == "input"}
        self.outputs = [t for t in tensors if t["role"] == "output"]
        # An old PyTorch has not all of them.
        self.dtypes = {ours: getattr(torch, name, None) for ours, name in DTYPES.items()}

    def fits(self, tensor, description):
        return (isinstance(tensor, self.torch.Tensor)
                and list(tensor.shape) == description["shape"]
                and tensor.dtype == self.dtypes[description["dtype"]])

    def draw(self, tensor, name):
        distribution = self.descriptions[name]["distribution"]
        kind, a, b = distribution["kind"], distribution["a"], distribution["b"]
        torch = self.torch
        with torch.no_grad():
            if kind == "constant":
                tensor.fill_(a)
            elif kind == "integers":
                tensor.copy_(torch.randint(int(a), int(b), tensor.shape, device="cuda"))
            elif kind == "choice":
                choices = torch.tensor(distribution["choices"], device="cuda")
                tensor.copy_(choices[torch.randint(len(choices), tensor.shape, device="cuda")])
            else:
                # Not every type can be drawn itself.
                drawn = tensor if tensor.element_size() > 1 else torch.empty(tensor.shape, device="cuda")
                drawn.normal_(a, b) if kind == "normal" else drawn.uniform_(a, b)
                if drawn is not tensor:
                    tensor.copy_(drawn)

    def fresh(self):
        values = {}
        for name, description in self.descriptions.items():
            values[name] = self.torch.empty(description["shape"], device="cuda",
                                            dtype=self.dtypes[description["dtype"]])
            self.draw(values[name], name)
        return values

    def empty_outputs(self):
        return tuple(self.torch.empty(t["shape"], dtype=self.dtypes[t["dtype"]], device="cuda")
                     for t in self.outputs)

    def known(self):
        return ", ".join(f"{n} {d['dtype']}{d['shape']}" for n, d in self.descriptions.items())


def by_name(own_name, candidates):
    """Those of the candidates that a tensor's own name means: `bn.weight` is bn_weight, or else weight."""
    whole, last = own_name.replace(".", "_").lower(), own_name.split(".")[-1].lower()
    return [n for n in candidates if n.lower() == whole] or [n for n in candidates if n.lower() == last]


def assign_names(inputs, given, state=()):
    """Names of the problem's inputs for tensors with names of their own, [(name, tensor)]: by shape, and by name
    where several have one shape. What does not decide is an error. State may be an input that nothing else is, or
    the program's own (a running mean)."""
    names = {}
    for own_name, tensor in given:
        shaped = [n for n, d in inputs.descriptions.items() if inputs.fits(tensor, d)]
        if not shaped:
            raise Refusal(f"'{own_name}' is {shape_text(tensor)}, which is not one of the problem's inputs: "
                          f"{inputs.known()}")
        chosen = shaped if len(shaped) == 1 else by_name(own_name, shaped)
        if len(chosen) != 1:
            raise Refusal(f"'{own_name}' is {shape_text(tensor)} and could be {' or '.join(shaped)}: name it so")
        if chosen[0] in names.values():
            raise Refusal(f"two tensors of the program could be the problem's input '{chosen[0]}'")
        names[own_name] = chosen[0]
    for own_name, tensor in state:
        free = [n for n, d in inputs.descriptions.items() if inputs.fits(tensor, d) and n not in names.values()]
        chosen = free if len(free) == 1 else by_name(own_name, free)
        if len(chosen) == 1:
            names[own_name] = chosen[0]
    missing = sorted(set(inputs.descriptions) - set(names.values()))
    if missing:
        raise Refusal(f"the program has nothing for the problem's input {', '.join(missing)}")
    return names


def on_the_gpu(torch, make):
    """What a function makes, with its tensors on the GPU from the start where it lets that be chosen: KernelBench's
    inputs take the processor seconds to draw, and only their shapes and types count."""
    try:
        with torch.device("cuda"):
            return make()
    except Exception:  # it mixes them with tensors or generators of its own
        return make()


def is_constant(name, value):
    """Whether an argument of a model is the same in every call: a number or a word, which the problem has in its
    formula."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return True
    if isinstance(value, (list, tuple, dict)):
        raise Refusal(f"get_inputs() gives a {type(value).__name__} for '{name}'; expected tensors and numbers")
    return False


class KernelBenchModel:
    """KernelBench's format: Model or ModelNew, get_inputs, get_init_inputs. The model stays in the mode that the
    program makes it in, as KernelBench calls it: a batch norm takes the batch's statistics."""

    def __init__(self, module, class_name, inputs):
        for name in ("get_inputs", "get_init_inputs"):
            if not callable(getattr(module, name, None)):
                raise Refusal(f"{class_name} without {name}(); KernelBench's format has it")
        torch = inputs.torch
        self.inputs = inputs
        self.model = on_the_gpu(torch, lambda: getattr(module, class_name)(*module.get_init_inputs())).cuda()
        given = on_the_gpu(torch, module.get_inputs)
        arguments = [p for p in inspect.signature(self.model.forward).parameters][:len(given)]
        if len(arguments) != len(given):
            raise Refusal(f"forward() takes {len(arguments)} arguments, get_inputs() gives {len(given)}")
        parameters, buffers = list(self.model.named_parameters()), list(self.model.named_buffers())
        passed = [(a, v) for a, v in zip(arguments, given) if not is_constant(a, v)]
        names = assign_names(inputs, passed + parameters, buffers)
        # Drawn tensors may be gigabytes, and are not kept.
        self.arguments = [(names[a], None) if a in names else (None, v) for a, v in zip(arguments, given)]
        self.owned = {names[n]: t for n, t in parameters + buffers if n in names}

    def prepare(self, values):
        """Parameters keep their place and get new values; the rest is passed."""
        with self.inputs.torch.no_grad():
            for name, tensor in self.owned.items():
                tensor.copy_(values[name])
        return {**values, **self.owned}

    def call(self, values):
        return self.model(*[constant if name is None else values[name] for name, constant in self.arguments])


class GpuModeKernel:
    """GPU MODE's format: custom_kernel(data), where data is the inputs in the problem's order, with the outputs
    after them if the program unpacks more."""

    def __init__(self, module, inputs):
        self.kernel = module.custom_kernel
        self.outputs = None
        values = inputs.fresh()
        tensors = tuple(values.values())
        single = [lambda v, o: v[0]] if len(tensors) == 1 else []
        forms = single + [lambda v, o: v, lambda v, o: (*v, *o)]
        failure = None
        for self.form in forms:
            self.outputs = inputs.empty_outputs()
            try:
                self.call(values)
                return
            except (TypeError, ValueError, AttributeError) as error:
                failure = error
        raise Refusal(f"custom_kernel takes neither the inputs nor the inputs and the outputs: {one_line(failure)}")

    def prepare(self, values):
        return values

    def call(self, values):
        result = self.kernel(self.form(tuple(values.values()), self.outputs))
        return self.outputs if result is None else result


class PlainFunction:
    """A function whose parameters have the names of the problem's inputs."""

    def __init__(self, function):
        self.function = function

    def prepare(self, values):
        return values

    def call(self, values):
        return self.function(**values)


class OutputsInPlace:
    """An entry whose outputs lie as the problem has them: what has other strides is copied, as a part of the call. After
    `copy_all`, all are, into memory that is theirs before the call begins."""

    def __init__(self, torch, entry, inputs):
        self.torch, self.entry, self.inputs = torch, entry, inputs
        self.places = None
        self.copied = ""

    def copy_all(self):
        self.places = ()
        self.copied = ", with a copy of its outputs"

    def prepare(self, values):
        if self.places is not None:
            self.places = self.inputs.empty_outputs()
        return self.entry.prepare(values)

    def call(self, values):
        result = self.entry.call(values)
        several = isinstance(result, (tuple, list))
        if self.places is not None:
            outputs = result if several else (result,)
            copies = tuple(place.view(one.shape).copy_(one) for place, one in zip(self.places, outputs))
            return copies if several else copies[0]
        return tuple(self.ordered(one) for one in result) if several else self.ordered(result)

    def ordered(self, output):
        if not isinstance(output, self.torch.Tensor) or output.is_contiguous():
            return output
        self.copied = ", with a copy into row-major order"
        return output.contiguous()


def has_names(function, names):
    try:
        return set(inspect.signature(function).parameters) == set(names)
    except (TypeError, ValueError):
        return False


def find_entry(module, inputs, wanted):
    """What to call, and its name."""
    names = list(inputs.descriptions)
    functions = sorted(n for n, f in vars(module).items()
                       if not n.startswith("_") and callable(f) and not inspect.isclass(f)
                       and n not in ("custom_kernel", "ref_kernel") and has_names(f, names))
    # A program that has a new model has the old one for comparison.
    models = [n for n in ("ModelNew", "Model") if hasattr(module, n)][:1]
    found = models + [n for n in ("custom_kernel",) if hasattr(module, n)]
    found = found or functions
    if wanted:
        if not hasattr(module, wanted):
            raise Refusal(f"the program has no '{wanted}'")
        found = [wanted]
    if not found:
        raise Refusal("the program has no ModelNew or Model, no custom_kernel and no function of "
                      + ", ".join(names))
    if len(found) > 1:
        raise Refusal(f"the program has {' and '.join(found)}; choose with --function")
    name = found[0]
    if inspect.isclass(getattr(module, name)):
        return KernelBenchModel(module, name, inputs), name
    if name == "custom_kernel":
        return GpuModeKernel(module, inputs), name
    if not has_names(getattr(module, name), names):
        raise Refusal(f"'{name}' does not take exactly {', '.join(names)}")
    return PlainFunction(getattr(module, name)), name


def outputs_of(inputs, result):
    """The outputs by name; a function of several gives them as a tuple or list, in the problem's order."""
    several = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(several) != len(inputs.outputs):
        raise Refusal(f"the program gives {len(several)} outputs; expected {len(inputs.outputs)}")
    return {description["name"]: output for description, output in zip(inputs.outputs, several)}


def check_outputs(inputs, values, result):
    outputs = outputs_of(inputs, result)
    for description in inputs.outputs:
        output = outputs[description["name"]]
        which = "output" if len(outputs) == 1 else f"output '{description['name']}'"
        check_output(inputs, description, which, output)
        others = {f"input '{n}'": t for n, t in values.items()}
        others.update({f"output '{n}'": t for n, t in outputs.items() if t is not output})
        begin, end = extent(output)
        for name, tensor in others.items():
            first, last = extent(tensor)
            if begin < last and first < end:
                raise Refusal(f"the program's {which} lies in its {name}")


def check_output(inputs, description, which, output):
    if not isinstance(output, inputs.torch.Tensor):
        raise Refusal(f"the program gives a {type(output).__name__}; expected a tensor")
    if not output.is_cuda:
        raise Refusal(f"the program's {which} lies in host memory")
    same_shape = without_ones(output.shape) == without_ones(description["shape"])
    if not same_shape or output.dtype != inputs.dtypes[description["dtype"]]:
        raise Refusal(f"the program's {which} is {shape_text(output)}; expected "
                      f"{description['dtype']}{description['shape']}")


def without_ones(shape):
    """The shape without extents of one, which KernelBench's reductions keep."""
    return [extent for extent in shape if extent != 1]


def bytes_of(tensor):
    return tensor.numel() * tensor.element_size()


def extent(tensor):
    begin = tensor.data_ptr()
    return begin, begin + bytes_of(tensor)


class Recorder:
    def __init__(self):
        self.library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])

    def note(self, **content):
        self.library.rekernel_note(json.dumps(content).encode())

    def call(self, number, entry, inputs, values):
        self.note(call=number, tensors=self.places(values))
        self.library.rekernel_record(1)
        try:
            result = entry.call(values)
        finally:
            self.library.rekernel_record(0)
        self.note(call=number, outputs=self.places(outputs_of(inputs, result)))
        return result

    @staticmethod
    def places(tensors):
        return {n: [t.data_ptr(), bytes_of(t)] for n, t in tensors.items()}


class OutputMemory:
    """Keeps what is larger than an output out of its memory. PyTorch gives an output memory that an intermediate has
    left, and by addresses alone nobody can tell a kernel that writes the one from a kernel that writes the other: the
    plan would have the intermediate in the output, and reach past its end."""

    def __init__(self, torch, device, inputs):
        self.torch, self.device, self.inputs = torch, device, inputs
        self.kept = []

    def provide(self, call):
        """Calls until no output lies in what something larger has left, each time with more free blocks of just the
        outputs' sizes, which the allocator prefers; whether that helped. Blocks of up to 512 bytes are alike."""
        for attempt in range(1, MOST_ATTEMPTS + 1):
            if not self.watch(call)[1]:
                return True
            try:
                spares = [(self.inputs.empty_outputs(), self.separators()) for _ in range(3 * attempt)]
            except self.torch.cuda.OutOfMemoryError:
                return False
            self.kept += [between for _, between in spares]
            del spares
        return not self.watch(call)[1]

    def separators(self):
        """What stays between two free blocks, so that they do not become one: large blocks are never neighbours."""
        return [output for output in self.inputs.empty_outputs() if bytes_of(output) < SMALLEST_ALONE]

    def watch(self, call):
        """Calls, and returns the result, and whether an output lies in memory that something larger had before."""
        try:
            memory = self.torch.cuda.memory
            memory._record_memory_history("all", context=None)
        except (AttributeError, TypeError):  # this PyTorch does not tell
            return call(), False
        try:
            result = call()
            trace = memory._snapshot()["device_traces"][self.device]
        finally:
            memory._record_memory_history(None)
        blocks = [(entry["addr"], entry["addr"] + entry["size"]) for entry in trace if entry["action"] == "alloc"]
        outputs = outputs_of(self.inputs, result).values()
        return result, any(lies_in_larger(extent(output), blocks) for output in outputs)


def lies_in_larger(place, blocks):
    """Whether one of the blocks, of the sizes that were asked for and in the order in which they were given out, has
    memory in common with an output and more than that. The last one that has is the output's own."""
    begin, end = place
    common = [(first, last) for first, last in blocks if first < end and begin < last]
    return any(first < begin or end < last for first, last in common[:-1])


class Timer:
    """Times of a call between two events, after a write of more than the L2 cache holds: as it is, and with the
    device kept busy until the call is issued, so that nothing of the host's time is in it."""

    def __init__(self, torch, device):
        self.torch = torch
        cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self.flush = torch.empty(2 * cache_bytes + (1 << 20), dtype=torch.uint8, device="cuda")
        self.start = torch.cuda.Event(enable_timing=True)
        self.stop = torch.cuda.Event(enable_timing=True)

    def sample(self, entry, inputs, values, busy):
        for name, tensor in values.items():
            inputs.draw(tensor, name)
        if busy:
            self.torch.cuda._sleep(20_000_000)  # clock cycles: some ten milliseconds
        self.flush.fill_(1)
        self.start.record()
        output = entry.call(values)
        self.stop.record()
        self.stop.synchronize()
        del output
        return max(1, round(self.start.elapsed_time(self.stop) * 1e6))


def import_compiler(path):
    """What torch.compile needs takes seconds to import: before the GPU is asked for, where the program speaks of it."""
    with open(path, encoding="utf-8", errors="replace") as file:
        if not COMPILES.search(file.read()):
            return
    try:
        import torch._dynamo  # noqa: F401
        import torch._inductor.compile_fx  # noqa: F401
    except ImportError:  # an old PyTorch has none
        pass


def take_turn():
    """Asks for the GPU, and waits until nobody else measures there. It is this process's to its end."""
    os.write(TURN, b"?")
    granted = os.read(TURN, 1)
    os.close(TURN)
    if not granted:
        raise Refusal("others had the GPU all the time")


def work(request):
    try:
        import torch
    except ImportError as error:
        raise Refusal(f"PyTorch is not installed ({one_line(error)})") from None
    if not torch.cuda.is_available():
        raise Refusal("PyTorch sees no GPU")
    import_compiler(request["program"])
    take_turn()
    torch.cuda.set_device(request["device"])
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    inputs = Inputs(torch, request["tensors"])
    module = load_program(request["program"])
    torch.set_grad_enabled(False)
    entry, name = find_entry(module, inputs, request["function"])
    entry = OutputsInPlace(torch, entry, inputs)
    sets = [inputs.fresh(), inputs.fresh()]
    for _ in range(WARM_UP_CALLS):
        for values in sets:
            prepared = entry.prepare(values)
            check_outputs(inputs, prepared, entry.call(prepared))
    torch.cuda.synchronize()
    memory = OutputMemory(torch, request["device"], inputs)
    if not memory.provide(lambda: entry.call(prepared)):
        entry.copy_all()
    recorder = Recorder()
    for number, values in enumerate(sets, 1):
        prepared = entry.prepare(values)
        torch.cuda.synchronize()
        output, shared = memory.watch(lambda: recorder.call(number, entry, inputs, prepared))
        torch.cuda.synchronize()
        check_outputs(inputs, prepared, output)
        if shared:
            raise Refusal("the program's output lies where something larger lay before, in the same call: their kernels "
                          "cannot be told apart")
        del output
    timer = Timer(torch, request["device"])
    times = {}
    prepared = entry.prepare(sets[0])
    for kind, busy in (("call_ns", False), ("device_ns", True)):
        times[kind] = [timer.sample(entry, inputs, prepared, busy) for _ in range(request["samples"])]
    return {"entry": name + entry.copied, "torch": torch.__version__, **times}


def main():
    request = json.load(sys.stdin)
    os.close(3)  # what the program starts must not hold that pipe open: whoever waits, waits for this process
    try:
        answer = work(request)
    except Refusal as error:
        answer = {"error": str(error)}
    except SystemExit as error:
        answer = {"error": f"the program ended itself (status {error.code})"}
    except BaseException as error:
        answer = {"error": f"the program fails: {one_line(error)}"}
    with open(request["answer"], "w") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    os._exit(0)  # threads and workers of the program need not end by themselves


if __name__ == "__main__":
    main()
