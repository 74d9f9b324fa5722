# Test: fails unless the module is there and a script of the tuned folder applies to the source. iree-compile exits with
# 0 and uses its own code when no script matches, so the proof is the mark that every script leaves on its function.
#
# cmake -DIREE_COMPILE= -DSOURCE= -DTUNED= -DOUTPUT= -P mlir_sched_check_applied.cmake -- [flag...]
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/mlir_sched_tuned_flags.cmake")

if(NOT EXISTS "${OUTPUT}")
  message(FATAL_ERROR "${OUTPUT} was not made")
endif()
mlir_sched_tuned_flags()
execute_process(
  COMMAND "${IREE_COMPILE}" ${flags} --compile-to=executable-configurations "${SOURCE}" -o -
  RESULT_VARIABLE status
  OUTPUT_VARIABLE ir)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "iree-compile failed on ${SOURCE} with the scripts of ${TUNED}: ${status}")
endif()
string(REGEX MATCHALL "mlir_sched\\.applied" marks "${ir}")
list(LENGTH marks count)
if(count EQUAL 0)
  message(FATAL_ERROR "no script of ${TUNED} applies to ${SOURCE}: the module runs the compiler's own code")
endif()
message(STATUS "scripts applied: ${count}")
