import type { Hosting, RetainedProperty, VariantSizeChange } from "@galatea/hosting";
import type { SagemakerInputs } from "../../spec/gen/sagemaker.ts";
import type { CallContext } from "../../wire/index.ts";
import { describeEndpoint } from "./describe-endpoint.ts";
import { resourceArnOf, type SageMakerRows } from "./rows.ts";
import { delayWaiter } from "./waiters.ts";

const retainable: readonly RetainedProperty[] = ["DesiredInstanceCount", "DesiredWeight", "DataCaptureConfig"];

export function endpointOperations(hosting: Hosting) {
  const resource = (input: { readonly EndpointName: string }, context: CallContext) =>
    resourceArnOf("endpoint", input.EndpointName, context);
  return {
    CreateEndpoint: {
      resource,
      async handle(input, context) {
        const owner = { region: context.region, accountId: context.accountId };
        const { EndpointName: name, EndpointConfigName: configName, Tags: tags = [] } = input;
        const deploymentConfig = input.DeploymentConfig ?? null;
        const record = await hosting.endpoints.create({ name, configName, owner, tags, deploymentConfig });
        return { EndpointArn: record.arn };
      },
    },
    DescribeEndpoint: {
      resource,
      async handle({ EndpointName: name }, context) {
        await delayWaiter(context, (wait) => hosting.waitUntilStable(name, wait));
        return describeEndpoint(await hosting.endpoints.describe(name, context));
      },
    },
    UpdateEndpoint: {
      resource,
      async handle(input, context) {
        const owner = { region: context.region, accountId: context.accountId };
        const record = await hosting.endpoints.update({
          name: input.EndpointName,
          configName: input.EndpointConfigName,
          owner,
          deploymentConfig: input.DeploymentConfig ?? null,
          retainsDeployment: input.RetainDeploymentConfig === true,
          retained: retainedBy(input),
        });
        return { EndpointArn: record.arn };
      },
    },
    UpdateEndpointWeightsAndCapacities: {
      resource,
      async handle(input, context) {
        const sizes = input.DesiredWeightsAndCapacities.map(sizeOf);
        const record = await hosting.endpoints.resize(input.EndpointName, sizes, context);
        return { EndpointArn: record.arn };
      },
    },
    DeleteEndpoint: {
      resource,
      async handle(input, context) {
        await hosting.endpoints.delete(input.EndpointName, context);
        return {};
      },
    },
  } satisfies Partial<SageMakerRows>;
}

function sizeOf(size: SagemakerInputs["DesiredWeightAndCapacity"]): VariantSizeChange {
  const { VariantName: variantName, DesiredWeight: weight, DesiredInstanceCount: instanceCount } = size;
  const { ServerlessUpdateConfig: serverless } = size;
  const { MaxConcurrency: max, ProvisionedConcurrency: provisioned } = serverless ?? {};
  const concurrency = {
    ...(max === undefined ? {} : { max }),
    ...(provisioned === undefined ? {} : { provisioned }),
  };
  return {
    variantName,
    ...(weight === undefined ? {} : { weight }),
    ...(instanceCount === undefined ? {} : { instanceCount }),
    ...(serverless === undefined ? {} : { concurrency }),
  };
}

function retainedBy(input: SagemakerInputs["UpdateEndpointInput"]): ReadonlySet<RetainedProperty> {
  if (input.RetainAllVariantProperties !== true) return new Set();
  const excluded = new Set(input.ExcludeRetainedVariantProperties?.map(({ VariantPropertyType: type }) => type));
  return new Set(retainable.filter((property) => !excluded.has(property)));
}
