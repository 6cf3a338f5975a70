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
  /** Actions of alarms other than scaling; none by default. */
  readonly otherActions?: ResolveAlarmAction;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Alarms and scaling, for the services. */
export interface ScaledHosting {
  readonly alarms: Alarms;
  readonly alarmActions: ResolveAlarmAction;
  readonly scaling: Scaling;
  readonly scalable: ScalableResources;
}

/** Opens alarms, which hosting reads while it deploys, and their actions, which need hosting and are opened later. */
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
