import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCertificate } from "../../packages/base/src/certificates/certificate.ts";

const dayMs = 86_400_000;

/** A self-signed certificate: paths of the certificate and its key, and their contents. */
export interface Identity {
  readonly certificate: string;
  readonly key: string;
  readonly certificatePem: string;
  readonly keyPem: string;
}

export async function writeIdentity(directory: string, name: string, host: string): Promise<Identity> {
  const now = Date.now();
  const dates = { notBefore: new Date(now - dayMs), notAfter: new Date(now + dayMs) };
  const { certificatePem, keyPem } = createCertificate({ names: [host], ...dates });
  const identity = { certificate: join(directory, `${name}.pem`), key: join(directory, `${name}.key`) };
  await writeFile(identity.certificate, certificatePem);
  await writeFile(identity.key, keyPem);
  return { ...identity, certificatePem, keyPem };
}

/** The TLS options of a listener with this certificate that requests none from clients. */
export const serverTls = ({ certificatePem, keyPem }: Identity) => ({
  certificate: Buffer.from(certificatePem),
  key: Buffer.from(keyPem),
  clientRoots: null,
});
