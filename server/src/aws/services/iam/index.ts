/** IAM's roles and policies: `createIamService({ store, clock, randomBytes })`; `ensureRole` makes the platform's own role. */
export { createIamService, ensureRole } from "./iam-service.ts";
export { newId, type IamOptions } from "./iam-words.ts";
export { createMemoryIdentityStore, type IdentityStore, type PolicyRecord, type RoleRecord } from "./identity-store.ts";
