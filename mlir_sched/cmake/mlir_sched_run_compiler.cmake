# Build step: cmake -DIREE_COMPILE= -DSOURCE= -DTUNED= -DOUTPUT= -P mlir_sched_run_compiler.cmake -- [flag...]
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/mlir_sched_tuned_flags.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/mlir_sched_require_success.cmake")

mlir_sched_tuned_flags()
execute_process(
  COMMAND "${IREE_COMPILE}" ${flags} "${SOURCE}" -o "${OUTPUT}" RESULT_VARIABLE status ERROR_VARIABLE errors)
mlir_sched_require_success("${status}" "${errors}")
