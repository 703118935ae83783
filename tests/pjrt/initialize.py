"""Load a plugin file and call PJRT_Plugin_Initialize, with ctypes alone; prints its error."""

import ctypes
import sys

get = ctypes.CDLL(sys.argv[1]).GetPjrtApi
get.restype = ctypes.c_void_p
ERROR_MESSAGE, ERROR_GET_CODE, PLUGIN_INITIALIZE = 1, 2, 3
functions = (ctypes.c_void_p * 138).from_address(get() + 40)


def call(number, *slots):
    args = (ctypes.c_size_t * 8)(64, 0, *slots)
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(functions[number])(args), args


error, _ = call(PLUGIN_INITIALIZE)
if error:
    _, args = call(ERROR_MESSAGE, error)
    print(ctypes.string_at(args[3], args[4]).decode())
    _, args = call(ERROR_GET_CODE, error)
    print("code", args[3] & 0xFFFFFFFF)
