import { readFile } from "node:fs/promises";

/**
 * The fields of Docker's `config.json` that contain the credentials written by `docker login`. Credentials in
 * credential helpers are not in this file and are not supported.
 */
interface DockerConfig {
  readonly auths?: Readonly<Record<string, { readonly auth?: string; readonly identitytoken?: string }>>;
}

const hubKey = "https://index.docker.io/v1/";

/** Returns the registry of an image, spelled as in Docker's `config.json`. */
function registryOf(image: string): string {
  const [first = "", ...rest] = image.split("/");
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost && first !== "docker.io" ? first : hubKey;
}

/**
 * Returns the value of the engine's X-Registry-Auth header for an image; null if there are no credentials for its
 * registry.
 */
export function registryKey(image: string, { auths = {} }: DockerConfig): string | null {
  const registry = registryOf(image);
  const { auth = "", identitytoken } = auths[registry] ?? auths[`https://${registry}`] ?? {};
  const [, username, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(auth, "base64").toString("utf8")) ?? [];
  const key =
    identitytoken !== undefined && identitytoken !== ""
      ? { identitytoken, serveraddress: registry }
      : username === undefined
        ? null
        : { username, password, serveraddress: registry };
  return key === null ? null : Buffer.from(JSON.stringify(key)).toString("base64url");
}

/** Reads Docker's `config.json`. A missing file counts as one without credentials; any other error rejects. */
export async function readDockerConfig(path: string): Promise<DockerConfig> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as DockerConfig;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new Error(`the keys of registries in '${path}' cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
