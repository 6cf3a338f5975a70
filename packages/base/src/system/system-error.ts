import { getSystemErrorMap } from "node:util";
import { koffi } from "./koffi.ts";

/** A failed C library call: `code` is errno's name ("ENOMEM"), as in Node's own errors. */
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

/** Returns the result of a call; throws SystemCallError with errno when it is negative. */
export function checkSystemCall(call: string, result: number): number {
  if (result < 0) throw new SystemCallError(call, koffi.errno());
  return result;
}
