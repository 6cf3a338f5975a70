import { closeSync } from "node:fs";
import { koffi } from "./koffi.ts";
import { checkCall } from "./system-error.ts";

/** Anonymous memory as a file, which is written once and then never again. */
export interface SealableMemory {
  readonly fd: number;
  /** From now on nobody can write to it, shorten it or let it grow, whoever has the descriptor. Throws where somebody maps it to write. */
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

/** Empty memory that can be written through its descriptor. Throws with the system's reason when the machine refuses. */
export function openSealableMemory(name: string): SealableMemory {
  const fd = checkCall("memfd_create", libc.memfdCreate(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) as number);
  return {
    fd,
    seal() {
      checkCall("fcntl(F_ADD_SEALS)", libc.fcntl(fd, F_ADD_SEALS, ALL_SEALS) as number);
    },
    close() {
      closeSync(fd);
    },
  };
}
