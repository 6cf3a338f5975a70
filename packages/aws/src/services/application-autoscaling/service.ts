import { AwsError } from "@galatea/base";
import { validationError } from "@galatea/hosting";
import type { ScalableTarget, Scaling } from "@galatea/hosting/scaling";
import model from "../../spec/gen/application-autoscaling.json" with { type: "json" };
import type {
  ApplicationAutoscalingInputs,
  ApplicationAutoscalingOperations,
} from "../../spec/gen/application-autoscaling.ts";
import { asServiceModel } from "../../spec/index.ts";
import { pageAfter, type CallContext, type ModelledService, type OperationRows } from "../../wire/index.ts";
import {
  isRequestedTarget,
  requireRegisteredTarget,
  matchesDimension,
  autoscalingPageQuery,
  type AutoscalingDependencies,
} from "./target-queries.ts";
import {
  alarmsByAction,
  describeScalingActivity,
  describePolicyAlarms,
  describeScalingPolicy,
  describeScalableTarget,
} from "./descriptions.ts";
import { parseStepPolicy, parseTrackingPolicy } from "./policy-inputs.ts";
import { scheduledOperations } from "./scheduled-actions.ts";
import { checkServiceNamespace, resolveScaledTarget } from "./resources.ts";

type Rows = OperationRows<ApplicationAutoscalingOperations>;
type RegisterInput = ApplicationAutoscalingInputs["RegisterScalableTargetRequest"];
type PolicyInput = ApplicationAutoscalingInputs["PutScalingPolicyRequest"];

const tagsMax = 50;

/** Application Auto Scaling for the instances of endpoints' variants. */
export function autoscalingService(dependencies: AutoscalingDependencies) {
  const operations: Rows = {
    ...targetOperations(dependencies),
    ...policyOperations(dependencies),
    ...scheduledOperations(dependencies),
    ...tagOperations(dependencies.scaling),
  };
  return {
    kind: "modelled",
    model: asServiceModel(model),
    scope: "application-autoscaling",
    iamPrefix: "application-autoscaling",
    validationCodes: { json: "ValidationException", query: "ValidationError" },
    operations,
  } as const satisfies ModelledService;
}

function targetOperations(dependencies: AutoscalingDependencies) {
  const { scaling } = dependencies;
  return {
    RegisterScalableTarget: {
      async handle(input, context) {
        const target = await registered(dependencies, input, context);
        await scaling.register(target);
        return { ScalableTargetARN: target.arn };
      },
    },
    DeregisterScalableTarget: {
      async handle(input) {
        await scaling.deregister(requireRegisteredTarget(scaling, input).target);
        return {};
      },
    },
    DescribeScalableTargets: {
      async handle(input) {
        checkServiceNamespace(input);
        const ids = input.ResourceIds === undefined ? null : new Set(input.ResourceIds);
        const asked = () => {
          const found = scaling
            .list()
            .map(({ target }) => target)
            .filter(
              ({ resourceId, dimension }) =>
                (ids === null || ids.has(resourceId)) && matchesDimension(input, dimension),
            );
          return pageAfter(
            found,
            ({ resourceId }) => resourceId,
            autoscalingPageQuery("DescribeScalableTargets", input),
          );
        };
        await scaling.sweep(asked().page);
        const { page, next } = asked();
        return { ScalableTargets: page.map(describeScalableTarget), NextToken: next };
      },
    },
    DescribeScalingActivities: {
      async handle(input) {
        checkServiceNamespace(input);
        const found = scaling
          .list()
          .filter(({ target }) => isRequestedTarget(input, target))
          .flatMap(({ activities }) => activities)
          .filter(({ notScaled }) => notScaled === null || input.IncludeNotScaledActivities === true)
          .toSorted((a, b) => (activityPosition(a) < activityPosition(b) ? 1 : -1));
        const { page, next } = pageAfter(found, activityPosition, {
          ...autoscalingPageQuery("DescribeScalingActivities", input),
          isDescending: true,
        });
        return { ScalingActivities: page.map(describeScalingActivity), NextToken: next };
      },
    },
  } satisfies Partial<Rows>;
}

function policyOperations({ scaling, alarms, clock, newId }: AutoscalingDependencies) {
  return {
    PutScalingPolicy: {
      async handle(input, context) {
        const { policies } = requireRegisteredTarget(scaling, input);
        const before = policies.find(({ name }) => name === input.PolicyName) ?? null;
        const { tracked } = resolveScaledTarget(input);
        const type = input.PolicyType ?? before?.type ?? "StepScaling";
        if (before !== null && before.type !== type) {
          throw validationError(`The policy ${input.PolicyName} is of type ${before.type}, which cannot be changed.`);
        }
        const facing = {
          arn: before?.arn ?? policyArn(input, context, newId()),
          createdMs: before?.createdMs ?? clock.epochMs(),
          tracked,
          newId,
          before: before?.type === "TargetTrackingScaling" ? before : null,
        };
        const policy = policyOfType(type, input, facing);
        await scaling.putPolicy(policy, (name) => alarmArn(name, context));
        return { PolicyARN: policy.arn, Alarms: describePolicyAlarms(policy, alarmsByAction(alarms)) };
      },
    },
    DeleteScalingPolicy: {
      async handle(input) {
        const found = requireRegisteredTarget(scaling, input).policies.find(({ name }) => name === input.PolicyName);
        if (found === undefined) {
          const named = `service namespace: sagemaker, policy name: ${input.PolicyName}`;
          throw new AwsError("ObjectNotFoundException", `No scaling policy found for ${named}`);
        }
        await scaling.deletePolicy(found);
        return {};
      },
    },
    DescribeScalingPolicies: {
      async handle(input) {
        checkServiceNamespace(input);
        const names = input.PolicyNames === undefined ? null : new Set(input.PolicyNames);
        const found = scaling
          .list()
          .filter(({ target }) => isRequestedTarget(input, target))
          .flatMap(({ policies }) => policies)
          .filter(({ name }) => names === null || names.has(name))
          .toSorted((a, b) => (a.arn < b.arn ? -1 : 1));
        const { page, next } = pageAfter(
          found,
          ({ arn }) => arn,
          autoscalingPageQuery("DescribeScalingPolicies", input),
        );
        const running = alarmsByAction(alarms);
        return { ScalingPolicies: page.map((policy) => describeScalingPolicy(policy, running)), NextToken: next };
      },
    },
  } satisfies Partial<Rows>;
}

