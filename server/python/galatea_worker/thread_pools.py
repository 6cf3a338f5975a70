"""The threads that numerical libraries start by themselves."""

import os

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit(threads):
    """For libraries that are imported from now on."""
    for variable in _VARIABLES:
        os.environ[variable] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"


def grow(threads):
    """In a worker, whose zygote had one thread: numpy's OpenBLAS is in memory already; its pool is told apart by symbol names."""
    limit(threads)
    import ctypes

    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if "openblas" in line and line.count("/")}
    for path in paths:
        library = ctypes.CDLL(path)
        for symbol in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads"):
            if hasattr(library, symbol):
                getattr(library, symbol)(ctypes.c_int(threads))
                break
