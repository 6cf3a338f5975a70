/**
 * What `galatea env` prints and writes: variables and files with which unchanged clients reach this platform, the certificate that the
 * SageMaker SDK's https calls need, and the one-port listener that speaks both.
 */
export { createCertificate, type Certificate, type CertificateOptions } from "./certificate.ts";
export { clientEnvironment, type ClientEnvironment, type ClientEnvironmentOptions } from "./client-environment.ts";
export { serveTlsBesideHttp } from "./tls-beside-http.ts";
