import { randomUUID } from "node:crypto";
import { alarmLimits, Alarms, type ResolveAlarmAction } from "@galatea/hosting/alarms";
import { createAlarmValueReader } from "@galatea/aws";
import type { Clock, Logger } from "@galatea/base";
import type { Hosting, Owner } from "@galatea/hosting";
import type { MetricStore } from "@galatea/base/metrics";
import type { Documents } from "@galatea/hosting/records";
import { Scaling, scalingLimits, type ScalableResources } from "@galatea/hosting/scaling";
import { hostingScalableResources } from "@galatea/hosting/scaling-targets";

export interface AlarmOpening {
  readonly documents: Documents;
  readonly series: MetricStore;
  /** Resolves alarm actions other than scaling policies; absent: there are none. */
  readonly otherActions?: ResolveAlarmAction;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The alarms and scaling policies of hosting. */
export interface ScaledHosting {
  readonly alarms: Alarms;
  readonly alarmActions: ResolveAlarmAction;
  readonly scaling: Scaling;
  readonly scalable: ScalableResources;
}

/**
 * Opens the alarms and their actions. Hosting reads alarms while it deploys, so they are opened before hosting. Scaling
 * actions need hosting and are opened later.
 */
export async function openAlarms(opening: AsyncDisposableStack, parts: AlarmOpening) {
  let scaling: Scaling | null = null;
  const alarmActions: ResolveAlarmAction = (arn) => scaling?.action(arn) ?? parts.otherActions?.(arn) ?? null;
  const { documents, clock, logger } = parts;
  const common = { documents, readValues: createAlarmValueReader(parts), clock, logger };
  const alarms = opening.use(await Alarms.open({ ...common, actions: alarmActions, limits: alarmLimits }));
  return {
    alarms,
    openScaling: async (hosting: Hosting, owner: Owner): Promise<ScaledHosting> => {
      const scalable = hostingScalableResources(hosting, owner);
      const limits = scalingLimits;
      scaling = opening.use(await Scaling.open({ ...common, alarms, resources: scalable, newId: randomUUID, limits }));
      alarms.resume();
      return { alarms, alarmActions, scaling, scalable };
    },
  };
}
