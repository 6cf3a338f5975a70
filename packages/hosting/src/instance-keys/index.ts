/**
 * The access keys of instances' code, and what they give access to. Keys are records: an instance that outlives the platform's process has
 * keys that the next one knows.
 */
export { mayAccess, type AccessFacts, type InstanceAccess, type ObjectName } from "./instance-access.ts";
export { InstanceKeys, type InstanceKey, type InstanceKeysOptions } from "./instance-keys.ts";
