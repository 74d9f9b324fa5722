// Multiplies two matrices with the model inside of this program, checks the product and times a call.
//
//   matmul [local-sync|local-task]    IREE's device: the thread that calls (default), or IREE's worker threads
//
// Ends with 0 when the product is right.

#include <stdio.h>

#include "iree/runtime/api.h"

enum { SIZE = 64, ELEMENTS = SIZE * SIZE, CALLS = 1000 };

extern const uint8_t matmul_module[], matmul_module_end[];  // module.S

// Small whole numbers: every sum is exact in f32, whatever its order.
static float left_at(int row, int column) { return (float)((row + 2 * column) % 7 - 3); }
static float right_at(int row, int column) { return (float)((3 * row + column) % 5 - 2); }

// Append a matrix to the arguments of the call, as a copy in the device's memory.
static iree_status_t push_matrix(iree_runtime_call_t* call, const float* values) {
  const iree_hal_dim_t shape[] = {SIZE, SIZE};
  const iree_hal_buffer_params_t params = {
      .type = IREE_HAL_MEMORY_TYPE_DEVICE_LOCAL,
      .usage = IREE_HAL_BUFFER_USAGE_DEFAULT,
  };
  iree_hal_buffer_view_t* view = NULL;
  IREE_RETURN_IF_ERROR(iree_hal_buffer_view_allocate_buffer_copy(
      iree_runtime_session_device(call->session), iree_runtime_session_device_allocator(call->session),
      IREE_ARRAYSIZE(shape), shape, IREE_HAL_ELEMENT_TYPE_FLOAT_32, IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR, params,
      iree_make_const_byte_span(values, ELEMENTS * sizeof(*values)), &view));
  iree_status_t status = iree_runtime_call_inputs_push_back_buffer_view(call, view);
  iree_hal_buffer_view_release(view);
  return status;
}

// Run the model once; copy the product to the host if a place for it is given.
static iree_status_t multiply(iree_runtime_call_t* call, float* product) {
  IREE_RETURN_IF_ERROR(iree_runtime_call_invoke(call, 0));
  iree_hal_buffer_view_t* view = NULL;
  IREE_RETURN_IF_ERROR(iree_runtime_call_outputs_pop_front_buffer_view(call, &view));
  iree_status_t status = iree_ok_status();
  if (product) {
    status = iree_hal_device_transfer_d2h(iree_runtime_session_device(call->session), iree_hal_buffer_view_buffer(view),
                                          0, product, ELEMENTS * sizeof(*product),
                                          IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT, iree_infinite_timeout());
  }
  iree_hal_buffer_view_release(view);
  return status;
}

static int count_wrong(const float* product) {
  int wrong = 0;
  for (int i = 0; i < SIZE; ++i) {
    for (int j = 0; j < SIZE; ++j) {
      float expected = 0;
      for (int k = 0; k < SIZE; ++k) expected += left_at(i, k) * right_at(k, j);
      wrong += product[i * SIZE + j] != expected;
    }
  }
  return wrong;
}

// Run the model on a device and print what comes out, and how long a call takes.
static iree_status_t run(iree_runtime_call_t* call, const char* device, int* wrong) {
  static float left[ELEMENTS], right[ELEMENTS], product[ELEMENTS];
  for (int i = 0; i < ELEMENTS; ++i) {
    left[i] = left_at(i / SIZE, i % SIZE);
    right[i] = right_at(i / SIZE, i % SIZE);
  }
  IREE_RETURN_IF_ERROR(push_matrix(call, left));
  IREE_RETURN_IF_ERROR(push_matrix(call, right));
  IREE_RETURN_IF_ERROR(multiply(call, product));
  *wrong = count_wrong(product);
  printf("first row: %g %g %g %g ...\n", product[0], product[1], product[2], product[3]);
  printf("wrong elements: %d of %d\n", *wrong, (int)ELEMENTS);

  const iree_time_t start = iree_time_now();
  for (int i = 0; i < CALLS; ++i) {
    IREE_RETURN_IF_ERROR(multiply(call, NULL));
  }
  const double seconds = (double)(iree_time_now() - start) * 1e-9;
  printf("%s: %.1f us per call, mean of %d\n", device, seconds / CALLS * 1e6, (int)CALLS);
  return iree_ok_status();
}

// Load the module from this program's own data and run it. Objects that were not made are NULL, which may be released.
static iree_status_t load_and_run(iree_runtime_instance_t* instance, const char* device_name, int* wrong) {
  iree_hal_device_t* device = NULL;
  IREE_RETURN_IF_ERROR(
      iree_runtime_instance_try_create_default_device(instance, iree_make_cstring_view(device_name), &device));

  iree_runtime_session_options_t options;
  iree_runtime_session_options_initialize(&options);
  iree_runtime_session_t* session = NULL;
  iree_status_t status = iree_runtime_session_create_with_device(
      instance, &options, device, iree_runtime_instance_host_allocator(instance), &session);
  iree_hal_device_release(device);

  if (iree_status_is_ok(status)) {
    const iree_host_size_t bytes = (iree_host_size_t)(matmul_module_end - matmul_module);
    status = iree_runtime_session_append_bytecode_module_from_memory(
        session, iree_make_const_byte_span(matmul_module, bytes), iree_allocator_null());
  }
  if (iree_status_is_ok(status)) {
    iree_runtime_call_t call;
    status = iree_runtime_call_initialize_by_name(session, iree_make_cstring_view("module.main"), &call);
    if (iree_status_is_ok(status)) {
      status = run(&call, device_name, wrong);
      iree_runtime_call_deinitialize(&call);
    }
  }
  iree_runtime_session_release(session);
  return status;
}

int main(int argc, char** argv) {
  iree_runtime_instance_options_t options;
  iree_runtime_instance_options_initialize(&options);
  iree_runtime_instance_options_use_all_available_drivers(&options);
  iree_runtime_instance_t* instance = NULL;
  iree_status_t status = iree_runtime_instance_create(&options, iree_allocator_system(), &instance);

  int wrong = 0;
  if (iree_status_is_ok(status)) status = load_and_run(instance, argc > 1 ? argv[1] : "local-sync", &wrong);
  iree_runtime_instance_release(instance);

  if (!iree_status_is_ok(status)) {
    iree_status_fprint(stderr, status);
    iree_status_ignore(status);
    return 1;
  }
  return wrong != 0;
}
