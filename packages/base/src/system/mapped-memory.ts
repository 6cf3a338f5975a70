import { koffi } from "./koffi.ts";
import { checkSystemCall } from "./system-error.ts";

/** Shared memory of another process, mapped into this one. The mapping remains valid after the descriptor is closed. */
export interface MappedMemory {
  readonly address: bigint;
  /** Returns a range of the mapping. The range must not be used after `unmap`. */
  view(byteOffset: number, byteLength: number): ArrayBuffer;
  /** Unmaps the memory. An access through a remaining view would then crash this process. */
  unmap(): void;
}

const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_NORESERVE = 0x4000;
const failed = 0xffff_ffff_ffff_ffffn;

/** Maps the first bytes of a memory file. Throws SystemCallError if the system call fails. */
export function mapMemory(fd: number, byteLength: number): MappedMemory {
  const libc = koffi.load(null);
  const mmap = libc.func("void *mmap(void *address, size_t length, int protection, int flags, int fd, int64_t offset)");
  const munmap = libc.func("int munmap(void *address, size_t length)");
  const address = koffi.address(mmap(null, byteLength, PROT_READ_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0));
  checkSystemCall("mmap", address === failed ? -1 : 0);
  return {
    address,
    view(offset, length) {
      if (offset < 0 || length < 0 || offset + length > byteLength)
        throw new RangeError(`a view of ${length} bytes at ${offset} of mapped memory of ${byteLength} bytes`);
      return koffi.view(address + BigInt(offset), length);
    },
    unmap: () => void checkSystemCall("munmap", munmap(address, byteLength) as number),
  };
}
