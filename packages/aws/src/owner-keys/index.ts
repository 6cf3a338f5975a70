/** The keys of the platform's owner, which may do everything: where they come from, which are accepted, and requests that bring one. */
export { AcceptedKeys } from "./accepted-keys.ts";
export { bringsKey } from "./basic-authentication.ts";
export { keysOf, keySource, KeysRefusal, rootKeys, type KeySource, type RootKey } from "./owner-keys.ts";
