"""Simulates CUDA's runtime library for tests, in the machine's memory: the C functions that the backend calls.

Device addresses differ from the machine's addresses. Work of a stream runs when the stream is synchronized. There are two GPUs with one
mebibyte of memory each.
"""

import ctypes

_DEVICE = 1 << 48
_CAPACITY = 1 << 20
_TEXTS = {1: b"invalid argument", 2: b"out of memory", 101: b"invalid device ordinal", 400: b"invalid resource handle"}


class FakeCudart:
    stream = 7777

    def __init__(self):
        self._held = {}
        self._queue = []
        self._has_stream = False

    def cudaSetDevice(self, number):
        return 0 if number in (0, 1) else 101

    def cudaDeviceGetAttribute(self, value, which, number):
        value._obj.value = {75: 9, 76: 0}[which]
        return 0

    def cudaStreamCreateWithFlags(self, stream, flags):
        assert flags == 1
        stream._obj.value = self.stream
        self._has_stream = True
        return 0

    def cudaStreamDestroy(self, stream):
        self._has_stream = False
        return 0 if stream == self.stream else 400

    def cudaMalloc(self, pointer, size):
        if size + sum(len(one) for one in self._held.values()) > _CAPACITY:
            return 2
        memory = ctypes.create_string_buffer(b"\xee" * size, size)
        address = ctypes.addressof(memory) + _DEVICE
        self._held[address] = memory
        pointer._obj.value = address
        return 0

    def cudaFree(self, address):
        # Runs pending work before memory is freed, like CUDA.
        self.run_now()
        return 1 if self._held.pop(address, None) is None else 0

    def cudaMemset(self, address, value, size):
        ctypes.memset(self._place(address, size), value, size)
        return 0

    def cudaMemcpyAsync(self, to, source, size, kind, stream):
        if stream != self.stream or not self._has_stream:
            return 400
        if kind == 1:
            self.later(lambda: ctypes.memmove(self._place(to, size), source, size))
        else:
            self.later(lambda: ctypes.memmove(to, self._place(source, size), size))
        return 0

    def cudaStreamSynchronize(self, stream):
        if stream != self.stream:
            return 400
        self.run_now()
        return 0

    def cudaGetErrorString(self, status):
        return _TEXTS[status]

    def later(self, work):
        self._queue.append(work)

    def run_now(self):
        queue, self._queue = self._queue, []
        for work in queue:
            work()

    def read(self, address, size):
        return ctypes.string_at(self._place(address, size), size)

    def write(self, address, array):
        ctypes.memmove(self._place(address, array.nbytes), array.ctypes.data, array.nbytes)

    def _place(self, address, size):
        for begin, memory in self._held.items():
            if begin <= address and address + size <= begin + len(memory):
                return address - _DEVICE
        raise AssertionError("%#x and %d bytes behind it are no memory of the device" % (address, size))
