/**
 * The keys of the platform's owner, which allow everything: their sources, the accepted ones, and requests with one.
 */
export { AcceptedKeys } from "./accepted-keys.ts";
export { bringsKey } from "./basic-authentication.ts";
export { keysOf, keySource, KeysRefusal, rootKeys, type KeySource, type RootKey } from "./owner-keys.ts";
