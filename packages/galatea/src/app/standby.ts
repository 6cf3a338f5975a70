import { createStandbyGateway } from "@galatea/aws";
import { createPlatformServer, listenOn, platformServerLimits } from "@galatea/aws/http-server";
import { systemClock, type Logger } from "@galatea/base";
import type { UpOptions } from "../options/index.ts";
import type { Platform } from "./platform/platform.ts";

export interface StandbyOptions {
  readonly options: Pick<UpOptions, "host" | "port" | "records">;
  /** The listening socket of this platform's previous process; null after a normal start. */
  readonly listeningFd: number | null;
  readonly log: Logger;
}

/** Opens the platform. While another platform has the records, waits until it has released them and tries again. */
export async function openAsStandby(
  open: (listeningFd: number | null) => Promise<Platform>,
  standby: StandbyOptions,
): Promise<Platform> {
  const { WriteLockLost } = await import("@galatea/hosting/records/postgres");
  for (let { listeningFd } = standby; ; listeningFd = null) {
    try {
      return await open(listeningFd);
    } catch (error) {
      if (!(error instanceof WriteLockLost)) throw error;
    }
    await waitWhileTaken({ ...standby, listeningFd });
  }
}

/** Serves the port as a standby until no platform has the records. */
async function waitWhileTaken({ options, listeningFd, log }: StandbyOptions): Promise<void> {
  const { parseDatabaseUrl, waitForWriterLock } = await import("@galatea/hosting/records/postgres");
  const address = parseDatabaseUrl(options.records ?? "");
  let leader: string | null = null;
  const { server, close } = createPlatformServer(platformServerLimits);
  createStandbyGateway({ leader: () => leader, clock: systemClock, logger: log }).attach(server);
  const url = await listenOn(server, { ...options, listeningFd });
  log.info(`standby at ${url}: another platform has the records in ${address.shown}`);
  const onHolder = (found: string | null) => {
    leader = found;
    log.info("standby: another platform has the records", { leader });
  };
  // This signal never aborts, because a stop signal ends the process at once: a standby has no state to save.
  const { signal } = new AbortController();
  try {
    await waitForWriterLock({ address, clock: systemClock, logger: log, signal, onHolder });
  } finally {
    await close(0);
  }
  log.info("no platform has the records: this one takes over");
}
