"""One kernel: its code, its launch plan (kernel.json) and the sizes that it was made for. Needs no PyTorch."""

import ctypes
import json
import math
import threading
from pathlib import Path

from . import _driver
from ._driver import LaunchAttribute, LaunchConfig

FOLDER = Path(__file__).parent
ALIGNMENT = 256  # of all memory from the driver
SCALARS = {"i32": ctypes.c_int32, "u32": ctypes.c_uint32, "i64": ctypes.c_int64, "u64": ctypes.c_uint64,
           "f32": ctypes.c_float, "f64": ctypes.c_double}
# CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion, by their names in a plan.
MAP_TYPES = {"u8": 0, "i32": 3, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}
MAP_SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
MAP_PROMOTIONS = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
MAP_FILLS = {"zeros": 0, "nan": 1}
MOST_REMEMBERED = 64  # tensor maps a device and argument


def extents(values):
    return (*values, 1, 1)[:3]


class Launch:
    """A kernel of the plan on one device."""

    def __init__(self, driver, device, module, step, first):
        self.driver, self.step = driver, step
        name = step["kernel"]
        self.function = ctypes.c_void_p()
        driver.cuModuleGetFunction(ctypes.byref(self.function), module, name.encode())
        block, cluster = extents(step["block"]), extents(step.get("cluster", (1,)))
        dynamic = step.get("dynamic_shared_bytes", 0)
        needed = dynamic + driver.function_attribute(self.function, _driver.STATIC_SHARED_BYTES)
        available = driver.device_attribute(device, _driver.SHARED_BYTES_PER_BLOCK)
        if needed > available:
            raise RuntimeError(f"{name} needs {needed} bytes of shared memory a block; this GPU has {available}")
        driver.cuFuncSetAttribute(self.function, _driver.DYNAMIC_SHARED_BYTES, dynamic)
        if math.prod(cluster) > 8:  # what every GPU with clusters grants
            driver.cuFuncSetAttribute(self.function, _driver.LARGE_CLUSTERS, 1)
        grid = self.grid(device, block, cluster, dynamic)
        attributes = []
        if math.prod(cluster) > 1:
            attributes.append((_driver.CLUSTER, cluster))
        if step.get("cooperative"):
            attributes.append((_driver.COOPERATIVE, (1,)))
        # What runs before the plan is somebody else's, and nothing may overlap with it.
        if step.get("programmatic_launch") and not first:
            attributes.append((_driver.PROGRAMMATIC, (1,)))
        if "shared_memory_carveout" in step:
            attributes.append((_driver.SHARED_MEMORY_CARVEOUT, (step["shared_memory_carveout"],)))
        self.attributes = (LaunchAttribute * 4)()
        for attribute, (number, value) in zip(self.attributes, attributes, strict=False):
            attribute.id = number
            attribute.value[:len(value)] = value
        self.config = (grid, block, dynamic, len(attributes))
        self.remembered = {}

    def grid(self, device, block, cluster, dynamic):
        driver, step = self.driver, self.step
        first, *others = step["grid"]
        multiprocessors = driver.device_attribute(device, _driver.MULTIPROCESSORS)
        per_sm = isinstance(first, dict)
        grid = list(extents((first["per_sm"] if per_sm else first, *others)))
        if step.get("cooperative"):  # all of it must be resident at once
            fitting = ctypes.c_int()
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(fitting), self.function,
                                                               math.prod(block), dynamic)
            if per_sm:
                grid[0] = max(1, min(grid[0], fitting.value // (grid[1] * grid[2])))
            blocks = math.prod(grid) * (multiprocessors if per_sm else 1)
            if blocks > fitting.value * multiprocessors:
                raise RuntimeError(f"{step['kernel']} needs {blocks} resident blocks; "
                                   f"this GPU holds {fitting.value * multiprocessors}")
        if per_sm:
            grid[0] *= multiprocessors
            if grid[0] >= cluster[0]:
                grid[0] -= grid[0] % cluster[0]
        return grid

    def argument(self, number, argument, addresses):
        if isinstance(argument, str):
            return ctypes.c_uint64(addresses[argument])
        if "tensor_map" not in argument:
            (kind, value), = argument.items()
            return SCALARS[kind](value)
        plan = argument["tensor_map"]
        address = addresses[plan["of"]] + plan.get("offset_bytes", 0)
        remembered = self.remembered.setdefault(number, {})
        encoded = remembered.get(address)
        if encoded is None:
            if len(remembered) >= MOST_REMEMBERED:
                remembered.clear()
            remembered[address] = encoded = self.tensor_map(plan, address)
        return encoded

    def tensor_map(self, plan, address):
        rank = len(plan["dims"])
        encoded = _driver.aligned_tensor_map()
        self.driver.cuTensorMapEncodeTiled(
            ctypes.addressof(encoded), MAP_TYPES[plan["dtype"]], rank, address,
            (ctypes.c_uint64 * rank)(*plan["dims"]), (ctypes.c_uint64 * rank)(*plan["strides_bytes"]),
            (ctypes.c_uint32 * rank)(*plan["box"]),
            (ctypes.c_uint32 * rank)(*plan.get("element_strides", [1] * rank)), 0,
            MAP_SWIZZLES[plan.get("swizzle", "none")], MAP_PROMOTIONS[plan.get("l2_promotion", "none")],
            MAP_FILLS[plan.get("fill", "zeros")])
        return encoded

    def enqueue(self, stream, addresses):
        grid, block, dynamic, count = self.config
        arguments = [self.argument(i, argument, addresses) for i, argument in enumerate(self.step["args"])]
        pointers = (ctypes.c_void_p * (len(arguments) + 1))(*map(ctypes.addressof, arguments))
        config = LaunchConfig((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), dynamic, stream,
                              self.attributes, count)
        self.driver.cuLaunchKernelEx(ctypes.byref(config), self.function, pointers, None)


class Memset:
    """Sets every byte of a workspace, or of a part of it."""

    def __init__(self, driver, step, workspace_bytes):
        self.driver, self.step = driver, step
        self.offset = step.get("offset_bytes", 0)
        self.size = step.get("bytes", workspace_bytes - self.offset)

    def enqueue(self, stream, addresses):
        self.driver.cuMemsetD8Async(addresses[self.step["memset"]] + self.offset, self.step["value"], self.size,
                                    stream)


class Kernel:
    """Everything about the kernel. Its code is loaded on a device when it first runs there."""

    def __init__(self):
        sizes = json.loads((FOLDER / "sizes.json").read_text(encoding="utf-8"))
        self.plan = json.loads((FOLDER / "kernel.json").read_text(encoding="utf-8"))
        self.name, self.inputs, self.outputs = sizes["name"], sizes["inputs"], sizes["outputs"]
        self.code, self.workspaces, self.workspace_bytes = (sizes["code"], sizes["workspaces"],
                                                           sizes["workspace_bytes"])
        self.capability, self.family_specific = tuple(sizes["capability"]), sizes["family_specific"]
        for tensor in (*self.inputs, *self.outputs):
            tensor["stride"] = tuple(math.prod(tensor["shape"][i + 1:]) for i in range(len(tensor["shape"])))
            tensor["shape"] = tuple(tensor["shape"])
        self.tensors = [tensor["name"] for tensor in (*self.inputs, *self.outputs)]
        self.loading = threading.Lock()
        self.steps = {}  # by device
        self.driver = None

    def check(self, expected, shape, dtype, stride, device_type):
        """Raises unless an input is as the kernel was made for."""
        where = f"{self.name}: {expected['name']}"
        if device_type != "cuda":
            raise ValueError(f"{where} is on {device_type}; expected a tensor on a CUDA device")
        if dtype != expected["dtype"]:
            raise ValueError(f"{where} is {dtype}; this kernel was made for {expected['dtype']}")
        if shape != expected["shape"]:
            raise ValueError(f"{where} is {shape}; this kernel was made for {expected['shape']}")
        # Of a dimension of one element, the stride says nothing.
        axes = zip(stride, expected["stride"], shape, strict=True)
        if any(given != wanted for given, wanted, extent in axes if extent > 1):
            raise ValueError(f"{where} has strides {tuple(stride)}; expected {expected['stride']}: "
                             "make it contiguous()")

    def image(self, driver, device):
        """Machine code that the device runs."""
        major, minor = (driver.device_attribute(device, which) for which in (_driver.MAJOR, _driver.MINOR))
        given = (major, minor)
        if given != self.capability if self.family_specific else given < self.capability:
            raise RuntimeError(f"{self.name}: needs a GPU of compute capability "
                               f"{self.capability[0]}.{self.capability[1]}"
                               f"{'' if self.family_specific else ' or newer'}; this one has {major}.{minor}")
        if "options" in self.code:
            return _driver.compiled((FOLDER / "kernel.cu").read_bytes(), (FOLDER / "problem.h").read_bytes(),
                                    self.code["options"], major, minor)
        best = None
        for target in self.code["targets"]:  # the oldest first
            own = tuple(target["capability"])
            # Machine code runs on later minor versions of its major one too; the nearest is the best.
            if own == given or (own[0] == major and own < given and not target["family_specific"]):
                best = target
        if best is None:
            names = ", ".join(target["name"] for target in self.code["targets"])
            raise RuntimeError(f"{self.name}: holds machine code for {names}, none of which a GPU of compute "
                               f"capability {major}.{minor} runs; export it with --code nvrtc")
        return (FOLDER / f"{best['name']}.cubin").read_bytes()

    def load(self, device):
        """The plan's steps on a device, whose context is current."""
        with self.loading:
            if device in self.steps:
                return self.steps[device]
            driver = self.driver = self.driver or _driver.Driver()
            number = ctypes.c_int()
            driver.cuDeviceGet(ctypes.byref(number), device)
            module = ctypes.c_void_p()
            driver.cuModuleLoadData(ctypes.byref(module), self.image(driver, number.value))
            sizes = {name: size for name, _, size in self.workspaces}
            steps = []
            for step in self.plan["launches"]:
                if "memset" in step:
                    steps.append(Memset(driver, step, sizes[step["memset"]]))
                else:
                    steps.append(Launch(driver, number.value, module, step, first=not steps))
            self.steps[device] = steps
            return steps

    def launch(self, device, stream, tensors, workspace):
        """Puts the plan on the stream. `tensors` are addresses: the inputs', then the outputs'."""
        addresses = dict(zip(self.tensors, tensors, strict=True))
        for name, address in addresses.items():
            if address == 0 or address % ALIGNMENT != 0:
                raise ValueError(f"{self.name}: {name} begins at {address:#x}; "
                                 f"expected a multiple of {ALIGNMENT} bytes: clone() it")
        for name, offset, _ in self.workspaces:
            addresses[name] = workspace + offset
        for step in self.steps.get(device) or self.load(device):
            step.enqueue(stream, addresses)
