import { koffi } from "./koffi.ts";

/** The same on all architectures that Node runs on. */
const createRulesetNumber = 444;
const versionFlag = 1;

/** The ABI of the kernel's Landlock; 0 where it has none, or none that is enabled. */
export function landlockVersion(): number {
  const libc = koffi.load(null);
  const call = libc.func("int64_t syscall(int64_t number, void *attributes, size_t byteLength, uint32_t flags)");
  return Math.max(0, Number(call(createRulesetNumber, null, 0, versionFlag)));
}
