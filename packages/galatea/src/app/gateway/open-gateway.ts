import { LeaderProxy } from "@galatea/aws/leader-proxy";
import { createPlatformServer, listenOn, platformServerLimits } from "@galatea/aws/http-server";
import { systemClock, type Logger } from "@galatea/base";
import { FollowedDocuments, leaderKind, leaderOf } from "@galatea/hosting/records";
import { openPostgresReader, parseDatabaseUrl } from "@galatea/hosting/records/postgres";
import type { GatewayCommandOptions } from "../../options/index.ts";
import { createGatewayFront } from "./gateway-front.ts";

export interface GatewayProcessOptions extends GatewayCommandOptions {
  readonly log: Logger;
}

/** A gateway that listens. Disposal ends the requests in flight within `graceSecs`. */
export interface GatewayProcess extends AsyncDisposable {
  readonly url: string;
  readonly graceSecs: number;
}

/** Opens the port. The database may be unreachable: the gateway follows the records as soon as it can read them. */
export async function openGateway(options: GatewayProcessOptions): Promise<GatewayProcess> {
  const { log: logger } = options;
  const clock = systemClock;
  await using opening = new AsyncDisposableStack();
  const reader = opening.use(openPostgresReader(parseDatabaseUrl(options.records), clock));
  const documents = opening.use(new FollowedDocuments({ reader, kinds: [leaderKind], clock, logger }));
  const leader = {
    get url() {
      return leaderOf(documents.of(leaderKind))?.url ?? null;
    },
    changed: () => documents.changed(),
  };
  const proxy = opening.use(new LeaderProxy({ leader, clock, logger }));
  const { server, close } = createPlatformServer(platformServerLimits);
  createGatewayFront({ proxy, leader, isReady: () => documents.isLoaded }).attach(server);
  const url = await listenOn(server, options);
  opening.defer(() => close(platformServerLimits.stopGraceMs));
  return Object.assign(opening.move(), { url, graceSecs: platformServerLimits.stopGraceMs / 1000 });
}
