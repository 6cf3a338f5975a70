import type { Hosting } from "@galatea/hosting";
import type { CallContext } from "../../wire/index.ts";
import { checkedContainers } from "./model-containers.ts";
import { unsupportedModelMembers } from "./unsupported-members.ts";
import { resourceArnOf, type SageMakerRows } from "./rows.ts";

export function modelOperations(hosting: Hosting) {
  const resource = (input: { readonly ModelName: string }, context: CallContext) =>
    resourceArnOf("model", input.ModelName, context);
  return {
    CreateModel: {
      resource,
      unsupportedMembers: unsupportedModelMembers,
      async handle(input, context) {
        const containers = checkedContainers(input, hosting);
        const { Tags: tags, ...request } = input;
        const owner = { region: context.region, accountId: context.accountId };
        const record = await hosting.catalog.createModel({
          name: input.ModelName,
          owner,
          containers,
          executionMode: input.InferenceExecutionConfig?.Mode ?? "Serial",
          request,
          tags: tags ?? [],
        });
        return { ModelArn: record.arn };
      },
    },
    DescribeModel: {
      resource,
      async handle(input, context) {
        const record = await hosting.catalog.model(input.ModelName, context);
        return {
          EnableNetworkIsolation: false,
          ...record.request,
          ModelName: record.name,
          ModelArn: record.arn,
          CreationTime: new Date(record.createdMs),
        };
      },
    },
    DeleteModel: {
      resource,
      async handle(input, context) {
        await hosting.catalog.deleteModel(input.ModelName, context);
        return {};
      },
    },
  } satisfies Partial<SageMakerRows>;
}
