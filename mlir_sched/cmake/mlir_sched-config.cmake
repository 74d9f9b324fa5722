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
#   [DEPENDS <file>...]    more files that the module is made from, say those that FLAGS name
#   [PARAMETERS <scope>=<weights.irpa>...   files of weights, relative to the current source directory
#    ENCODE <scope>=<encoded.irpa>...])     files to write, relative to the current binary directory: the weights as the
#                                           calls of the module read them, in the place of those of PARAMETERS
#
# With ENCODE, the module and its files of weights are made by `mlir-sched compile` with the same compiler, on the
# machine that builds: the program next to iree-compile, else the first in PATH. Set MLIR_SCHED for another one.
#
# The module is made again when the source, flags.txt, an .mlir file of the tuned folder, a file of DEPENDS or of
# PARAMETERS, the compiler, these scripts or an argument changes. The target property MLIR_SCHED_CHECK_APPLIED holds a
# command that fails unless every tuned script applies to the source, for add_test; MLIR_SCHED_OUTPUT is the module's path.
function(mlir_sched_compile)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;SOURCE;TUNED;OUTPUT" "FLAGS;DEPENDS;PARAMETERS;ENCODE")
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

  if((arg_PARAMETERS AND NOT arg_ENCODE) OR (arg_ENCODE AND NOT arg_PARAMETERS))
    message(FATAL_ERROR "mlir_sched_compile: PARAMETERS and ENCODE go together: files of weights to read and to write")
  endif()

  get_filename_component(source "${arg_SOURCE}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(tuned "${arg_TUNED}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(output "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  if(NOT EXISTS "${tuned}/flags.txt")
    message(FATAL_ERROR "mlir_sched_compile: ${tuned} has no flags.txt: write it with `mlir-sched tune`")
  endif()
  file(GLOB tuned_files CONFIGURE_DEPENDS "${tuned}/*.mlir")
  _mlir_sched_compiler_files(compiler_files)
  if(arg_ENCODE)
    _mlir_sched_find_program()
    list(APPEND compiler_files "${MLIR_SCHED}")
  endif()
  _mlir_sched_scoped_files(--parameters "${CMAKE_CURRENT_SOURCE_DIR}" read weights ${arg_PARAMETERS})
  _mlir_sched_scoped_files(--encode "${CMAKE_CURRENT_BINARY_DIR}" written encoded ${arg_ENCODE})
  foreach(file IN LISTS output encoded)
    get_filename_component(folder "${file}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
  endforeach()

  # Build tools compare the times of files. Arguments have none, nor has the list of files: a file that holds both is
  # written anew when one of them changes.
  set(inputs "${output}.inputs")
  set(words ${compiler_files} "${source}" "${tuned}" ${tuned_files} ${arg_DEPENDS} ${arg_FLAGS} ${read} ${written})
  string(REPLACE ";" "\n" lines "${words}\n")
  file(GENERATE OUTPUT "${inputs}" CONTENT "${lines}")

  set(settings "-DIREE_COMPILE=${IREE_COMPILE}" "-DSOURCE=${source}" "-DTUNED=${tuned}" "-DOUTPUT=${output}")
  set(run_compiler "${_mlir_sched_scripts_dir}/mlir_sched_run_compiler.cmake")
  set(check_applied "${_mlir_sched_scripts_dir}/mlir_sched_check_applied.cmake")
  set(tuned_flags "${_mlir_sched_scripts_dir}/mlir_sched_tuned_flags.cmake"
                  "${_mlir_sched_scripts_dir}/mlir_sched_require_success.cmake")
  set(command "${CMAKE_COMMAND}" ${settings} -P "${run_compiler}" -- ${arg_FLAGS})
  if(arg_ENCODE)
    set(command "${CMAKE_COMMAND}" -E env "MLIR_SCHED_IREE_COMPILE=${IREE_COMPILE}"
                "${MLIR_SCHED}" compile "${source}" --tuned "${tuned}" -o "${output}" ${read} ${written}
                -- ${arg_FLAGS})
  endif()
  add_custom_command(
    OUTPUT "${output}" ${encoded}
    COMMAND ${command}
    DEPENDS "${source}" "${tuned}/flags.txt" ${tuned_files} ${arg_DEPENDS} ${weights} "${inputs}" ${compiler_files}
            "${run_compiler}" ${tuned_flags}
    COMMENT "Compiling ${arg_SOURCE} with the scripts of ${arg_TUNED}"
    VERBATIM)
  add_custom_target("${arg_TARGET}" ALL DEPENDS "${output}" ${encoded})
  set_target_properties(
    "${arg_TARGET}"
    PROPERTIES MLIR_SCHED_OUTPUT "${output}"
               MLIR_SCHED_CHECK_APPLIED "${CMAKE_COMMAND};${settings};-P;${check_applied};--;${arg_FLAGS}")
endfunction()

# Set a variable to an option with `<scope>=<absolute path>` for each `<scope>=<path>` after the other arguments, and
# another variable to the paths.
function(_mlir_sched_scoped_files option base words_variable paths_variable)
  set(words "")
  set(paths "")
  foreach(scoped IN LISTS ARGN)
    if(NOT scoped MATCHES "^([^=]*)=(.+)$")
      message(FATAL_ERROR "mlir_sched_compile: ${scoped}: a file of weights is given as <scope>=<file>")
    endif()
    set(scope "${CMAKE_MATCH_1}")
    get_filename_component(path "${CMAKE_MATCH_2}" ABSOLUTE BASE_DIR "${base}")
    list(APPEND words "${option}" "${scope}=${path}")
    list(APPEND paths "${path}")
  endforeach()
  set(${words_variable} "${words}" PARENT_SCOPE)
  set(${paths_variable} "${paths}" PARENT_SCOPE)
endfunction()

# Set MLIR_SCHED, unless it is set.
function(_mlir_sched_find_program)
  get_filename_component(bin "${IREE_COMPILE}" DIRECTORY)
  find_program(MLIR_SCHED mlir-sched HINTS "${bin}" DOC "The program of the Python package mlir-sched")
  if(NOT MLIR_SCHED)
    message(FATAL_ERROR "mlir_sched_compile: ENCODE needs mlir-sched: activate the Python environment that has it, or "
                        "set MLIR_SCHED")
  endif()
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
