/** IAM's roles and policies; `ensureRole` creates the platform's own role. */
export { ensureRole } from "./ensure-role.ts";
export { createIamId, type IamOptions } from "./iam-words.ts";
export { openIdentityStore, type IdentityStore } from "./identity-store.ts";
export { iamService } from "./service.ts";
