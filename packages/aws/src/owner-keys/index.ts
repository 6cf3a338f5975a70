/**
 * The keys of the platform's owner, which allow everything: their sources, the accepted ones, and requests with one.
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
