// The part of NVIDIA's driver that mlir_sched/targets/cuda_driver.py asks, with three devices.

#include <string.h>

int cuInit(unsigned flags) { return FAILURE; }
int cuDriverGetVersion(int *version) { return *version = 13020, 0; }
int cuDeviceGetCount(int *count) { return *count = 3, 0; }
int cuDeviceGet(int *device, int number) { return *device = 100 + number, 0; }
int cuDeviceGetName(char *name, int size, int device) {
  strncpy(name, device == 100 ? "NVIDIA H100 80GB HBM3" : device == 101 ? "NVIDIA A10" : "Tesla T4", size);
  return 0;
}
int cuDeviceGetUuid(unsigned char *uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = 0x10 * (device - 100) + i;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case 1: *value = 1024; break;
    case 2: case 3: *value = 1024; break;
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;
    case 6: case 7: *value = 65535; break;
    case 10: *value = 32; break;
    case 13: *value = 1980000; break;
    case 16: *value = device == 100 ? 132 : 72; break;
    case 36: *value = 2619000; break;
    case 37: *value = 5120; break;
    case 39: *value = device == 100 ? 2048 : 1536; break;
    case 75: *value = device == 100 ? 9 : device == 101 ? 8 : 7; break;
    case 76: *value = device == 100 ? 0 : device == 101 ? 6 : 5; break;
    case 81: *value = device == 100 ? 233472 : 102400; break;
    case 82: *value = 65536; break;
    case 97: *value = device == 100 ? 232448 : 101376; break;
    case 106: *value = device == 100 ? 32 : 16; break;
    default: return 1;
  }
  return 0;
}
