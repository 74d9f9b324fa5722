# Shared by the scripts that run iree-compile.

# Set `flags` in the caller: the flags of TUNED/flags.txt with its files found where the folder stands now, then the
# arguments of this script after `--`.
#
# A response file cannot say where it lies: iree-compile takes relative paths in it from its own working directory, and
# absolute ones break when the folder is moved. So a flag whose value names a file of the folder gets that file's path,
# and library.mlir is passed whether or not flags.txt has it, by the two flags that mlir_sched/compiler/flags.py
# explains.
function(mlir_sched_tuned_flags)
  file(READ "${TUNED}/flags.txt" text)
  separate_arguments(words UNIX_COMMAND "${text}")
  set(dispatch_flag --iree-codegen-transform-dialect-library)
  set(program_flag "--iree-preprocessing-pass-pipeline=builtin.module(iree-transform-dialect-interpreter")
  set(result "")
  set(library "${TUNED}/library.mlir")
  set(named FALSE)
  foreach(word IN LISTS words)
    string(FIND "${word}" "${dispatch_flag}=" for_dispatches)
    string(FIND "${word}" "${program_flag}" for_program)
    if(for_dispatches EQUAL 0 OR for_program EQUAL 0)
      set(named TRUE)
      if(word MATCHES "/(library\\.[0-9a-z]+\\.mlir)$" AND EXISTS "${TUNED}/${CMAKE_MATCH_1}")
        set(library "${TUNED}/${CMAKE_MATCH_1}") # a run was killed while it moved files in: this one goes with flags.txt
      endif()
      continue()
    endif()
    if(word MATCHES "^(--[^=]+)=(.+\\.mlir)$")
      set(flag "${CMAKE_MATCH_1}")
      get_filename_component(name "${CMAKE_MATCH_2}" NAME)
      if(EXISTS "${TUNED}/${name}")
        set(word "${flag}=${TUNED}/${name}")
      endif()
    endif()
    list(APPEND result "${word}")
  endforeach()
  if(EXISTS "${library}")
    _mlir_sched_option_value("${library}" value)
    list(APPEND result "${program_flag}{library-file-name=${value}})" "${dispatch_flag}=${library}")
  elseif(named)
    file(REMOVE "${OUTPUT}")
    message(FATAL_ERROR "${TUNED} has no library, and its flags.txt names one: restore library.mlir, or tune again")
  endif()

  set(after_separator FALSE)
  math(EXPR last "${CMAKE_ARGC} - 1")
  foreach(index RANGE ${last})
    if(after_separator)
      list(APPEND result "${CMAKE_ARGV${index}}")
    elseif(CMAKE_ARGV${index} STREQUAL "--")
      set(after_separator TRUE)
    endif()
  endforeach()
  set(flags "${result}" PARENT_SCOPE)
endfunction()

# Set a variable to a path as IREE takes it in the options of a pass: quotes cannot be escaped there, a brace ends the
# options, and what follows an @ is the name of an entry. CMake's lists end at a semicolon and at a bracket.
function(_mlir_sched_option_value path variable)
  if(path MATCHES "[][{};@]" OR (path MATCHES " " AND path MATCHES "'" AND path MATCHES "\""))
    message(FATAL_ERROR "${path}: choose a folder without any of [ ] { } ; @ in its path, nor spaces and both quotes")
  endif()
  set(quote "")
  if(path MATCHES " ")
    set(quote "'")
    if(path MATCHES "'")
      set(quote "\"")
    endif()
  endif()
  set(${variable} "${quote}${path}${quote}" PARENT_SCOPE)
endfunction()
