"""Asks NVIDIA's driver for its devices and prints them as JSON; run as a program.

IREE's runtime tells a device's name and no limits, so they are read through the CUDA driver API. Its functions and the
numbers of its attributes are those of ``cuda.h``.
"""

import ctypes
import json
import sys
from ctypes import byref, c_char, c_int, c_uint8, create_string_buffer
from typing import Any

LIBRARY = "libcuda.so"
"""What IREE loads. Source: ``cuda_dynamic_symbols.c``."""
INSTALLED = "libcuda.so.1"
"""What a driver always installs."""
ATTRIBUTES = {
    "workgroup_threads": 1,  # CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    "workgroup_x": 2,  # MAX_BLOCK_DIM_X
    "workgroup_y": 3,
    "workgroup_z": 4,
    "count_x": 5,  # MAX_GRID_DIM_X
    "count_y": 6,
    "count_z": 7,
    "subgroup_size": 10,  # WARP_SIZE
    "clock_khz": 13,  # CLOCK_RATE
    "multiprocessors": 16,  # MULTIPROCESSOR_COUNT
    "memory_clock_khz": 36,  # MEMORY_CLOCK_RATE
    "memory_bus_bits": 37,  # GLOBAL_MEMORY_BUS_WIDTH
    "multiprocessor_threads": 39,  # MAX_THREADS_PER_MULTIPROCESSOR
    "major": 75,  # COMPUTE_CAPABILITY_MAJOR
    "minor": 76,
    "multiprocessor_shared_memory_bytes": 81,  # MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    "multiprocessor_registers": 82,  # MAX_REGISTERS_PER_MULTIPROCESSOR
    "shared_memory_bytes": 97,  # MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, which IREE allows
    "multiprocessor_workgroups": 106,  # MAX_BLOCKS_PER_MULTIPROCESSOR
}
"""What is asked of a device, by its number. Clocks are the highest ones."""
_NAME_BYTES = 256


class CudaError(OSError):
    """There is no driver, or a call of it fails; the message says which."""


def describe_devices() -> list[dict[str, Any]]:
    """Return the devices as ``CudaDevice.from_json`` reads them, in the driver's order.

    Raises:
        CudaError: The machine has no driver, IREE would not find it, or the driver refuses to start.
    """
    cuda = _load()
    _call(cuda, "cuInit", 0)
    version, count = c_int(), c_int()
    _call(cuda, "cuDriverGetVersion", byref(version))
    _call(cuda, "cuDeviceGetCount", byref(count))
    driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return [_describe(cuda, number) | {"driver": driver} for number in range(count.value)]


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        pass
    try:
        ctypes.CDLL(INSTALLED)
    except OSError:
        raise CudaError("no NVIDIA driver is installed") from None
    raise CudaError(f"IREE loads {LIBRARY}, and only {INSTALLED} is there; link the one to the other")


def _describe(cuda: ctypes.CDLL, number: int) -> dict[str, Any]:
    device, name, uuid = c_int(), create_string_buffer(_NAME_BYTES), (c_uint8 * 16)()
    _call(cuda, "cuDeviceGet", byref(device), number)
    _call(cuda, "cuDeviceGetName", name, _NAME_BYTES, device)
    _call(cuda, "cuDeviceGetUuid", byref(uuid), device)
    values = {}
    for key, attribute in ATTRIBUTES.items():
        value = c_int()
        _call(cuda, "cuDeviceGetAttribute", byref(value), attribute, device)
        values[key] = value.value
    return {"name": _text(name), "uuid": bytes(uuid).hex(), **values}


def _text(characters: ctypes.Array[c_char]) -> str:
    return bytes(characters).partition(b"\0")[0].decode()


def _call(cuda: ctypes.CDLL, function: str, *arguments: Any) -> None:
    code = getattr(cuda, function)(*arguments)
    if code != 0:
        raise CudaError(f"NVIDIA's driver is there, but {function} fails with error {code}")


if __name__ == "__main__":
    try:
        print(json.dumps(describe_devices()))
    except OSError as error:
        sys.exit(str(error))
