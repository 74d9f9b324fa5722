// The part of a Vulkan loader that tells cooperative matrices, with two devices: 1 has the extension, 2 has not.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct extension {
  char name[256];
  uint32_t version;
};
struct matrix {
  uint32_t kind;
  void *next;
  uint32_t rows, columns, reduction, a, b, sums, result, saturates, scope;
};
enum { F16 = 0, F32 = 1, SINT8 = 3, UINT8 = 7, SINT32 = 5, WORKGROUP = 2, SUBGROUP = 3, PROPERTIES = 1000506001 };

static const struct matrix MATRICES[] = {
    {0, 0, 16, 16, 16, F16, F16, F32, F32, 0, SUBGROUP},       {0, 0, 16, 8, 16, F16, F16, F16, F16, 0, SUBGROUP},
    {0, 0, 16, 16, 16, SINT8, SINT8, SINT32, SINT32, 0, SUBGROUP}, {0, 0, 32, 32, 16, F16, F16, F32, F32, 0, WORKGROUP},
    {0, 0, 16, 16, 32, SINT8, UINT8, SINT32, SINT32, 0, SUBGROUP}, {0, 0, 16, 16, 64, F16, F16, F32, F16, 0, SUBGROUP},
};
static const uint32_t COUNT = sizeof MATRICES / sizeof *MATRICES;

int vkEnumerateDeviceExtensionProperties(void *device, const char *layer, uint32_t *count, struct extension *found) {
  if (found) {
    strcpy(found[0].name, "VK_KHR_swapchain");
    if (*count > 1) strcpy(found[1].name, "VK_KHR_cooperative_matrix");
  }
  *count = (uintptr_t)device == 1 ? 2 : 1;
  return 0;
}

static int properties(void *device, uint32_t *count, struct matrix *found) {
  if ((uintptr_t)device != 1) abort();  // what a loader does for a device without the extension
  if (found)
    for (uint32_t i = 0; i < COUNT; ++i) {
      if (found[i].kind != PROPERTIES || found[i].next) abort();
      found[i] = MATRICES[i];
    }
  *count = COUNT;
  return 0;
}

void *vkGetInstanceProcAddr(void *instance, const char *name) {
  return strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR") ? 0 : (void *)properties;
}
