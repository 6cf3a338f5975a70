import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { clientEnvironment } from "../aws/index.ts";
import { clientCertificate } from "./client-certificate.ts";
import { dataDirectories } from "./directories.ts";
import type { UpOptions } from "./options.ts";
import { platformAccount, platformRegion } from "./platform.ts";

/** `galatea env`: writes the files that clients read below the data directory, and prints the variables for `eval`. */
export async function runEnv(options: UpOptions): Promise<number> {
  const { clients } = dataDirectories(options.dataDirectory, process.env);
  const { certificatePem } = await clientCertificate(clients);
  const { variables, files } = clientEnvironment({
    url: `http://${options.host}:${options.port}`,
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
  for (const [name, value] of Object.entries(variables)) process.stdout.write(`export ${name}=${quoted(value)}\n`);
  return 0;
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
