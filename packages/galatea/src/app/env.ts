import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { rootCertificates } from "node:tls";
import {
  clientEnvironment,
  previousEnvironment,
  type ClientProxy,
  shellChanges,
  changesToRestoreShell,
  type ShellChange,
} from "@galatea/aws";
import { createLogger, type Logger } from "@galatea/base";
import { clientCertificate } from "./client-certificate.ts";
import { shellWord } from "./shell-words.ts";
import { resolveTargetPlatform } from "./target-platform.ts";
import type { EnvOptions } from "../options/index.ts";
import { OwnerKeysError } from "@galatea/aws/owner-keys";
import { PlatformChoice } from "../data-directory/index.ts";

/**
 * Runs `galatea env`, which writes files for clients to the data directory and prints variables for `eval`. If the
 * files cannot be written, prints no variables, because the variables contain the files' paths, and resolves with 1.
 */
export async function env(options: EnvOptions): Promise<number> {
  try {
    const changes = options.unset
      ? changesToRestoreShell(process.env)
      : shellChanges(await writtenEnvironment(options), process.env);
    process.stdout.write(changes.map(printed).join(""));
    return 0;
  } catch (error) {
    const isRefusal = error instanceof OwnerKeysError || error instanceof PlatformChoice;
    if ((error as NodeJS.ErrnoException).code === undefined && !isRefusal) throw error;
    process.stderr.write(`galatea env: ${(error as Error).message}\n`);
    return 1;
  }
}

async function writtenEnvironment(options: EnvOptions): Promise<Readonly<Record<string, string | null>>> {
  const { url, region, key, directories, hasFoundAddress } = await resolveTargetPlatform(
    options,
    process.env,
    stderrLog(),
  );
  const { clients } = directories;
  if (!hasFoundAddress)
    process.stderr.write(
      `galatea env: no platform runs over '${directories.root}' yet: the variables have the default address ${url}; ` +
        "run `galatea env` again after a start with another address\n",
    );
  const shell = previousEnvironment(process.env);
  const { variables, files } = clientEnvironment({
    url,
    region,
    ...key,
    directory: clients,
    proxy: options.proxy ? await clientProxy(clients, shell.AWS_CA_BUNDLE ?? "") : null,
    shell,
  });
  for (const { path, text } of files) {
    await mkdir(dirname(path), { recursive: true });
    // Written to another name and renamed, so that concurrent readers see either the old file or the new one.
    const partial = `${path}.${process.pid}`;
    await writeFile(partial, text);
    await rename(partial, path);
  }
  return variables;
}

/**
 * Returns the certificates for the proxy: the platform's, and the authorities that the shell's AWS clients trusted
 * before. These come from the shell's own file, or from the system.
 */
async function clientProxy(clients: string, bundle: string): Promise<ClientProxy> {
  const { certificatePem } = await clientCertificate(clients, stderrLog());
  const isOurs = bundle === "" || bundle === join(clients, "certificate.pem");
  const authoritiesPem = isOurs ? `${rootCertificates.join("\n")}\n` : await readFile(bundle, "utf8");
  return { certificatePem, authoritiesPem };
}

/** Returns a logger that writes to stderr, because the shell evaluates stdout. */
function stderrLog(): Logger {
  return createLogger((_level, message, fields) => {
    process.stderr.write(`galatea env: ${message} ${JSON.stringify(fields)}\n`);
  });
}

function printed([name, value]: ShellChange): string {
  return value === null ? `unset ${name}\n` : `export ${name}=${shellWord(value)}\n`;
}
