import { randomBytes } from "node:crypto";
import { chmod, link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makeDirectory, type Logger } from "@galatea/base";

/** A key that allows everything on the platform. */
export interface RootKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** The source of the platform's keys. */
export type KeySource =
  | { readonly from: "file"; readonly path: string }
  | { readonly from: "environment"; readonly key: RootKey }
  /** A key that the platform generates once and stores in a file that only the file's owner can read. */
  | { readonly from: "data directory"; readonly path: string };

/** An error for keys with which the platform cannot start. The message is printed unchanged. */
export class OwnerKeysError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "OwnerKeysError";
  }
}

const keyIdBytes = 10;
const secretBytes = 30;

/** Returns the source: the given file, else the environment's two variables, else the file in the data directory. */
export function findKeySource(
  file: string | null,
  env: Readonly<Record<string, string | undefined>>,
  generatedPath: string,
): KeySource {
  if (file !== null) return { from: "file", path: file };
  const { GALATEA_ACCESS_KEY_ID: accessKeyId, GALATEA_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if ((accessKeyId ?? "") === "" && (secretAccessKey ?? "") === "")
    return { from: "data directory", path: generatedPath };
  if (!accessKeyId || !secretAccessKey) {
    throw new OwnerKeysError("GALATEA_ACCESS_KEY_ID and GALATEA_SECRET_ACCESS_KEY must both be set, or neither");
  }
  return { from: "environment", key: checkedKey({ accessKeyId, secretAccessKey }, "the environment") };
}

/** Returns every accepted key; `galatea env` prints the first. */
export async function readOwnerKeys(source: KeySource, logger: Logger): Promise<readonly [RootKey, ...RootKey[]]> {
  if (source.from === "environment") return [source.key];
  const { path } = source;
  if (source.from === "file") return parseCredentialsFile(await readFile(path, "utf8"), path);
  try {
    return parseCredentialsFile(await generatedKeys(path), path);
  } catch (error) {
    if (!(error instanceof OwnerKeysError)) throw error;
    // A generated file that is damaged (a disk error) is renamed and replaced. Clients must use the new key.
    const aside = `${path}.damaged-${randomBytes(6).toString("hex")}`;
    await rename(path, aside);
    logger.error("the platform's credentials are damaged; they are kept aside and replaced by new ones", {
      path,
      aside,
      reason: error.message,
    });
    return parseCredentialsFile(await generatedKeys(path), path);
  }
}

/**
 * Returns the text of the file with the generated key, and creates the file if it is absent. When several processes create it at once, all
 * use the same key.
 */
async function generatedKeys(path: string): Promise<string> {
  const kept = await readOrNull(path);
  if (kept !== null) return kept;
  const accessKeyId = `GALA${base32(randomBytes(keyIdBytes))}`;
  const created = keysText({ accessKeyId, secretAccessKey: randomBytes(secretBytes).toString("base64") });
  await makeDirectory(dirname(path));
  const partial = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(partial, created, { mode: 0o600, flag: "wx" });
    await chmod(partial, 0o600);
    await link(partial, path);
    return created;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return await readFile(path, "utf8");
  } finally {
    await rm(partial, { force: true });
  }
}

async function readOrNull(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Formats a key like the AWS tools, so that AWS_SHARED_CREDENTIALS_FILE can name the file. */
function keysText({ accessKeyId, secretAccessKey }: RootKey): string {
  return `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`;
}

/** Reads a credentials file of the AWS tools: the keys of all profiles are accepted. */
export function parseCredentialsFile(text: string, path: string): readonly [RootKey, ...RootKey[]] {
  const profiles: Map<string, string>[] = [];
  for (const line of text.split(/\r?\n/)) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#") || trimmed.startsWith(";")) continue;
    if (/^\[[^\]]+\]$/.test(trimmed)) profiles.push(new Map());
    const equals = trimmed.indexOf("=");
    if (equals > 0)
      profiles.at(-1)?.set(trimmed.slice(0, equals).trim().toLowerCase(), trimmed.slice(equals + 1).trim());
  }
  const keys = profiles.flatMap((profile): RootKey[] => {
    const accessKeyId = profile.get("aws_access_key_id");
    const secretAccessKey = profile.get("aws_secret_access_key");
    if (accessKeyId === undefined && secretAccessKey === undefined) return [];
    return [checkedKey({ accessKeyId: accessKeyId ?? "", secretAccessKey: secretAccessKey ?? "" }, path)];
  });
  const [first, ...more] = keys;
  if (first === undefined) {
    throw new OwnerKeysError(`${path} has no aws_access_key_id and aws_secret_access_key below a [profile]`);
  }
  if (new Set(keys.map(({ accessKeyId }) => accessKeyId)).size < keys.length) {
    throw new OwnerKeysError(`${path} names one aws_access_key_id twice`);
  }
  return [first, ...more];
}

function checkedKey(key: RootKey, from: string): RootKey {
  // A slash would be ambiguous in the credential scope of a signature, and a line break would end a line in the output of `galatea env`.
  if (!/^[\w+=@.-]{3,128}$/.test(key.accessKeyId)) {
    throw new OwnerKeysError(`the access key id in ${from} has to be 3 to 128 letters, digits or any of _+=@.-`);
  }
  if (!/^[\x21-\x7e]{8,256}$/.test(key.secretAccessKey)) {
    throw new OwnerKeysError(`the secret access key in ${from} has to be 8 to 256 printable characters`);
  }
  return key;
}

function base32(bytes: Uint8Array): string {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return [...bits.matchAll(/.{5}/g)].map(([five]) => letters[Number.parseInt(five, 2)]).join("");
}
