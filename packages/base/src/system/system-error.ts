import { getSystemErrorMap } from "node:util";
import { koffi } from "./koffi.ts";

/** A failed C library call. As in Node's own errors, `code` is the name of errno ("ENOMEM"). */
export class SystemCallError extends Error {
  readonly code: string;
  readonly errno: number;

  constructor(call: string, errno: number) {
    const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown error"];
    super(`${call}: ${code}: ${text}`);
    this.name = "SystemCallError";
    this.code = code;
    this.errno = errno;
  }
}

/** Returns the result of a call. Throws SystemCallError with errno if the result is negative. */
export function checkSystemCall(call: string, result: number): number {
  if (result < 0) throw new SystemCallError(call, koffi.errno());
  return result;
}
