/** The AWS actions that an instance's access key allows. Hosting decides which resources each action may use. */
export { instancePermissions, type InstancePermissions } from "./instance-permissions.ts";
