# What find_package(mlir_sched <version>) asks: this version serves for every earlier one of the same minor number.
set(PACKAGE_VERSION "0.1.0")

string(REGEX MATCH "^[0-9]+\\.[0-9]+" _mlir_sched_minor "${PACKAGE_VERSION}")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if("${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}" STREQUAL "${_mlir_sched_minor}"
   AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
