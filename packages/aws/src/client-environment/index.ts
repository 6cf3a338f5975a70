/**
 * What `galatea env` prints and writes: variables and files with which unchanged clients reach this platform, the certificate that the
 * SageMaker SDK's https calls need, and the CONNECT handler that answers those calls on the platform's one port.
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
