# Shared by the scripts that run iree-compile.

# Stop unless iree-compile has ended with 0 and has printed no error: it goes on with its own code where a script fails.
function(mlir_sched_require_success status errors)
  if(NOT status EQUAL 0 OR errors MATCHES "(^|[ \t\n])error:")
    file(REMOVE "${OUTPUT}")
    message(FATAL_ERROR "iree-compile failed on ${SOURCE} with the scripts of ${TUNED} (${status}):\n${errors}")
  endif()
  if(errors)
    message("${errors}")
  endif()
endfunction()
