import { failureReason, type EndpointDescription, type Hosting } from "../../../hosting/index.ts";
import type { SagemakerOperations } from "../../spec/gen/sagemaker.ts";
import type { CallContext } from "../../wire/index.ts";
import { refusedDeploymentMembers } from "./refused-members.ts";
import { arnOf, type SageMakerRows } from "./rows.ts";

/** Below the 60 s after which clients give up reading; a waiter that polls every 30 s hears of the move when it happens. */
const describeHoldMsMax = 25_000;

export function endpointOperations(
  hosting: Hosting,
): Pick<SageMakerRows, "CreateEndpoint" | "DescribeEndpoint" | "UpdateEndpoint" | "DeleteEndpoint"> {
  const resource = (input: { readonly EndpointName: string }, context: CallContext) =>
    arnOf("endpoint", input.EndpointName, context);
  return {
    CreateEndpoint: {
      action: "sagemaker:CreateEndpoint",
      resource,
      refuses: refusedDeploymentMembers,
      async handle(input, context) {
        const owner = { region: context.region, accountId: context.accountId };
        const { EndpointName: name, EndpointConfigName: configName, Tags: tags = [] } = input;
        const record = await hosting.createEndpoint({ name, configName, owner, tags });
        return { EndpointArn: record.arn };
      },
    },
    DescribeEndpoint: {
      action: "sagemaker:DescribeEndpoint",
      resource,
      async handle({ EndpointName: name }, context) {
        await hosting.settled(name, { waitMsMax: describeHoldMsMax, signal: context.signal });
        return describe(await hosting.describeEndpoint(name, context));
      },
    },
    UpdateEndpoint: {
      action: "sagemaker:UpdateEndpoint",
      resource,
      refuses: refusedDeploymentMembers,
      async handle(input, context) {
        const owner = { region: context.region, accountId: context.accountId };
        const record = await hosting.updateEndpoint(input.EndpointName, input.EndpointConfigName, owner);
        return { EndpointArn: record.arn };
      },
    },
    DeleteEndpoint: {
      action: "sagemaker:DeleteEndpoint",
      resource,
      async handle(input, context) {
        await hosting.deleteEndpoint(input.EndpointName, context);
        return {};
      },
    },
  };
}

function describe({ record, inServiceCounts }: EndpointDescription): SagemakerOperations["DescribeEndpoint"]["output"] {
  const reason = failureReason(record.state);
  return {
    EndpointName: record.name,
    EndpointArn: record.arn,
    EndpointConfigName: record.configName,
    EndpointStatus: record.state.at,
    CreationTime: new Date(record.createdMs),
    LastModifiedTime: new Date(record.modifiedMs),
    ...(reason === null ? {} : { FailureReason: reason }),
    ProductionVariants: record.plans.map(({ variant, model }) => {
      return {
        VariantName: variant.VariantName,
        DeployedImages: model.containers.map(({ Image: image }) => ({
          SpecifiedImage: image,
          ResolvedImage: image,
          ResolutionTime: new Date(record.createdMs),
        })),
        CurrentWeight: variant.InitialVariantWeight,
        DesiredWeight: variant.InitialVariantWeight,
        CurrentInstanceCount: inServiceCounts.get(variant.VariantName) ?? 0,
        DesiredInstanceCount: variant.InitialInstanceCount,
        ...(variant.RoutingConfig === undefined ? {} : { RoutingConfig: variant.RoutingConfig }),
      };
    }),
  };
}
