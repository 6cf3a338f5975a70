/**
 * The output of `galatea env`: variables and files with which unchanged clients reach this platform, the certificate
 * for the SageMaker SDK's https calls, and the CONNECT handler that serves those calls on the platform's port.
 */

export {
  clientEnvironment,
  type ClientEnvironment,
  type ClientEnvironmentOptions,
  type ClientProxy,
} from "./client-environment.ts";
export { answerHttpsHosts, type HttpsHostsOptions } from "./https-hosts.ts";
export { shellBefore, shellChanges, shellRestored, type ShellChange } from "./shell-changes.ts";
export { stsHosts } from "./sts-hosts.ts";
