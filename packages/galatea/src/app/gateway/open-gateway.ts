import { LeaderProxy } from "@galatea/aws/leader-proxy";
import { createPlatformServer, listenOn, platformServerLimits } from "@galatea/aws/http-server";
import type { AcceptedKeys } from "@galatea/aws/owner-keys";
import { systemClock, type Logger } from "@galatea/base";
import { FollowedEndpoints } from "@galatea/hosting/followed-endpoints";
import { FollowedDocuments, leaderKind, leaderOf } from "@galatea/hosting/records";
import { openPostgresReader, parseDatabaseUrl } from "@galatea/hosting/records/postgres";
import type { GatewayCommandOptions } from "../../options/index.ts";
import { createGatewayFront } from "./gateway-front.ts";
import { openOwnInvocations } from "./own-invocations.ts";
import { ReportedMetrics } from "./reported-metrics.ts";

export interface GatewayProcessOptions extends GatewayCommandOptions {
  /** The keys of the owner; null if the gateway has no agents. */
  readonly keys: AcceptedKeys | null;
  readonly log: Logger;
}

/** A gateway that listens. Disposal ends the requests in flight within `graceSecs`. */
export interface GatewayProcess extends AsyncDisposable {
  readonly url: string;
  readonly graceSecs: number;
}

/** Opens the port. The database may be unreachable: the gateway follows the records as soon as it can read them. */
export async function openGateway(options: GatewayProcessOptions): Promise<GatewayProcess> {
  const { log, keys } = options;
  const clock = systemClock;
  await using opening = new AsyncDisposableStack();
  const reader = opening.use(openPostgresReader(parseDatabaseUrl(options.records), clock));
  const kinds = keys === null ? [leaderKind] : [leaderKind, FollowedEndpoints.endpointKind];
  const documents = opening.use(new FollowedDocuments({ reader, kinds, clock, logger: log }));
  const leader = {
    get url() {
      return leaderOf(documents.of(leaderKind))?.url ?? null;
    },
    changed: () => documents.changed(),
  };
  const proxy = opening.use(new LeaderProxy({ leader, clock, logger: log }));
  const { server, close, streamAbort } = createPlatformServer(platformServerLimits);
  let url = "";
  const own =
    keys === null
      ? null
      : await openOwnInvocations(opening, {
          flags: options,
          keys,
          documents,
          series: opening.use(new ReportedMetrics({ leader, keys, region: options.region, clock, logger: log })),
          streamAbort,
          url: () => url,
          clock,
          log,
        });
  createGatewayFront({ own, proxy, leader, isReady: () => documents.isLoaded }).attach(server);
  url = await listenOn(server, options);
  opening.defer(() => close(platformServerLimits.stopGraceMs));
  return Object.assign(opening.move(), { url, graceSecs: platformServerLimits.stopGraceMs / 1000 });
}
