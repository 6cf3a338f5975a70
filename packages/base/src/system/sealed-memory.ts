import { closeSync } from "node:fs";
import { koffi } from "./koffi.ts";
import { checkSystemCall } from "./system-error.ts";

/** An anonymous memory file (`memfd`) that can be made immutable after it was written. */
export interface SealableMemory {
  readonly fd: number;
  /**
   * Makes the memory immutable for every process with the descriptor: it can be neither written, truncated nor grown.
   * Throws while a writable mapping exists.
   */
  seal(): void;
  close(): void;
}

const MFD_CLOEXEC = 1;
const MFD_ALLOW_SEALING = 2;
const F_ADD_SEALS = 1033;
/** F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE. */
const ALL_SEALS = 15;

function bind() {
  const libc = koffi.load(null);
  return {
    memfdCreate: libc.func("int memfd_create(const char *name, uint32_t flags)"),
    fcntl: libc.func("int fcntl(int fd, int command, long argument)"),
  };
}

const libc = bind();

/** Opens empty memory, which is written through its descriptor. Throws SystemCallError if the system call fails. */
export function openSealableMemory(name: string): SealableMemory {
  const fd = checkSystemCall("memfd_create", libc.memfdCreate(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) as number);
  return {
    fd,
    seal() {
      checkSystemCall("fcntl(F_ADD_SEALS)", libc.fcntl(fd, F_ADD_SEALS, ALL_SEALS) as number);
    },
    close() {
      closeSync(fd);
    },
  };
}
