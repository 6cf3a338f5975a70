/** IAM's roles and policies; `ensureRole` creates the platform's own role. */
export { ensureRole } from "./ensure-role.ts";
export { newId, type IamOptions } from "./iam-words.ts";
export { recordedIdentities, type IdentityStore } from "./identity-store.ts";
export { iamService } from "./service.ts";
