/** IAM's roles and policies; `ensureRole` makes the platform's own role. */
export { ensureRole } from "./ensure-role.ts";
export { newId, type IamOptions } from "./iam-words.ts";
export { createMemoryIdentityStore, type IdentityStore, type PolicyRecord, type RoleRecord } from "./identity-store.ts";
export { recordedIdentities } from "./recorded-identities.ts";
export { iamService, type IamParts } from "./service.ts";
