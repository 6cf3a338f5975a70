import { createHash, createPrivateKey, generateKeyPair, sign, type KeyObject } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createCertificate } from "@galatea/base/certificates";
import type { Clock, Logger } from "@galatea/base";
import type { Sign } from "../topics/index.ts";

/** Signs messages of topics as SNS does, with RSA. Receivers fetch the certificate. */
export interface MessageSigner {
  readonly sign: Sign;
  readonly certificatePem: string;
  /** The path contains a hash of the certificate, because receivers cache the certificate by its URL. */
  readonly certificatePath: string;
}

const yearMs = 365 * 24 * 3600 * 1000;
const digests = { "1": "RSA-SHA1", "2": "RSA-SHA256" } as const;

interface KeptKey {
  readonly keyPem: string;
  readonly certificatePem: string;
  readonly untilMs: number;
}

/**
 * Opens the signer. The key is generated once and stored in `directory`. An unreadable key file is renamed and
 * replaced.
 */
export async function openMessageSigner(
  directory: string,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<MessageSigner> {
  const path = join(directory, "topic-messages.json");
  const kept = (await readKept(path, { clock, logger })) ?? (await makeKept(path, clock));
  const key = createPrivateKey(kept.keyPem);
  const name = createHash("sha256").update(kept.certificatePem).digest("hex").slice(0, 32);
  return {
    certificatePem: kept.certificatePem,
    certificatePath: `/SimpleNotificationService-${name}.pem`,
    sign: (text, version) => sign(digests[version], Buffer.from(text), key).toString("base64"),
  };
}

async function makeKept(path: string, clock: Clock): Promise<KeptKey> {
  const generated = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
  const rsaKey: KeyObject = generated.privateKey;
  const nowMs = clock.epochMs();
  const untilMs = nowMs + 10 * yearMs;
  const created = createCertificate({
    names: ["sns.amazonaws.com"],
    notBefore: new Date(nowMs - yearMs / 365),
    notAfter: new Date(untilMs),
    rsaKey,
  });
  const keptKey = { ...created, untilMs };
  await mkdir(join(path, ".."), { recursive: true, mode: 0o700 });
  const partial = `${path}.${process.pid}`;
  await writeFile(partial, JSON.stringify(keptKey), { mode: 0o600, flush: true });
  await rename(partial, path);
  return keptKey;
}

async function readKept(
  path: string,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<KeptKey | null> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (text === null) return null;
  try {
    const found = JSON.parse(text) as KeptKey;
    createPrivateKey(found.keyPem);
    return found.untilMs > clock.epochMs() ? found : null;
  } catch (error) {
    const aside = `${path}.damaged-${clock.epochMs()}`;
    await rename(path, aside);
    logger.error("the key of topics' messages is damaged; it is kept aside and replaced by a new one", {
      path,
      aside,
      reason: String(error),
    });
    return null;
  }
}
