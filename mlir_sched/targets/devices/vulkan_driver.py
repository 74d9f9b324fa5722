"""Asks the Vulkan loader for its devices and prints them as JSON; run as a program.

IREE's runtime does not tell the limits of compute shaders, so they are read through Vulkan's C interface. The
structures are those of ``vulkan_core.h`` (Vulkan 1.2), up to the last field that is read.
"""

import ctypes
import json
import sys
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_int,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
    cast,
    pointer,
)
from typing import Any, ClassVar

LIBRARIES = ("libvulkan.so.1", "libvulkan.so", "vulkan-1.dll", "libvulkan.1.dylib")
API_VERSION, VULKAN_1_3 = (1 << 22) | (2 << 12), (1 << 22) | (3 << 12)  # VK_API_VERSION_1_2 and 1_3
# VkStructureType
_PROPERTIES_2, _SUBGROUP, _DRIVER, _ID, _SIZES = 1000059001, 1000094000, 1000196000, 1000071004, 1000225000
_FEATURES_2, _FEATURES_11, _FEATURES_12, _FEATURES_13 = 1000059000, 49, 51, 53
_ARITHMETIC, _SHUFFLE = 4, 16  # VkSubgroupFeatureFlagBits
_COOPERATIVE, _COOPERATIVE_MATRIX, _SUBGROUP_SCOPE = b"VK_KHR_cooperative_matrix", 1000506001, 3
_COMPONENTS = {0: "f16", 1: "f32", 2: "f64", 3: "i8", 5: "i32"}  # VkComponentTypeKHR
_LIMITS_BYTES = 504
_FIELDS_BEFORE_COMPUTE = (
    ("images", c_uint32 * 5),
    ("buffers", c_uint32 * 3),
    ("allocations", c_uint32 * 3),
    ("granularity", c_uint64 * 2),
    ("descriptors", c_uint32 * 16),
    ("vertices", c_uint32 * 5),
    ("tessellation", c_uint32 * 8),
    ("geometry", c_uint32 * 5),
    ("fragments", c_uint32 * 4),
)
"""VkPhysicalDeviceLimits up to its compute limits, neighbouring fields of one kind as one array."""


class _Compute(Structure):
    _fields_ = (
        *_FIELDS_BEFORE_COMPUTE,
        ("shared_memory_bytes", c_uint32),
        ("workgroup_counts", c_uint32 * 3),
        ("workgroup_threads", c_uint32),
        ("workgroup_size", c_uint32 * 3),
    )


class _Limits(ctypes.Union):
    _fields_ = (("compute", _Compute), ("all", c_uint8 * _LIMITS_BYTES))


class _Properties(Structure):
    _fields_ = (
        ("api_version", c_uint32),
        ("driver_version", c_uint32),
        ("vendor", c_uint32),
        ("device", c_uint32),
        ("type", c_uint32),
        ("name", c_char * 256),
        ("cache_uuid", c_uint8 * 16),
        ("limits", _Limits),
        ("sparse", c_uint32 * 5),
    )


class _Chained(Structure):
    _fields_: ClassVar[Any] = (("kind", c_uint32), ("next", c_void_p))


class _Properties2(_Chained):
    _fields_ = (("properties", _Properties),)


class _Subgroup(_Chained):
    _fields_ = (("size", c_uint32), ("rest", c_uint32 * 3))


class _Driver(_Chained):
    _fields_ = (("id", c_uint32), ("name", c_char * 256), ("info", c_char * 256), ("conformance", c_uint8 * 4))


class _Id(_Chained):
    _fields_ = (("device", c_uint8 * 16), ("driver", c_uint8 * 16), ("luid", c_uint8 * 8), ("rest", c_uint32 * 2))


class _SubgroupSizes(_Chained):
    _fields_ = (("least", c_uint32), ("most", c_uint32), ("rest", c_uint32 * 2))


class _Features2(_Chained):
    _fields_ = (("values", c_uint32 * 55),)


class _Features11(_Chained):
    _fields_ = (("values", c_uint32 * 12),)


class _Features12(_Chained):
    _fields_ = (("values", c_uint32 * 47),)


class _Features13(_Chained):
    _fields_ = (("values", c_uint32 * 15),)


class _Extension(Structure):
    _fields_ = (("name", c_char * 256), ("version", c_uint32))


class _CooperativeMatrix(_Chained):
    _fields_ = (
        ("extents", c_uint32 * 3),
        ("inputs", c_uint32 * 2),
        ("sums", c_uint32),
        ("result", c_uint32),
        ("saturates", c_uint32),
        ("scope", c_uint32),
    )


class _Application(_Chained):
    _fields_ = (
        ("name", c_char_p),
        ("version", c_uint32),
        ("engine", c_char_p),
        ("engine_version", c_uint32),
        ("api_version", c_uint32),
    )


class _Create(_Chained):
    _fields_ = (
        ("flags", c_uint32),
        ("application", POINTER(_Application)),
        ("layer_count", c_uint32),
        ("layers", c_void_p),
        ("extension_count", c_uint32),
        ("extensions", c_void_p),
    )


