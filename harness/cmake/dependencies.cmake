# Finds what the build needs. Boost, GoogleTest, Google Benchmark, OpenSSL, libcurl and SQLite come from the
# system; CUDA gives headers only, since every CUDA library is opened at run time. What the machine
# lacks, ./run and ./test unpack from wheels into .deps; that wins over the machine's own, which is
# there because it did not serve.

set(dependency_folder "${PROJECT_SOURCE_DIR}/.deps")

if(EXISTS ${dependency_folder}/boost/cmeel.prefix)
  list(PREPEND CMAKE_PREFIX_PATH ${dependency_folder}/boost/cmeel.prefix)
endif()
if(REKERNEL_STATIC)
  if(NOT EXISTS ${dependency_folder}/static/complete)
    message(FATAL_ERROR "REKERNEL_STATIC needs static libraries that Debian has not: run "
      "harness/setup/static-libraries.sh")
  endif()
  list(PREPEND CMAKE_PREFIX_PATH ${dependency_folder}/static)
  set(Boost_USE_STATIC_LIBS ON)
  set(OPENSSL_USE_STATIC_LIBS ON)
  # CURL's own configuration tells what its static library needs; CMake's module does not.
  set(CMAKE_FIND_PACKAGE_PREFER_CONFIG ON)
  # The C library alone stays outside: what opens libraries at run time must share it with them.
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
find_package(Boost 1.75 REQUIRED COMPONENTS json program_options)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(CURL REQUIRED)
find_package(benchmark REQUIRED)
if(REKERNEL_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
find_package(SQLite3 REQUIRED)
find_package(Threads REQUIRED)

file(GLOB wheel_include_dirs ${dependency_folder}/python/nvidia/*/include)

# The folder of a header, in `variable`. A remembered folder that has gone is searched for again.
function(find_cuda_header variable header)
  if(NOT EXISTS "${${variable}}/${header}")
    unset(${variable} CACHE)
  endif()
  find_path(${variable} ${header}
    HINTS ${REKERNEL_CUDA_ROOT} ${wheel_include_dirs} ${ARGN} ENV CUDA_HOME
    PATHS /usr/local/cuda
    PATH_SUFFIXES include)
  if(NOT ${variable})
    message(FATAL_ERROR "${header} not found in .deps, CUDA_HOME, /usr/local/cuda or the system's "
      "folders. ./run and ./test fetch what is missing; -DREKERNEL_CUDA_ROOT=… names another place.")
  endif()
endfunction()

find_cuda_header(REKERNEL_CUDA_INCLUDE_DIR cuda.h)
find_cuda_header(REKERNEL_CUBLAS_INCLUDE_DIR cublas_v2.h ${REKERNEL_CUDA_INCLUDE_DIR})
find_cuda_header(REKERNEL_CUDNN_INCLUDE_DIR cudnn.h ${REKERNEL_CUDA_INCLUDE_DIR})

add_library(rekernel_cuda_headers INTERFACE)
target_include_directories(rekernel_cuda_headers SYSTEM INTERFACE
  ${REKERNEL_CUDA_INCLUDE_DIR} ${REKERNEL_CUBLAS_INCLUDE_DIR} ${REKERNEL_CUDNN_INCLUDE_DIR})

# Capturing needs it, and nothing else: headers of CUPTI that do not go with CUDA's are no reason not to
# build the rest.
find_path(REKERNEL_CUPTI_INCLUDE_DIR cupti.h
  HINTS ${REKERNEL_CUDA_ROOT} ${wheel_include_dirs} ${REKERNEL_CUDA_INCLUDE_DIR} ENV CUDA_HOME
  PATHS /usr/local/cuda /usr/local/cuda/extras/CUPTI
  PATH_SUFFIXES include)
if(REKERNEL_CUPTI_INCLUDE_DIR)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES ${REKERNEL_CUPTI_INCLUDE_DIR} ${REKERNEL_CUDA_INCLUDE_DIR})
  check_cxx_source_compiles("#include <cuda.h>
    #include <cupti.h>
    int main() { return sizeof(cuKernelGetParamInfo_params) == 0; }" REKERNEL_CUPTI_WORKS)
  unset(CMAKE_REQUIRED_INCLUDES)
endif()
