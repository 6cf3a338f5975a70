/**
 * The keys that code of instances signs its AWS calls with. They are records: an instance that outlives the platform's process has keys that
 * the next one knows.
 */
export { InstanceKeys, type InstanceKey, type InstanceKeysOptions } from "./instance-keys.ts";