function tagOperations(scaling: Scaling) {
  const resource = (input: { readonly ResourceARN: string }) => input.ResourceARN;
  const targetOf = (arn: string) => {
    const found = scaling.list().find(({ target }) => target.arn === arn);
    if (found === undefined) throw new AwsError("ResourceNotFoundException", `There is no scalable target ${arn}.`);
    return found.target;
  };
  return {
    TagResource: {
      resource,
      async handle({ ResourceARN, Tags }) {
        const target = targetOf(ResourceARN);
        const tags = { ...target.tags, ...Tags };
        if (Object.keys(tags).length > tagsMax) {
          throw new AwsError("TooManyTagsException", `A scalable target can have at most ${tagsMax} tags.`);
        }
        await scaling.setTags(target, tags);
        return {};
      },
    },
    UntagResource: {
      resource,
      async handle({ ResourceARN, TagKeys }) {
        const target = targetOf(ResourceARN);
        const going = new Set(TagKeys);
        await scaling.setTags(
          target,
          Object.fromEntries(Object.entries(target.tags).filter(([key]) => !going.has(key))),
        );
        return {};
      },
    },
    ListTagsForResource: {
      resource,
      handle: async ({ ResourceARN }) => ({ Tags: targetOf(ResourceARN).tags }),
    },
  } satisfies Partial<Rows>;
}

/** Registers a target. A member that is absent from the request keeps the value of the existing target. */
async function registered(
  { scaling, scalable, clock, newId }: AutoscalingDependencies,
  input: RegisterInput,
  context: CallContext,
): Promise<ScalableTarget> {
  const key = resolveScaledTarget(input);
  const capacity = await scalable.capacity(key);
  if (capacity === null) {
    throw validationError(key.absentText);
  }
  const known = scaling.find(key)?.target ?? null;
  const minCapacity = input.MinCapacity ?? known?.minCapacity;
  const maxCapacity = input.MaxCapacity ?? known?.maxCapacity;
  if (minCapacity === undefined || maxCapacity === undefined) {
    throw validationError("MinCapacity and MaxCapacity must be specified when a scalable target is registered.");
  }
  const { least = key.capacityMin } = capacity;
  if (minCapacity < least) {
    throw validationError(`MinCapacity for ${key.dimension} must be at least ${least}; it is ${minCapacity}.`);
  }
  if (minCapacity > maxCapacity) throw validationError("Maximum capacity cannot be less than minimum capacity");
  const requested = input.SuspendedState;
  return {
    resourceId: key.resourceId,
    dimension: key.dimension,
    arn:
      known?.arn ??
      `arn:aws:application-autoscaling:${context.region}:${context.accountId}:scalable-target/${newId().replaceAll("-", "").slice(0, 26)}`,
    roleArn: input.RoleARN ?? known?.roleArn ?? serviceRole(context),
    createdMs: known?.createdMs ?? clock.epochMs(),
    minCapacity,
    maxCapacity,
    suspended: {
      scaleIn: requested?.DynamicScalingInSuspended ?? known?.suspended.scaleIn ?? false,
      scaleOut: requested?.DynamicScalingOutSuspended ?? known?.suspended.scaleOut ?? false,
      scheduled: requested?.ScheduledScalingSuspended ?? known?.suspended.scheduled ?? false,
    },
    tags: known?.tags ?? input.Tags ?? {},
  };
}

function policyOfType(
  type: NonNullable<PolicyInput["PolicyType"]>,
  input: PolicyInput,
  facing: Parameters<typeof parseTrackingPolicy>[2],
) {
  const { StepScalingPolicyConfiguration: step, TargetTrackingScalingPolicyConfiguration: tracking } = input;
  switch (type) {
    case "TargetTrackingScaling":
      if (tracking === undefined) throw validationError("TargetTrackingScalingPolicyConfiguration is required.");
      return parseTrackingPolicy(input, tracking, facing);
    case "StepScaling":
      if (step === undefined) throw validationError("StepScalingPolicyConfiguration is required.");
      return parseStepPolicy(input, step, facing);
    case "PredictiveScaling":
    default:
      throw validationError(`Policies of type ${type} are not supported by this platform yet.`);
  }
}

function activityPosition({ startMs, id }: { readonly startMs: number; readonly id: string }): string {
  return `${String(startMs).padStart(15, "0")} ${id}`;
}

function policyArn({ ResourceId, PolicyName }: PolicyInput, { region, accountId }: CallContext, id: string): string {
  return `arn:aws:autoscaling:${region}:${accountId}:scalingPolicy:${id}:resource/sagemaker/${ResourceId}:policyName/${PolicyName}`;
}

function alarmArn(name: string, { region, accountId }: CallContext): string {
  return `arn:aws:cloudwatch:${region}:${accountId}:alarm:${name}`;
}

function serviceRole({ accountId }: CallContext): string {
  const name = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint";
  return `arn:aws:iam::${accountId}:role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/${name}`;
}
