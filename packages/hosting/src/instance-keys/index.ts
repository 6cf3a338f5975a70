/**
 * The access keys of code in instances, and the access that they grant. Keys are stored on disk. A running instance
 * that is adopted after a restart of the platform can therefore keep its keys.
 */
export { isAccessAllowed, type AccessContext, type InstanceAccess, type ObjectName } from "./instance-access.ts";
export { InstanceKeys, type InstanceKey, type InstanceKeysOptions } from "./instance-keys.ts";
