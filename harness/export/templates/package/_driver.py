"""The CUDA driver's functions that a launch needs, and NVRTC where there is source to compile."""

import ctypes
import ctypes.util
import os
import site
from pathlib import Path

# Of cuda.h.
STATIC_SHARED_BYTES = 1
DYNAMIC_SHARED_BYTES = 8
LARGE_CLUSTERS = 14
MULTIPROCESSORS = 16
MAJOR, MINOR = 75, 76
SHARED_BYTES_PER_BLOCK = 97
COOPERATIVE, CLUSTER, PROGRAMMATIC, SHARED_MEMORY_CARVEOUT = 2, 4, 6, 14


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: a number and, from byte 8 on, 64 bytes of value."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig"""

    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("dynamic_shared_bytes", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(LaunchAttribute)), ("attribute_count", ctypes.c_uint)]


class TensorMap(ctypes.Structure):
    """CUtensorMap: 128 bytes. The driver wants them at a multiple of 64."""

    _fields_ = [("bytes", ctypes.c_ubyte * 128)]


def aligned_tensor_map():
    """A tensor map, and what keeps its memory."""
    memory = ctypes.create_string_buffer(ctypes.sizeof(TensorMap) + 64)
    return TensorMap.from_buffer(memory, -ctypes.addressof(memory) % 64)


POINTER, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
SIGNATURES = {
    "cuGetErrorName": (INT, POINTER),
    "cuDeviceGet": (POINTER, INT),
    "cuDeviceGetAttribute": (POINTER, INT, INT),
    "cuModuleLoadData": (POINTER, ctypes.c_char_p),
    "cuModuleGetFunction": (POINTER, POINTER, ctypes.c_char_p),
    "cuFuncGetAttribute": (POINTER, INT, POINTER),
    "cuFuncSetAttribute": (POINTER, INT, INT),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER, POINTER, INT, SIZE),
    "cuTensorMapEncodeTiled": (POINTER, INT, ctypes.c_uint32, POINTER, POINTER, POINTER, POINTER, POINTER,
                               INT, INT, INT, INT),
    "cuMemsetD8Async": (ctypes.c_uint64, ctypes.c_ubyte, SIZE, POINTER),
    "cuLaunchKernelEx": (POINTER, POINTER, POINTER, POINTER),
}


class Driver:
    """driver.cuLaunchKernelEx(...): raises where the driver reports an error."""

    def __init__(self):
        library = ctypes.CDLL("libcuda.so.1")
        for name, types in SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, INT
            setattr(self, name, function if name == "cuGetErrorName" else self._checked(name, function))

    def _checked(self, name, function):
        def call(*arguments):
            result = function(*arguments)
            if result != 0:
                text = ctypes.c_char_p()
                self.cuGetErrorName(result, ctypes.byref(text))
                raise RuntimeError(f"{name}: {(text.value or b'an unknown error').decode()}")
        return call

    def device_attribute(self, device, attribute):
        value = ctypes.c_int()
        self.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        return value.value

    def function_attribute(self, function, attribute):
        value = ctypes.c_int()
        self.cuFuncGetAttribute(ctypes.byref(value), attribute, function)
        return value.value


def cuda_folders():
    """Where CUDA may be: what CUDA_HOME names, the wheels that PyTorch brings, the toolkit's usual place."""
    folders = [Path(os.environ["CUDA_HOME"])] if os.environ.get("CUDA_HOME") else []
    for packages in (*site.getsitepackages(), site.getusersitepackages()):
        folders += sorted(Path(packages).glob("nvidia/*"), reverse=True)
    return [*folders, Path("/usr/local/cuda")]


def compiled(source, problem_header, options, major, minor):
    """The machine code that NVRTC makes of the source for this GPU."""
    nvrtc = None
    for folder in (*cuda_folders(), None):
        for version in (13, 12):
            names = [f"libnvrtc.so.{version}"]
            if folder:
                names = [str(folder / place / names[0]) for place in ("lib64", "lib")]
            for name in names:
                try:
                    nvrtc = nvrtc or ctypes.CDLL(name)
                except OSError:
                    continue
    if nvrtc is None:
        raise RuntimeError("no libnvrtc.so.13 or .12 in CUDA_HOME, PyTorch's wheels or /usr/local/cuda")
    headers = [folder / "include" for folder in cuda_folders() if (folder / "include/cuda_fp16.h").exists()]
    words = [f"--gpu-architecture=sm_{major}{minor}{'a' if major >= 9 else ''}",
             *(f"--include-path={place}" for folder in headers for place in (folder, folder / "cccl")),
             *options]
    program, size = POINTER(), SIZE()
    header, header_name = ctypes.c_char_p(problem_header), ctypes.c_char_p(b"problem.h")
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 1, ctypes.byref(header),
                                ctypes.byref(header_name)) != 0:
        raise RuntimeError("nvrtcCreateProgram failed")
    try:
        texts = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        if nvrtc.nvrtcCompileProgram(program, len(words), texts) != 0:
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"the kernel does not compile:\n{log.value.decode(errors='replace')}")
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, image)
        return image.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
