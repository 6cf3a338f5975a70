/**
 * The access keys of code in instances, and the access that they grant. Keys are recorded, so that the keys of an instance that outlives the
 * platform are valid after a restart.
 */
export { isAccessAllowed, type AccessContext, type InstanceAccess, type ObjectName } from "./instance-access.ts";
export { InstanceKeys, type InstanceKey, type InstanceKeysOptions } from "./instance-keys.ts";
