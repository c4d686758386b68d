"""How the driver of `rekernel capture` finds what to call in a program, without PyTorch and without a GPU."""

import contextlib
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "harness" / "capture"))
sys.dont_write_bytecode = True
import driver  # noqa: E402


class Tensor:
    is_cuda = True

    def __init__(self, shape, dtype="float32", address=4096, contiguous=True):
        self.shape, self.dtype, self.address, self.in_order = shape, dtype, address, contiguous

    def data_ptr(self):
        return self.address

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def element_size(self):
        return 4

    def is_contiguous(self):
        return self.in_order

    def contiguous(self):
        return Tensor(self.shape, self.dtype, self.address + (1 << 20))


def fake_torch():
    torch = types.SimpleNamespace(Tensor=Tensor)
    for name in ("float16", "bfloat16", "float32", "float64", "uint8", "int32", "int64"):
        setattr(torch, name, name)
    return torch


def inputs_of(*shapes, outputs=(("y", "f32"),)):
    normal = {"kind": "normal", "a": 0, "b": 1}
    tensors = [{"name": name, "dtype": "f32", "shape": shape, "role": "input", "distribution": normal}
               for name, shape in shapes]
    tensors += [{"name": name, "dtype": dtype, "shape": [4, 8], "role": "output", "distribution": normal}
                for name, dtype in outputs]
    return driver.Inputs(fake_torch(), tensors)


LAYERNORM = inputs_of(("x", [4, 8]), ("weight", [8]), ("bias", [8]))
SORT = inputs_of(("x", [4, 8]), outputs=(("values", "f32"), ("index", "i64")))


class Errors(unittest.TestCase):
    COMMAND = "[1/2] /usr/local/cuda/bin/nvcc " + "-I/usr/lib/python3/dist-packages/torch/include " * 20 + "-c cuda.cu\n"

    def test_a_short_one_stays(self):
        self.assertEqual(driver.one_line(RuntimeError("two\nlines")), "RuntimeError: two lines")

    def test_of_a_build_the_line_with_the_error_is_shown(self):
        for reason in ("nvcc fatal   : Unsupported gpu architecture 'sm_70'",
                       'cuda.cu(12): error: identifier "blockIdy" is undefined',
                       "main.cpp:1:10: fatal error: nowhere.h: No such file or directory",
                       "/usr/bin/ld: main.o: undefined reference to `launch(int)'"):
            log = ("Error building extension 'own': " + self.COMMAND + "FAILED: cuda.o \n" + self.COMMAND + reason
                   + "\nninja: build stopped: subcommand failed.\n" + "later " * 200)
            line = driver.one_line(RuntimeError(log))
            self.assertTrue(line.startswith("RuntimeError: Error building extension 'own': [1/2]"), line)
            self.assertTrue(line.endswith(" … " + " ".join(reason.split())), line)
            self.assertLessEqual(len(line), 410)

    def test_of_another_long_one_both_ends_are_shown(self):
        line = driver.one_line(ValueError("begins " + "x" * 1000 + " the reason"))
        self.assertTrue(line.startswith("ValueError: begins xxx"), line)
        self.assertTrue(line.endswith("xxx the reason"), line)
        self.assertLessEqual(len(line), 410)


