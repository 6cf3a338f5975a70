/**
 * The keys of the platform's owner, which allow everything: where they are read from, which are accepted, and whether a
 * request sends one.
 */
export { AcceptedKeys } from "./accepted-keys.ts";
export { hasOwnerKey } from "./basic-authentication.ts";
export {
  parseCredentialsFile,
  findKeySource,
  OwnerKeysError,
  readOwnerKeys,
  type KeySource,
  type RootKey,
} from "./owner-keys.ts";
