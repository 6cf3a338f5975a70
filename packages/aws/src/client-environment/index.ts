/**
 * The output of `galatea env`: variables and files with which unchanged clients reach this platform. The platform's
 * proxy (CONNECT) serves the SageMaker SDK's HTTPS calls on the platform's port.
 */

export {
  clientEnvironment,
  type ClientEnvironment,
  type ClientEnvironmentOptions,
  type ClientProxy,
} from "./client-environment.ts";
export { attachConnectProxy, type ConnectProxyOptions } from "./https-hosts.ts";
export { previousEnvironment, shellChanges, changesToRestoreShell, type ShellChange } from "./shell-changes.ts";
export { stsHostNames } from "./sts-hosts.ts";
