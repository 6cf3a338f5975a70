import { AwsError } from "@galatea/base";
import { validationError } from "@galatea/hosting";
import { nextRunMs, ScheduleError, type ScheduledAction } from "@galatea/hosting/scaling";
import type {
  ApplicationAutoscalingInputs,
  ApplicationAutoscalingOperations,
} from "../../spec/gen/application-autoscaling.ts";
import { pageAfter, type CallContext, type OperationRows } from "../../wire/index.ts";
import {
  isRequestedTarget,
  requireRegisteredTarget,
  autoscalingPageQuery,
  type AutoscalingDependencies,
} from "./target-queries.ts";
import { describeScheduledAction } from "./descriptions.ts";
import { resolveScaledTarget, checkServiceNamespace } from "./resources.ts";

type Rows = OperationRows<ApplicationAutoscalingOperations>;
type ScheduledInput = ApplicationAutoscalingInputs["PutScheduledActionRequest"];

export function scheduledOperations(dependencies: AutoscalingDependencies) {
  const { scaling } = dependencies;
  return {
    PutScheduledAction: {
      async handle(input, context) {
        const { scheduled } = requireRegisteredTarget(scaling, input);
        const before = scheduled.find(({ name }) => name === input.ScheduledActionName) ?? null;
        await scaling.putScheduled(scheduledAction(dependencies, input, before, context));
        return {};
      },
    },
    DeleteScheduledAction: {
      async handle(input) {
        const { scheduled } = requireRegisteredTarget(scaling, input);
        const found = scheduled.find(({ name }) => name === input.ScheduledActionName);
        if (found === undefined) {
          const named = `service namespace: sagemaker, scheduled action name: ${input.ScheduledActionName}`;
          throw new AwsError("ObjectNotFoundException", `No scheduled action found for ${named}`);
        }
        await scaling.deleteScheduled(found);
        return {};
      },
    },
    DescribeScheduledActions: {
      async handle(input) {
        checkServiceNamespace(input);
        const names = input.ScheduledActionNames === undefined ? null : new Set(input.ScheduledActionNames);
        const found = scaling
          .list()
          .filter(({ target }) => isRequestedTarget(input, target))
          .flatMap(({ scheduled }) => scheduled)
          .filter(({ name }) => names === null || names.has(name))
          .toSorted((a, b) => (a.arn < b.arn ? -1 : 1));
        const { page, next } = pageAfter(
          found,
          ({ arn }) => arn,
          autoscalingPageQuery("DescribeScheduledActions", input),
        );
        return { ScheduledActions: page.map(describeScheduledAction), NextToken: next };
      },
    },
  } satisfies Partial<Rows>;
}

/**
 * Returns the action with the members of the request. An absent member keeps the value of the existing action. Throws
 * AwsError for invalid times.
 */
function scheduledAction(
  { clock, newId }: AutoscalingDependencies,
  input: ScheduledInput,
  before: ScheduledAction | null,
  context: CallContext,
): ScheduledAction {
  const { ResourceId: resourceId, ScalableDimension: dimension, ScheduledActionName: name } = input;
  const expression = input.Schedule ?? before?.expression;
  if (expression === undefined) throw validationError("Schedule must be specified.");
  const bounds = input.ScalableTargetAction;
  const minCapacity = bounds === undefined ? (before?.minCapacity ?? null) : (bounds.MinCapacity ?? null);
  const maxCapacity = bounds === undefined ? (before?.maxCapacity ?? null) : (bounds.MaxCapacity ?? null);
  if (minCapacity === null && maxCapacity === null) {
    throw validationError("ScalableTargetAction must specify MinCapacity, MaxCapacity or both.");
  }
  const { capacityMin: least } = resolveScaledTarget(input);
  if (minCapacity !== null && minCapacity < least)
    throw validationError(`MinCapacity for ${dimension} must be at least ${least}; it is ${minCapacity}.`);
  if (minCapacity !== null && maxCapacity !== null && minCapacity > maxCapacity) {
    throw validationError("Maximum capacity cannot be less than minimum capacity");
  }
  const nowMs = clock.epochMs();
  const action: ScheduledAction = {
    name,
    arn: before?.arn ?? scheduledArn(resourceId, name, context, newId()),
    resourceId,
    dimension,
    expression,
    timezone: input.Timezone ?? before?.timezone ?? "UTC",
    startMs: input.StartTime?.getTime() ?? before?.startMs ?? null,
    endMs: input.EndTime?.getTime() ?? before?.endMs ?? null,
    createdMs: before?.createdMs ?? nowMs,
    minCapacity,
    maxCapacity,
    // A changed action runs only at scheduled times after the change.
    lastRunMs: before === null ? null : nowMs,
  };
  try {
    if (nextRunMs(action, nowMs) === null) throw validationError(`The schedule ${expression} has no future time.`);
  } catch (error) {
    if (error instanceof ScheduleError)
      throw validationError(`The schedule ${expression} cannot be read: ${error.message}.`);
    throw error;
  }
  return action;
}

function scheduledArn(resourceId: string, name: string, { region, accountId }: CallContext, id: string): string {
  const resource = `resource/sagemaker/${resourceId}:scheduledActionName/${name}`;
  return `arn:aws:autoscaling:${region}:${accountId}:scheduledAction:${id}:${resource}`;
}
