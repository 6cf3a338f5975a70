/** The one place that decides what callers without a signature are trusted with. */
export { unsignedAccess, type UnsignedAccess } from "./unsigned-access.ts";
