import { createPrivateKey, sign, verify, X509Certificate } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { createCertificate, type Certificate } from "@galatea/base/certificates";
import { stsHostNames } from "@galatea/aws";
import type { Logger } from "@galatea/base";

const yearMs = 365 * 24 * 3600 * 1000;

interface KeptCertificate extends Certificate {
  readonly names: readonly string[];
  readonly untilMs: number;
}

/**
 * Returns the platform's own certificate, with which the TLS listener serves and which clients of `galatea env` trust.
 * The first call generates it and stores it with its key in `directory`. A damaged certificate is logged, renamed and
 * replaced. Clients that trusted it must then trust the new one.
 */
export async function clientCertificate(directory: string, logger: Logger): Promise<Certificate> {
  const path = join(directory, "certificate.json");
  const names = [...stsHostNames(), "localhost", "127.0.0.1"];
  const kept = await readKept(path, logger);
  if (kept !== null && kept.untilMs > Date.now() && names.every((name) => kept.names.includes(name))) return kept;
  const untilMs = Date.now() + 10 * yearMs;
  const created = createCertificate({
    names,
    notBefore: new Date(Date.now() - yearMs / 365),
    notAfter: new Date(untilMs),
  });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const partial = `${path}.${process.pid}`;
  await writeFile(partial, JSON.stringify({ ...created, names, untilMs }), { mode: 0o600 });
  await rename(partial, path);
  return created;
}

/** Reads the stored certificate; null if there is none or it cannot be used. */
async function readKept(path: string, logger: Logger): Promise<KeptCertificate | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    if ((error as NodeJS.ErrnoException).code !== "EISDIR") throw error;
    text = "";
  }
  try {
    const found = JSON.parse(text) as KeptCertificate;
    checkCertificate(found);
    return found;
  } catch (error) {
    const aside = `${path}.damaged-${Date.now()}`;
    await rename(path, aside);
    logger.error("the platform's certificate is damaged; it is kept aside and replaced by a new one", {
      path,
      aside,
      reason: String(error),
    });
    return null;
  }
}

/** Throws unless the certificate is self-signed, matches the stored key, and a listener can use both. */
function checkCertificate({ certificatePem, keyPem, names, untilMs }: KeptCertificate): void {
  const certificate = new X509Certificate(certificatePem);
  const key = createPrivateKey(keyPem);
  const question = Buffer.from("is this the certificate's key?");
  if (!verify(null, question, certificate.publicKey, sign(null, question, key)))
    throw new Error("its key does not match");
  if (!certificate.verify(certificate.publicKey)) throw new Error("its signature is wrong");
  createSecureContext({ cert: certificatePem, key: keyPem });
  if (!Array.isArray(names) || typeof untilMs !== "number") throw new Error("its names or its validity are missing");
}
