import { invalid, parseS3Uri, refusedVariable, resolveImage, unsupportedImageText } from "../../../hosting/index.ts";
import { type ContainerDefinition, type Hosting } from "../../../hosting/index.ts";
import type { SagemakerInputs } from "../../spec/gen/sagemaker.ts";
import { refuseMembers, type CallContext } from "../../wire/index.ts";
import { notBuilt, refusedContainerMembers, refusedModelMembers } from "./refused-members.ts";
import { arnOf, type SageMakerRows } from "./rows.ts";

/** The bytes of one model's variables together, as the service bounds them. */
const environmentBytesMax = 32 * 1024;
const environmentPairsMax = 100;

export function modelOperations(
  hosting: Hosting,
): Pick<SageMakerRows, "CreateModel" | "DescribeModel" | "DeleteModel"> {
  const resource = (input: { readonly ModelName: string }, context: CallContext) =>
    arnOf("model", input.ModelName, context);
  return {
    CreateModel: {
      action: "sagemaker:CreateModel",
      resource,
      refuses: refusedModelMembers,
      async handle(input, context) {
        const container = checkedContainer(input);
        const { Tags: tags, ...request } = input;
        const owner = { region: context.region, accountId: context.accountId };
        const record = await hosting.createModel({
          name: input.ModelName,
          owner,
          containers: [container],
          request,
          tags: tags ?? [],
        });
        return { ModelArn: record.arn };
      },
    },
    DescribeModel: {
      action: "sagemaker:DescribeModel",
      resource,
      async handle(input, context) {
        const record = await hosting.model(input.ModelName, context);
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
      action: "sagemaker:DeleteModel",
      resource,
      async handle(input, context) {
        await hosting.deleteModel(input.ModelName, context);
        return {};
      },
    },
  };
}

/** The one container of a model; what needs more than one, or another kind of source, is refused by its member's name. */
function checkedContainer(input: SagemakerInputs["CreateModelInput"]): ContainerDefinition {
  const containers = input.PrimaryContainer === undefined ? (input.Containers ?? []) : [input.PrimaryContainer];
  if (input.PrimaryContainer !== undefined && input.Containers !== undefined && input.Containers.length > 0) {
    throw invalid("Both PrimaryContainer and Containers were given: exactly one of them is needed.");
  }
  const [container] = containers;
  if (container === undefined) throw invalid("Either PrimaryContainer or Containers must be given.");
  if (containers.length > 1) throw notBuilt("Containers with more than one container (inference pipelines)");
  refuseMembers(container, refusedContainerMembers, { code: "ValidationException" });
  if (container.Image === undefined) throw invalid("Image must be given for the container.");
  if (resolveImage(container.Image) === null) throw invalid(unsupportedImageText(container.Image));
  checkData(container);
  checkEnvironment(container.Environment ?? {});
  return { ...container };
}

function checkData(container: SagemakerInputs["ContainerDefinition"]): void {
  const isMultiModel = container.Mode === "MultiModel";
  if (container.ModelDataUrl !== undefined && container.ModelDataSource !== undefined) {
    throw invalid("ModelDataUrl and ModelDataSource cannot both be given for one container.");
  }
  if (isMultiModel && container.ModelDataSource !== undefined) {
    throw invalid(
      "ModelDataSource is not supported for multi-model containers: give ModelDataUrl, the prefix of the models.",
    );
  }
  if (isMultiModel && container.ModelDataUrl === undefined) {
    throw invalid("ModelDataUrl, the prefix of the models, must be given for a multi-model container.");
  }
  const uri = container.ModelDataSource?.S3DataSource?.S3Uri ?? container.ModelDataUrl;
  if (uri !== undefined && parseS3Uri(uri) === null) throw invalid(`Could not find model data at ${uri}.`);
  const source = container.ModelDataSource?.S3DataSource;
  if (source?.S3DataType === "S3Prefix" && !source.S3Uri.endsWith("/")) {
    throw invalid(`The S3Uri of an S3Prefix has to end with "/": ${source.S3Uri}`);
  }
}

function checkEnvironment(environment: Readonly<Record<string, string>>): void {
  const pairs = Object.entries(environment);
  const byteLength = pairs.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  if (pairs.length > environmentPairsMax) throw invalid(`Environment holds more than ${environmentPairsMax} pairs.`);
  if (byteLength > environmentBytesMax) throw invalid(`Environment is larger than ${environmentBytesMax} bytes.`);
  for (const [name, value] of pairs) {
    const refusal = refusedVariable(name, value);
    if (refusal !== null) throw invalid(refusal);
  }
}
