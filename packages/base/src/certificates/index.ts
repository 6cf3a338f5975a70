/** Self-signed X.509 certificates, written without OpenSSL. */
export { createCertificate, type Certificate } from "./certificate.ts";
