# What find_package(mlir_sched) loads: the function mlir_sched_compile.

include_guard(GLOBAL)
set(_mlir_sched_scripts_dir "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "")

# The compiler: the one of the active Python environment, else the first in PATH. Set IREE_COMPILE for another one.
if(NOT IREE_COMPILE)
  find_package(Python3 3.11 QUIET COMPONENTS Interpreter)
  if(Python3_FOUND)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -c "import sysconfig; print(sysconfig.get_path('scripts'))"
      OUTPUT_VARIABLE _mlir_sched_python_scripts
      OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  find_program(IREE_COMPILE iree-compile HINTS "$ENV{VIRTUAL_ENV}/bin" "${_mlir_sched_python_scripts}"
               DOC "The compiler of the iree-base-compiler package")
endif()

# mlir_sched_compile(
#   TARGET <name>          a target, part of `all`, that makes the module
#   SOURCE <model.mlir>    relative to the current source directory
#   TUNED <folder>         written by `mlir-sched tune`: flags.txt and what it names
#   OUTPUT <model.vmfb>    relative to the current binary directory
#   [FLAGS <flag>...]      more flags for iree-compile; they come last
#   [DEPENDS <file>...])   more files that the module is made from, say those that FLAGS name
#
# The module is made again when the source, flags.txt, an .mlir file of the tuned folder, a file of DEPENDS, the compiler,
# these scripts or an argument changes. The target property MLIR_SCHED_CHECK_APPLIED holds a command that fails unless
# every tuned script applies to the source, for add_test; MLIR_SCHED_OUTPUT is the module's path.
function(mlir_sched_compile)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;SOURCE;TUNED;OUTPUT" "FLAGS;DEPENDS")
  foreach(name IN ITEMS TARGET SOURCE TUNED OUTPUT)
    if(NOT arg_${name})
      message(FATAL_ERROR "mlir_sched_compile: ${name} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mlir_sched_compile: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT IREE_COMPILE)
    message(FATAL_ERROR "mlir_sched_compile: no iree-compile found: activate the Python environment that has "
                        "iree-base-compiler, or set IREE_COMPILE")
  endif()

  get_filename_component(source "${arg_SOURCE}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(tuned "${arg_TUNED}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(output "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  if(NOT EXISTS "${tuned}/flags.txt")
    message(FATAL_ERROR "mlir_sched_compile: ${tuned} has no flags.txt: write it with `mlir-sched tune`")
  endif()
  get_filename_component(output_dir "${output}" DIRECTORY)
  file(MAKE_DIRECTORY "${output_dir}")
  file(GLOB tuned_files CONFIGURE_DEPENDS "${tuned}/*.mlir")
  _mlir_sched_compiler_files(compiler_files)

  # Build tools compare the times of files. Arguments have none, nor has the list of files: a file that holds both is
  # written anew when one of them changes.
  set(inputs "${output}.inputs")
  set(words ${compiler_files} "${source}" "${tuned}" ${tuned_files} ${arg_DEPENDS} ${arg_FLAGS})
  string(REPLACE ";" "\n" lines "${words}\n")
  file(GENERATE OUTPUT "${inputs}" CONTENT "${lines}")

  set(settings "-DIREE_COMPILE=${IREE_COMPILE}" "-DSOURCE=${source}" "-DTUNED=${tuned}" "-DOUTPUT=${output}")
  set(run_compiler "${_mlir_sched_scripts_dir}/mlir_sched_run_compiler.cmake")
  set(check_applied "${_mlir_sched_scripts_dir}/mlir_sched_check_applied.cmake")
  set(tuned_flags "${_mlir_sched_scripts_dir}/mlir_sched_tuned_flags.cmake"
                  "${_mlir_sched_scripts_dir}/mlir_sched_require_success.cmake")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" ${settings} -P "${run_compiler}" -- ${arg_FLAGS}
    DEPENDS "${source}" "${tuned}/flags.txt" ${tuned_files} ${arg_DEPENDS} "${inputs}" ${compiler_files}
            "${run_compiler}" ${tuned_flags}
    COMMENT "Compiling ${arg_SOURCE} with the scripts of ${arg_TUNED}"
    VERBATIM)
  add_custom_target("${arg_TARGET}" ALL DEPENDS "${output}")
  set_target_properties(
    "${arg_TARGET}"
    PROPERTIES MLIR_SCHED_OUTPUT "${output}"
               MLIR_SCHED_CHECK_APPLIED "${CMAKE_COMMAND};${settings};-P;${check_applied};--;${arg_FLAGS}")
endfunction()

# Set a variable to the files that change when another compiler is installed: the program, and the library that does its
# work, next to it, in a distribution of IREE or in a Python environment. A program installed by pip is a few lines that
# every version has.
function(_mlir_sched_compiler_files variable)
  file(REAL_PATH "${IREE_COMPILE}" program)
  get_filename_component(bin "${program}" DIRECTORY)
  set(library libIREECompiler.*)
  file(GLOB libraries "${bin}/${library}" "${bin}/../lib*/${library}"
       "${bin}/../lib*/python3*/*-packages/iree/compiler/_mlir_libs/${library}")
  set(${variable} "${IREE_COMPILE}" ${libraries} PARENT_SCOPE)
endfunction()