def describe_devices() -> list[dict[str, Any]]:
    """Return the devices as ``VulkanDevice.from_json`` reads them, in the loader's order.

    Raises:
        OSError: The machine has no Vulkan loader, or the loader makes no instance because it finds no driver.
    """
    vulkan = _load()
    instance, application = c_void_p(), _Application(api_version=API_VERSION)
    create = _Create(kind=1, application=pointer(application))
    if vulkan.vkCreateInstance(byref(create), None, byref(instance)) != 0:
        raise OSError("the Vulkan loader finds no driver")
    count = c_uint32()
    vulkan.vkEnumeratePhysicalDevices(instance, byref(count), None)
    handles = (c_void_p * count.value)()
    vulkan.vkEnumeratePhysicalDevices(instance, byref(count), handles)
    described = [_describe(vulkan, instance, c_void_p(handle)) for handle in handles]
    vulkan.vkDestroyInstance(instance, None)
    return described


def _load() -> ctypes.CDLL:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(f"no Vulkan loader: none of {', '.join(LIBRARIES)}")


def _describe(vulkan: ctypes.CDLL, instance: c_void_p, device: c_void_p) -> dict[str, Any]:
    identity = _Id(kind=_ID)
    driver = _Driver(kind=_DRIVER, next=cast(pointer(identity), c_void_p))
    sizes = _SubgroupSizes(kind=_SIZES, next=cast(pointer(driver), c_void_p))
    subgroup = _Subgroup(kind=_SUBGROUP, next=cast(pointer(sizes), c_void_p))
    found = _Properties2(kind=_PROPERTIES_2, next=cast(pointer(subgroup), c_void_p))
    vulkan.vkGetPhysicalDeviceProperties2(device, byref(found))
    properties, compute = found.properties, found.properties.limits.compute
    return {
        "name": properties.name.decode(),
        "type": properties.type,
        "vendor": properties.vendor,
        "driver": f"{driver.name.decode()} {driver.info.decode()}",
        "uuid": bytes(identity.device).hex(),
        "subgroup_size": subgroup.size,
        "least_subgroup": sizes.least,
        "features": {"vulkan_1_3": properties.api_version >= VULKAN_1_3, **_features(vulkan, device, subgroup.rest[1])},
        "workgroup_threads": compute.workgroup_threads,
        "workgroup_size": list(compute.workgroup_size),
        "workgroup_counts": list(compute.workgroup_counts),
        "shared_memory_bytes": compute.shared_memory_bytes,
        "cooperative_matrices": cooperative_matrices(vulkan, instance, device),
    }


def _features(vulkan: ctypes.CDLL, device: c_void_p, subgroup_operations: int) -> dict[str, bool]:
    """Return which features a device has, by the names of ``vulkan_devices.FEATURES``.

    The numbers are places in ``VkPhysicalDeviceFeatures`` and ``VkPhysicalDeviceVulkan11Features``, 12 and 13.
    """
    last = _Features13(kind=_FEATURES_13)
    later = _Features12(kind=_FEATURES_12, next=cast(pointer(last), c_void_p))
    middle = _Features11(kind=_FEATURES_11, next=cast(pointer(later), c_void_p))
    first = _Features2(kind=_FEATURES_2, next=cast(pointer(middle), c_void_p))
    vulkan.vkGetPhysicalDeviceFeatures2(device, byref(first))
    return {
        "float64": bool(first.values[39]),
        "int64": bool(first.values[40]),
        "int16": bool(first.values[41]),
        "storage_16_bit": bool(middle.values[0]),
        "storage_8_bit": bool(later.values[2]),
        "float16": bool(later.values[7]),
        "int8": bool(later.values[8]),
        "dot_product": bool(last.values[13]),
        "subgroup_arithmetic": bool(subgroup_operations & _ARITHMETIC),
        "subgroup_shuffle": bool(subgroup_operations & _SHUFFLE),
    }


def cooperative_matrices(vulkan: ctypes.CDLL, instance: c_void_p, device: c_void_p) -> list[dict[str, Any]]:
    """Return the products that subgroups of a device compute at once, as ``MatrixUnit`` takes them.

    Those whose inputs, or whose sums and result, have two types are left out. The loader must not be asked for a device
    without the extension.
    """
    count = c_uint32()
    vulkan.vkEnumerateDeviceExtensionProperties(device, None, byref(count), None)
    extensions = (_Extension * count.value)()
    vulkan.vkEnumerateDeviceExtensionProperties(device, None, byref(count), extensions)
    if _COOPERATIVE not in {extension.name for extension in extensions}:
        return []
    vulkan.vkGetInstanceProcAddr.restype = c_void_p
    address = vulkan.vkGetInstanceProcAddr(instance, b"vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")
    if not address:
        return []
    ask = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_uint32), POINTER(_CooperativeMatrix))(address)
    ask(device, byref(count), None)
    found = (_CooperativeMatrix * count.value)(*[_CooperativeMatrix(kind=_COOPERATIVE_MATRIX)] * count.value)
    ask(device, byref(count), found)
    return [
        {
            **dict(zip(("rows", "columns", "reduction"), each.extents, strict=True)),
            "inputs": _COMPONENTS[each.inputs[0]],
            "result": _COMPONENTS[each.result],
        }
        for each in found
        if each.scope == _SUBGROUP_SCOPE
        and each.inputs[0] == each.inputs[1]
        and each.sums == each.result
        and {each.inputs[0], each.result} <= _COMPONENTS.keys()
    ]


if __name__ == "__main__":
    try:
        print(json.dumps(describe_devices()))
    except OSError as error:
        sys.exit(str(error))
