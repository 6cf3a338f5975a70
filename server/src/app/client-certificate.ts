import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCertificate, stsHosts, type Certificate } from "../aws/index.ts";

const yearMs = 365 * 24 * 3600 * 1000;

/**
 * The platform's own certificate for its TLS side, made once and kept with its key below `directory`: the listener shows it, and
 * the environment that `galatea env` prints trusts it. Whoever of the two comes first makes it.
 */
export async function clientCertificate(directory: string): Promise<Certificate> {
  const path = join(directory, "certificate.json");
  const kept = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  const names = [...stsHosts(), "localhost", "127.0.0.1"];
  if (kept !== null) {
    const found = JSON.parse(kept) as Certificate & { readonly names: readonly string[]; readonly untilMs: number };
    if (found.untilMs > Date.now() && names.every((name) => found.names.includes(name))) return found;
  }
  const untilMs = Date.now() + 10 * yearMs;
  const made = createCertificate({
    names,
    notBefore: new Date(Date.now() - yearMs / 365),
    notAfter: new Date(untilMs),
  });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const partial = `${path}.${process.pid}`;
  await writeFile(partial, JSON.stringify({ ...made, names, untilMs }), { mode: 0o600 });
  await rename(partial, path);
  return made;
}
