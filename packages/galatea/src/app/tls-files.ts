import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Certificate } from "@galatea/base/certificates";

/**
 * Paths of PEM files for one side of a mutual TLS connection: its own certificate and key, and the certificate
 * authorities of the other side.
 */
export interface TlsPaths {
  readonly tlsCert: string;
  readonly tlsKey: string;
  readonly tlsCa: string;
}

export interface TlsFiles {
  readonly certificate: Certificate;
  /** The certificate authorities of the other side. */
  readonly caPem: string;
}

/**
 * Reads the files. Rejects with an error that names the flag if a file cannot be read, or if certificate and key do not
 * match. `prefix` is the prefix of the flags' names.
 */
export async function readTlsFiles({ tlsCert, tlsKey, tlsCa }: TlsPaths, prefix = "--tls"): Promise<TlsFiles> {
  const [certificatePem, keyPem, caPem] = await Promise.all([
    readPem(tlsCert, `${prefix}-cert`),
    readPem(tlsKey, `${prefix}-key`),
    readPem(tlsCa, `${prefix}-ca`),
  ]);
  checkUse(`'${tlsCert}' and '${tlsKey}' are not a certificate and its key (${prefix}-cert, ${prefix}-key)`, {
    cert: certificatePem,
    key: keyPem,
  });
  checkUse(`'${tlsCa}' has no certificate of an authority (${prefix}-ca)`, { ca: caPem });
  return { certificate: { certificatePem, keyPem }, caPem };
}

async function readPem(path: string, flag: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`cannot read the file of ${flag}: ${(error as Error).message}`, { cause: error });
  }
}

function checkUse(text: string, options: Parameters<typeof createSecureContext>[0]): void {
  try {
    createSecureContext(options);
  } catch (error) {
    throw new Error(`${text}: ${(error as Error).message}`, { cause: error });
  }
}