class Names(unittest.TestCase):
    def refusal(self, inputs, given):
        with self.assertRaises(driver.Refusal) as caught:
            driver.assign_names(inputs, given)
        return str(caught.exception)

    def test_shapes_decide(self):
        inputs = inputs_of(("input", [4, 8]), ("weight", [3, 3]), ("bias", [3]))
        given = [("x", Tensor([4, 8])), ("conv.weight", Tensor([3, 3])), ("conv.bias", Tensor([3]))]
        self.assertEqual(driver.assign_names(inputs, given),
                         {"x": "input", "conv.weight": "weight", "conv.bias": "bias"})

    def test_names_decide_where_shapes_do_not(self):
        given = [("ln.bias", Tensor([8])), ("values", Tensor([4, 8])), ("ln.weight", Tensor([8]))]
        self.assertEqual(driver.assign_names(LAYERNORM, given)["ln.bias"], "bias")
        norm = inputs_of(("x", [4, 8]), ("bn_weight", [8]), ("bn_bias", [8]), ("weight", [8]))
        given = [("x", Tensor([4, 8])), ("bn.weight", Tensor([8])), ("bn.bias", Tensor([8])), ("weight", Tensor([8]))]
        self.assertEqual(driver.assign_names(norm, given),
                         {"x": "x", "bn.weight": "bn_weight", "bn.bias": "bn_bias", "weight": "weight"})
        matmul = inputs_of(("a", [2, 2]), ("b", [2, 2]))
        given = [("B", Tensor([2, 2])), ("A", Tensor([2, 2]))]
        self.assertEqual(driver.assign_names(matmul, given), {"B": "b", "A": "a"})

    def test_state_is_an_input_only_where_nothing_else_is(self):
        given = [("x", Tensor([4, 8])), ("bn.weight", Tensor([8])), ("bn.bias", Tensor([8]))]
        state = [("bn.running_mean", Tensor([8])), ("bn.count", Tensor([], "int64"))]
        self.assertNotIn("bn.running_mean", driver.assign_names(LAYERNORM, given, state))
        masked = inputs_of(("x", [4, 8]), ("mask", [8, 8]))
        self.assertEqual(driver.assign_names(masked, given[:1], [("tril", Tensor([8, 8]))]),
                         {"x": "x", "tril": "mask"})

    def test_what_nothing_decides_is_an_error(self):
        self.assertIn("could be weight or bias: name it so",
                      self.refusal(LAYERNORM, [("gain", Tensor([8]))]))
        self.assertIn("not one of the problem's inputs: x f32[4, 8]",
                      self.refusal(LAYERNORM, [("x", Tensor([4, 9]))]))
        self.assertIn("not one of the problem's inputs",
                      self.refusal(LAYERNORM, [("x", Tensor([4, 8], "float16"))]))
        self.assertIn("two tensors", self.refusal(LAYERNORM, [("x", Tensor([4, 8])), ("z", Tensor([4, 8]))]))
        self.assertIn("nothing for the problem's input bias, weight",
                      self.refusal(LAYERNORM, [("x", Tensor([4, 8]))]))


class Entry(unittest.TestCase):
    def find(self, wanted=None, **members):
        module = types.SimpleNamespace(**members)
        return driver.find_entry(module, inputs_of(("x", [4, 8])), wanted)

    def refusal(self, **members):
        with self.assertRaises(driver.Refusal) as caught:
            self.find(**members)
        return str(caught.exception)

    def test_a_function_of_the_inputs_by_name(self):
        entry, name = self.find(helper=lambda a, b: a, softmax=lambda x: x + 1)
        self.assertEqual(name, "softmax")
        self.assertEqual(entry.call({"x": 1}), 2)

    def test_a_choice_among_several(self):
        functions = {"fast": lambda x: "fast", "slow": lambda x: "slow"}
        self.assertEqual(self.refusal(**functions), "the program has fast and slow; choose with --function")
        self.assertEqual(self.find("slow", **functions)[0].call({"x": 1}), "slow")

    def test_what_is_not_there(self):
        self.assertIn("no ModelNew or Model", self.refusal(helper=lambda a: a))
        self.assertEqual(self.refusal(wanted="quick", f=lambda x: x), "the program has no 'quick'")
        self.assertIn("does not take exactly x", self.refusal(wanted="f", f=lambda z: z))
        self.assertIn("without get_inputs()", self.refusal(ModelNew=type("ModelNew", (), {})))


