/** The one module that decides about requests without a signature. */
export { unsignedAccess, type UnsignedAccess } from "./unsigned-access.ts";
