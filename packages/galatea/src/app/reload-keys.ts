import type { Logger } from "@galatea/base";
import { readOwnerKeys, type KeySource, type RootKey } from "@galatea/aws/owner-keys";

interface KeyOwner {
  replaceKeys(keys: readonly [RootKey, ...RootKey[]]): void;
}

/**
 * Handles SIGHUP: reads the keys again, and rejects keys that are no longer in the file. If the file cannot be used,
 * the current keys stay accepted.
 */
export async function reloadKeys(owner: KeyOwner, source: () => KeySource, log: Logger): Promise<void> {
  try {
    const from = source();
    if (from.from === "environment") {
      log.warning(
        "SIGHUP: the keys come from environment variables and stay the same: restart the platform to change them",
      );
      return;
    }
    const keys = await readOwnerKeys(from, log);
    owner.replaceKeys(keys);
    log.info("SIGHUP: keys reloaded; all other keys are rejected from now on", { path: from.path, keys: keys.length });
  } catch (error) {
    log.error(`SIGHUP: keys not reloaded: ${(error as Error).message}`);
  }
}
