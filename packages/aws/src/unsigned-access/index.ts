/** The one place that decides what callers without a signature are trusted with. */
export { unsignedAccess, type UnsignedAccess, type UnsignedCaller } from "./unsigned-access.ts";
