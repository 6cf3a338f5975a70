/** Decides what a request without a signature may access. No other module decides this. */
export { unsignedAccess, type UnsignedAccess } from "./unsigned-access.ts";
