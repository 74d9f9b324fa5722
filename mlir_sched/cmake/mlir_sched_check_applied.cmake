# Test: fails unless the module is there and every script of the tuned folder applies to the source. iree-compile exits
# with 0 and uses its own code when no script matches, so the proof is the mark that every script leaves on its function.
#
# cmake -DIREE_COMPILE= -DSOURCE= -DTUNED= -DOUTPUT= -P mlir_sched_check_applied.cmake -- [flag...]
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/mlir_sched_tuned_flags.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/mlir_sched_require_success.cmake")

if(NOT EXISTS "${OUTPUT}")
  message(FATAL_ERROR "${OUTPUT} was not made")
endif()
if(NOT EXISTS "${TUNED}/library.mlir")
  message(FATAL_ERROR "${TUNED} has no library.mlir, and so no script: its flags are all there is")
endif()
mlir_sched_tuned_flags()
set(short --mlir-elide-elementsattrs-if-larger=16 --mlir-elide-resource-strings-if-larger=16)
execute_process(
  COMMAND "${IREE_COMPILE}" ${flags} ${short} --compile-to=executable-configurations "${SOURCE}" -o -
  RESULT_VARIABLE status
  OUTPUT_VARIABLE ir
  ERROR_VARIABLE errors)
mlir_sched_require_success("${status}" "${errors}")

# A script's last step: its name as a parameter, and the mark with it. Scripts written by hand may leave out the name.
file(READ "${TUNED}/library.mlir" library)
set(mark "transform\\.annotate %[^ ]+ \"mlir_sched\\.applied\"")
string(REGEX MATCHALL "${mark}" marks "${library}")
list(LENGTH marks in_library)
string(REGEX MATCHALL "param\\.constant \"[^\"]*\" -> !transform\\.any_param[ \n]+${mark} =" named "${library}")
set(missing "")
foreach(step IN LISTS named)
  string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1" name "${step}")
  string(FIND "${ir}" "mlir_sched.applied = \"${name}\"" found)
  if(found EQUAL -1)
    list(APPEND missing "${name}")
  endif()
endforeach()
string(REGEX MATCHALL "mlir_sched\\.applied( = \"[^\"]*\")?" applied "${ir}")
list(LENGTH applied count)
if(missing OR count LESS in_library OR count EQUAL 0)
  if(NOT missing)
    set(missing "${count} of ${in_library} apply")
  endif()
  message(FATAL_ERROR "not every script of ${TUNED} applies to ${SOURCE}, and the module runs the compiler's own code "
                      "instead: ${missing}")
endif()
message(STATUS "scripts applied: ${in_library}, to ${count} dispatches")