class Model(unittest.TestCase):
    def test_numbers_among_the_inputs_are_passed_as_they_are(self):
        class Scaled:
            def __init__(self, factor):
                self.factor = factor

            def cuda(self):
                return self

            def named_parameters(self):
                return []

            named_buffers = named_parameters

            def forward(self, x, s):
                return (x, s * self.factor)

            __call__ = forward

        inputs = inputs_of(("x", [4, 8]))
        inputs.torch.device = lambda name: contextlib.nullcontext()
        x = Tensor([4, 8])
        module = types.SimpleNamespace(Model=Scaled, get_init_inputs=lambda: [2], get_inputs=lambda: [x, 3.5])
        model = driver.KernelBenchModel(module, "Model", inputs)
        self.assertEqual(model.call({"x": "drawn"}), ("drawn", 7.0))
        self.assertNotIn(x, [value for _, value in model.arguments])
        module.get_inputs = lambda: [x, [1.0]]
        with self.assertRaises(driver.Refusal) as caught:
            driver.KernelBenchModel(module, "Model", inputs)
        self.assertIn("gives a list for 's'", str(caught.exception))


class Output(unittest.TestCase):
    def refusal(self, result, inputs=LAYERNORM):
        with self.assertRaises(driver.Refusal) as caught:
            driver.check_outputs(inputs, {"x": Tensor([4, 8], address=4096)}, result)
        return str(caught.exception)

    def test_a_whole_tensor_of_its_own_is_expected(self):
        for result in (Tensor([4, 8], address=8192), [Tensor([4, 8], address=8192)]):
            driver.check_outputs(LAYERNORM, {"x": Tensor([4, 8], address=4096)}, result)
        driver.check_outputs(LAYERNORM, {"x": Tensor([4, 8], address=4096)}, Tensor([4, 1, 8], address=8192))
        self.assertIn("gives a NoneType", self.refusal(None))
        self.assertIn("expected f32[4, 8]", self.refusal(Tensor([8, 4])))
        self.assertIn("lies in its input 'x'", self.refusal(Tensor([4, 8], address=4160)))

    def test_several_come_in_the_problems_order(self):
        values, index = Tensor([4, 8], address=8192), Tensor([4, 8], dtype="int64", address=16384)
        driver.check_outputs(SORT, {"x": Tensor([4, 8], address=4096)}, (values, index))
        self.assertEqual(driver.outputs_of(SORT, [values, index]), {"values": values, "index": index})
        self.assertIn("gives 1 outputs; expected 2", self.refusal(values, SORT))
        self.assertIn("output 'values' is int64", self.refusal((index, values), SORT))
        inside = Tensor([4, 8], dtype="int64", address=8192 + 64)
        self.assertIn("output 'values' lies in its output 'index'", self.refusal((values, inside), SORT))


class Order(unittest.TestCase):
    def entry(self, result):
        entry = types.SimpleNamespace(prepare=lambda values: {**values, "p": 1}, call=lambda values: result)
        return driver.OutputsInPlace(fake_torch(), entry, LAYERNORM)

    def test_what_has_other_strides_is_copied(self):
        plain, strided = Tensor([4, 8], address=8192), Tensor([4, 8], address=16384, contiguous=False)
        for result in (plain, None, [plain, 3.0]):
            entry = self.entry(result)
            self.assertEqual(entry.prepare({}), {"p": 1})
            got = entry.call({})
            self.assertEqual(got if not isinstance(result, list) else list(got), result)
            self.assertFalse(entry.copied)
        for result in (strided, (plain, strided)):
            entry = self.entry(result)
            several = entry.call({})
            copy = several[1] if isinstance(result, tuple) else several
            self.assertTrue(entry.copied)
            self.assertTrue(copy.is_contiguous())
            self.assertNotEqual(copy.address, strided.address)

    def test_all_are_copied_where_they_cannot_be_kept_apart(self):
        place = Tensor([4, 8], address=1 << 20)
        place.view = lambda shape: place
        place.copy_ = lambda output: setattr(place, "copied_from", output) or place
        inputs = inputs_of(("x", [4, 8]))
        inputs.empty_outputs = lambda: (place,)
        plain = Tensor([4, 8], address=8192)
        for result in (plain, (plain,)):
            entry = driver.OutputsInPlace(fake_torch(), self.entry(result).entry, inputs)
            entry.copy_all()
            self.assertEqual(entry.prepare({}), {"p": 1})
            got = entry.call({})
            self.assertIs(got[0] if isinstance(result, tuple) else got, place)
            self.assertIs(place.copied_from, plain)
            self.assertIn("a copy of its outputs", entry.copied)

    def test_a_copy_of_an_input_is_an_output_of_its_own(self):
        turned = Tensor([4, 8], address=4096, contiguous=False)
        driver.check_outputs(LAYERNORM, {"x": Tensor([4, 8], address=4096)}, self.entry(turned).call({}))


