import { isIPv6 } from "node:net";
import type { Logger } from "@galatea/base";
import {
  credentialsPath,
  dataDirectories,
  type DataDirectories,
  findRunningPlatform,
  type RunningPlatform,
} from "../data-directory/index.ts";
import { platformDefaults, type PlatformAddressOptions } from "../options/index.ts";
import { findKeySource, OwnerKeysError, readOwnerKeys, type RootKey } from "@galatea/aws/owner-keys";

/** The address and credentials of the platform that a command calls. */
export interface TargetPlatform {
  readonly url: string;
  readonly region: string;
  /** The owner's key, which allows everything on the platform. */
  readonly key: RootKey;
  readonly directories: DataDirectories;
  /**
   * False if neither a flag nor a running platform gives the address. It is then the default address of `galatea up`.
   */
  readonly hasFoundAddress: boolean;
}

/**
 * Completes the flags with the address of the running platform, or with the defaults of `galatea up`. Throws
 * PlatformChoice if several platforms run and no flag selects one. Throws OwnerKeysError if the key cannot be read.
 */
export async function resolveTargetPlatform(
  location: PlatformAddressOptions,
  env: Readonly<Record<string, string | undefined>>,
  log: Logger,
): Promise<TargetPlatform> {
  const running = findRunningPlatform(location, env);
  const directories = dataDirectories(running?.dataDirectory ?? location.data, env);
  const host = location.host ?? running?.host ?? platformDefaults.host;
  const port = location.port ?? running?.port ?? platformDefaults.port;
  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    region: location.region ?? running?.region ?? platformDefaults.region,
    key: await keyOf(running, location, { env, log, generatedPath: credentialsPath(directories) }),
    directories,
    hasFoundAddress: running !== null || location.host !== null || location.port !== null,
  };
}

interface KeySearch {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly generatedPath: string;
}

async function keyOf(
  running: RunningPlatform | null,
  { credentials }: PlatformAddressOptions,
  { env, log, generatedPath }: KeySearch,
): Promise<RootKey> {
  const input = findKeySource(credentials ?? running?.credentialsPath ?? null, env, generatedPath);
  if (running !== null && running.credentialsPath === null && input.from === "data directory") {
    throw new OwnerKeysError(
      `the platform at port ${running.port} gets its keys from its environment variables: set GALATEA_ACCESS_KEY_ID and ` +
        "GALATEA_SECRET_ACCESS_KEY here as well, or name a file of them with --credentials",
    );
  }
  const [key] = await readOwnerKeys(input, log);
  return key;
}
