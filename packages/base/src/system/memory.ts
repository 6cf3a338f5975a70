import { closeSync } from "node:fs";
import { koffi } from "./koffi.ts";
import { checkSystemCall } from "./system-error.ts";

/**
 * Anonymous shared memory: a sealed `memfd` that is mapped once into this process. The seal prevents other processes
 * with the descriptor from truncating the file. A truncation would kill this process with SIGBUS at its next access.
 */
export interface SharedMemory {
  readonly fd: number;
  readonly byteLength: number;
  /**
   * Returns a view of a range of the mapping. Do not request more than is used: the garbage collector counts the view's
   * length as memory that it could free, and then runs more often. A call takes some microseconds, so keep the result.
   */
  view(byteOffset: number, byteLength: number): ArrayBuffer;
  /**
   * Returns complete pages to the system; they read as zeros afterwards. Both arguments must be multiples of
   * `pageBytes`.
   */
  punch(byteOffset: number, byteLength: number): void;
  /**
   * Returns all pages to the system and closes the descriptor. Remaining views read zeros. The memory is unmapped after
   * the garbage collector has collected the last view.
   */
  close(): void;
}

export const pageBytes = 4096;

const MFD_CLOEXEC = 1;
const MFD_ALLOW_SEALING = 2;
const F_ADD_SEALS = 1033;
const F_SEAL_SEAL = 1;
const F_SEAL_SHRINK = 2;
const F_SEAL_GROW = 4;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_NORESERVE = 0x4000;
const FALLOC_FL_KEEP_SIZE = 1;
const FALLOC_FL_PUNCH_HOLE = 2;

function bind() {
  const libc = koffi.load(null);
  return {
    memfdCreate: libc.func("int memfd_create(const char *name, uint32_t flags)"),
    ftruncate: libc.func("int ftruncate(int fd, int64_t length)"),
    fcntl: libc.func("int fcntl(int fd, int command, long argument)"),
    mmap: libc.func("void *mmap(void *address, size_t length, int protection, int flags, int fd, int64_t offset)"),
    munmap: libc.func("int munmap(void *address, size_t length)"),
    fallocate: libc.func("int fallocate(int fd, int mode, int64_t offset, int64_t length)"),
  };
}

const libc = bind();

interface Mapping {
  readonly address: bigint;
  readonly byteLength: number;
  viewCount: number;
  isClosed: boolean;
}

/**
 * Unmaps a closed mapping after its last view was collected. Unmapping earlier would crash the process at a read
 * through a remaining view.
 */
const collected = new FinalizationRegistry<Mapping>((mapping) => {
  mapping.viewCount -= 1;
  unmapUnused(mapping);
});

function unmapUnused({ address, byteLength, viewCount, isClosed }: Mapping): void {
  if (isClosed && viewCount === 0) libc.munmap(address, byteLength);
}

/** Opens sparse shared memory. Throws SystemCallError if a system call fails. */
export function openSharedMemory(name: string, byteLength: number): SharedMemory {
  if (!Number.isSafeInteger(byteLength) || byteLength <= 0 || byteLength % pageBytes !== 0)
    throw new RangeError(`shared memory of ${byteLength} bytes: a positive multiple of ${pageBytes} is needed`);
  const fd = checkSystemCall("memfd_create", libc.memfdCreate(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) as number);
  let mapping: Mapping;
  try {
    checkSystemCall("ftruncate", libc.ftruncate(fd, byteLength) as number);
    checkSystemCall(
      "fcntl(F_ADD_SEALS)",
      libc.fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) as number,
    );
    mapping = map(fd, byteLength);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  const punch = (offset: number, length: number) => {
    checkSystemCall(
      "fallocate(PUNCH_HOLE)",
      libc.fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) as number,
    );
  };
  return {
    fd,
    byteLength,
    view(offset, length) {
      if (mapping.isClosed || offset < 0 || length < 0 || offset + length > byteLength)
        throw new RangeError(`a view of ${length} bytes at ${offset} of shared memory of ${byteLength} bytes`);
      const view = koffi.view(mapping.address + BigInt(offset), length);
      mapping.viewCount += 1;
      collected.register(view, mapping);
      return view;
    },
    punch,
    close() {
      if (mapping.isClosed) return;
      mapping.isClosed = true;
      punch(0, byteLength);
      closeSync(fd);
      unmapUnused(mapping);
    },
  };
}

function map(fd: number, byteLength: number): Mapping {
  const pointer: unknown = libc.mmap(null, byteLength, PROT_READ_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  const address = koffi.address(pointer);
  checkSystemCall("mmap", address === 0xffff_ffff_ffff_ffffn ? -1 : 0);
  return { address, byteLength, viewCount: 0, isClosed: false };
}
