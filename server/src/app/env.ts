import { mkdir, writeFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { dirname } from "node:path";
import { clientEnvironment } from "../aws/index.ts";
import { clientCertificate } from "./client-certificate.ts";
import { dataDirectories } from "./directories.ts";
import type { UpOptions } from "./options.ts";
import { platformAccount, platformRegion } from "./platform.ts";

/**
 * `galatea env`: writes the files that clients read below the data directory, and prints the variables for `eval`. 1 where the
 * files cannot be written; then nothing is printed, since the variables name them.
 */
export async function runEnv(options: UpOptions): Promise<number> {
  try {
    const variables = await writtenEnvironment(options);
    process.stdout.write(variables.map(([name, value]) => `export ${name}=${quoted(value)}\n`).join(""));
    return 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    process.stderr.write(`galatea env: ${(error as Error).message}\n`);
    return 1;
  }
}

async function writtenEnvironment(options: UpOptions): Promise<readonly (readonly [string, string])[]> {
  const { clients } = dataDirectories(options.dataDirectory, process.env);
  const { certificatePem } = await clientCertificate(clients);
  const { variables, files } = clientEnvironment({
    url: platformUrl(options),
    region: platformRegion,
    accessKeyId: platformAccount,
    secretAccessKey: "galatea",
    directory: clients,
    certificatePem,
  });
  for (const { path, text } of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  return Object.entries(variables);
}

/** What clients call a platform by that listens there. */
function platformUrl({ host, port }: UpOptions): string {
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
