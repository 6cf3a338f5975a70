import { environmentVariableError, validationError, type Hosting, type TransformJobRecord } from "@galatea/hosting";
import type { SagemakerOperations } from "../../spec/gen/sagemaker.ts";
import type { CallContext } from "../../wire/index.ts";
import { rejectNeuronInstance } from "./neuron-instances.ts";
import { unsupportedTransformMembers } from "./unsupported-members.ts";
import { resourceArnOf, type SageMakerRows } from "./rows.ts";
import { delayWaiter } from "./waiters.ts";

export function transformJobOperations(hosting: Hosting) {
  const resource = (input: { readonly TransformJobName: string }, context: CallContext) =>
    resourceArnOf("transform-job", input.TransformJobName, context);
  return {
    CreateTransformJob: {
      resource,
      unsupportedMembers: unsupportedTransformMembers,
      async handle(input, context) {
        const { Tags: tags = [], ...requested } = input;
        const { S3DataSource: source } = requested.TransformInput.DataSource;
        if (source === undefined) throw validationError("TransformInput.DataSource.S3DataSource must be given.");
        rejectNeuronInstance(requested.TransformResources.InstanceType);
        for (const [name, value] of Object.entries(requested.Environment ?? {})) {
          const refusal = environmentVariableError(name, value);
          if (refusal !== null) throw validationError(refusal);
        }
        const owner = { region: context.region, accountId: context.accountId };
        const job = await hosting.transforms.create(requested, owner, tags);
        return { TransformJobArn: job.arn };
      },
    },
    DescribeTransformJob: {
      resource,
      async handle({ TransformJobName: name }, context) {
        await delayWaiter(context, (wait) => hosting.transforms.waitUntilEnded(name, wait));
        return describe(await hosting.transforms.find(name));
      },
    },
    StopTransformJob: {
      resource,
      async handle({ TransformJobName: name }) {
        await hosting.transforms.stop(name);
        return {};
      },
    },
  } satisfies Partial<SageMakerRows>;
}

type Description = SagemakerOperations["DescribeTransformJob"]["output"];

function describe({ name, arn, createdMs, state, request }: TransformJobRecord): Description {
  return {
    ...(request as unknown as Description),
    TransformJobName: name,
    TransformJobArn: arn,
    TransformJobStatus: state.at,
    CreationTime: new Date(createdMs),
    ...(state.startedMs === null ? {} : { TransformStartTime: new Date(state.startedMs) }),
    ...("endedMs" in state ? { TransformEndTime: new Date(state.endedMs) } : {}),
    ...(state.at === "Failed" ? { FailureReason: state.reason } : {}),
  };
}
