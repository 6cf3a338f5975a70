import { koffi } from "./koffi.ts";

/** Number of the system call, which is the same on all architectures that Node supports. */
const createRulesetNumber = 444;
const versionFlag = 1;

/** Returns the ABI version of the kernel's Landlock; 0 if Landlock is missing or disabled. */
export function landlockVersion(): number {
  const libc = koffi.load(null);
  const call = libc.func("int64_t syscall(int64_t number, void *attributes, size_t byteLength, uint32_t flags)");
  return Math.max(0, Number(call(createRulesetNumber, null, 0, versionFlag)));
}
