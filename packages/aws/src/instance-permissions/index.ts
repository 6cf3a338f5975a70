/** The AWS actions that an instance's access key allows; hosting decides about each resource. */
export { instancePermissions, type InstancePermissions } from "./instance-permissions.ts";