class Memory(unittest.TestCase):
    """An allocator that gives the block that was left last, as PyTorch's does where none fits better."""

    OUTPUT_BYTES = 4 * 8 * 4

    def place(self, *blocks):
        return driver.lies_in_larger((1024, 1024 + self.OUTPUT_BYTES), blocks)

    def test_what_had_the_outputs_memory_before_may_not_be_larger(self):
        own = (1024, 1024 + self.OUTPUT_BYTES)
        self.assertFalse(self.place(own))
        self.assertFalse(self.place(own, own), "as large as the output")
        self.assertFalse(self.place((4096, 8192), own), "elsewhere")
        self.assertTrue(self.place((1024, 1536), own), "all of the block that the allocator rounds it to")
        self.assertTrue(self.place((1024, 2048), own))
        self.assertTrue(self.place((512, 1536), own))
        self.assertFalse(self.place((1024, 4096)), "its own, of which it is the beginning")
        self.assertFalse(self.place(), "allocated before the call")

    def memory(self, places):
        """Each call's intermediate of 4 KiB lies at the place, and the output at the first one."""
        traces = iter(places)
        torch = fake_torch()
        recorded = []

        def call():
            place = next(traces)
            recorded.append({"action": "alloc", "addr": place, "size": 4096})
            recorded.append({"action": "free_completed", "addr": place, "size": 4096})
            recorded.append({"action": "alloc", "addr": 8192, "size": 512})
            return Tensor([4, 8], address=8192)

        def record(enabled, context=None):
            recorded.clear()

        torch.cuda = types.SimpleNamespace(OutOfMemoryError=MemoryError, memory=types.SimpleNamespace(
            _record_memory_history=record, _snapshot=lambda: {"device_traces": [list(recorded)]}))
        inputs = driver.Inputs(torch, [{"name": "y", "dtype": "f32", "shape": [4, 8], "role": "output"}])
        made = []
        inputs.empty_outputs = lambda: made.append(1) or (Tensor([4, 8]),)
        return driver.OutputMemory(torch, 0, inputs), call, made

    def test_free_blocks_are_provided_until_they_suffice(self):
        memory, call, made = self.memory([16384, 16384])
        self.assertTrue(memory.provide(call))
        self.assertEqual(made, [], "nothing was shared")
        memory, call, made = self.memory([8192, 8192, 16384, 16384])
        self.assertTrue(memory.provide(call))
        self.assertEqual(len(made), 2 * 3 + 2 * 6, "two attempts, each block with another one that stays")
        self.assertEqual(len(memory.kept), 3 + 6)
        self.assertFalse(memory.watch(call)[1])

    def test_it_ends_where_nothing_helps(self):
        memory, call, _ = self.memory([8192] * 10)
        self.assertFalse(memory.provide(call))
        self.assertTrue(memory.watch(call)[1])

    def test_an_old_pytorch_does_not_tell(self):
        memory, call, _ = self.memory([8192])
        del memory.torch.cuda.memory._record_memory_history
        result, shared = memory.watch(call)
        self.assertEqual((result.address, shared), (8192, False))


class Programs(unittest.TestCase):
    def test_torch_compile_is_seen(self):
        for text in ("torch.compile(f)", "@torch.compile\ndef f(x):", "self.compile()"):
            self.assertTrue(driver.COMPILES.search(text), text)
        for text in ("re.compile('x')", "load_inline(name='compile')", "compiled(x)"):
            self.assertFalse(driver.COMPILES.search(text), text)

    def test_one_that_cannot_be_loaded_is_named(self):
        with self.assertRaises(driver.Refusal) as caught:
            driver.load_program("/nowhere/program.py")
        self.assertIn("cannot be loaded: FileNotFoundError", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
