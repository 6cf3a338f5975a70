import type {
  CreateEndpointConfigCommandInput,
  DeleteEndpointConfigCommandInput,
  DescribeEndpointConfigCommandInput,
  ProductionVariant as VariantInput,
} from "@aws-sdk/client-sagemaker";
import { invalid, nameKey, type Hosting, type ProductionVariant } from "../../../hosting/index.ts";
import type { CallContext, OperationHandlers } from "../../wire/index.ts";
import { notBuilt, refuseMembers, refusedConfigMembers, refusedVariantMembers } from "./refused-members.ts";
import { putTags } from "./tags.ts";

const instanceTypeDefault = "ml.m5.xlarge";

export function endpointConfigOperations(hosting: Hosting): OperationHandlers {
  return {
    async CreateEndpointConfig(input: CreateEndpointConfigCommandInput, context: CallContext) {
      refuseMembers(input, refusedConfigMembers);
      const variants = checkedVariants(input.ProductionVariants ?? []);
      const { Tags: tags, ...request } = input;
      const owner = { region: context.region, accountId: context.accountId };
      const name = input.EndpointConfigName ?? "";
      const described = { ...request, ProductionVariants: variants };
      const record = await hosting.createConfig({ name, owner, variants, request: described });
      await putTags(hosting, record.arn, tags ?? []);
      return { EndpointConfigArn: record.arn };
    },

    async DescribeEndpointConfig(input: DescribeEndpointConfigCommandInput, context: CallContext) {
      const record = hosting.config(input.EndpointConfigName ?? "", context);
      return {
        EnableNetworkIsolation: false,
        ...record.request,
        EndpointConfigName: record.name,
        EndpointConfigArn: record.arn,
        CreationTime: new Date(record.createdMs),
      };
    },

    async DeleteEndpointConfig(input: DeleteEndpointConfigCommandInput, context: CallContext) {
      const record = hosting.config(input.EndpointConfigName ?? "", context);
      await hosting.configs.delete(nameKey(record.name));
      await hosting.tags.delete(record.arn);
      return {};
    },
  };
}

function checkedVariants(inputs: readonly VariantInput[]): ProductionVariant[] {
  const names = new Set<string>();
  const variants = inputs.map((input): ProductionVariant => {
    refuseMembers(input, refusedVariantMembers, " of a variant");
    const VariantName = input.VariantName ?? "";
    if (names.has(VariantName)) throw invalid(`The variant name "${VariantName}" was non-unique within the request.`);
    names.add(VariantName);
    if (input.ModelName === undefined) throw notBuilt("a variant without ModelName (inference components)");
    return {
      ...(input as object),
      VariantName,
      ModelName: input.ModelName,
      InitialInstanceCount: input.InitialInstanceCount ?? 1,
      InstanceType: input.InstanceType ?? instanceTypeDefault,
      InitialVariantWeight: input.InitialVariantWeight ?? 1,
    };
  });
  if (variants.every(({ InitialVariantWeight }) => InitialVariantWeight === 0)) {
    throw invalid("At least one production variant needs a weight above zero.");
  }
  return variants;
}
