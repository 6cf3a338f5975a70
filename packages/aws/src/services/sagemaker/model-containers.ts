import { validationError, parseS3Uri, type ModelContainers } from "@galatea/hosting";
import type { SagemakerInputs } from "../../spec/gen/sagemaker.ts";
import { rejectUnsupportedMembers } from "../../wire/index.ts";
import { checkImage, checkVariable } from "./container-images.ts";
import { unsupportedContainerMembers } from "./unsupported-members.ts";

type Container = SagemakerInputs["ContainerDefinition"];

/** Maximum size of one model's environment variables, in bytes, as in SageMaker. */
const environmentBytesMax = 32 * 1024;
const environmentPairsMax = 100;

/**
 * Returns a model's containers. Throws for invalid containers and combinations. `runsImages`: whether the platform runs
 * images other than the built-in ones.
 */
export function checkedContainers(
  input: SagemakerInputs["CreateModelInput"],
  { runsImages }: { readonly runsImages: boolean },
): ModelContainers {
  const { PrimaryContainer: primary, Containers: several = [], InferenceExecutionConfig: execution } = input;
  if (primary !== undefined && several.length > 0) {
    throw validationError("Both PrimaryContainer and Containers were given: exactly one of them is needed.");
  }
  const [first, ...more] = primary === undefined ? several : [primary];
  if (first === undefined) throw validationError("Either PrimaryContainer or Containers must be given.");
  const isDirect = execution?.Mode === "Direct";
  if (isDirect && primary !== undefined) {
    throw validationError(
      "InferenceExecutionConfig with the Mode Direct needs Containers: a PrimaryContainer is the only one.",
    );
  }
  const all = [first, ...more] as const;
  for (const [index, container] of all.entries()) {
    checkContainer(container, { which: all.length === 1 ? "" : ` ${index + 1}`, runsImages });
  }
  if (primary === undefined) checkNames(all, isDirect);
  if (!isDirect && all.filter(({ Mode: mode }) => mode === "MultiModel").length > 1) {
    throw validationError("More than one container in MultiModel mode is not supported with inference pipeline.");
  }
  checkEnvironments(all);
  return [{ ...first }, ...more.map((container) => ({ ...container }))];
}

/** Checks one container. `which`: the container's number for error texts, if the model has several. */
function checkContainer(
  container: Container,
  { which, runsImages }: { readonly which: string; readonly runsImages: boolean },
): void {
  rejectUnsupportedMembers(container, unsupportedContainerMembers, { code: "ValidationException" });
  if (container.Image === undefined) throw validationError(`Image must be given for the container${which}.`);
  checkImage(container.Image, runsImages);
  checkData(container);
}

/** Checks container names, which appear in requests, errors, logs and metrics. */
function checkNames(containers: readonly Container[], isDirect: boolean): void {
  const names = containers.flatMap(({ ContainerHostname: name }) => (name === undefined ? [] : [name]));
  if (isDirect && names.length < containers.length) {
    throw validationError("ContainerHostname must be given for every container of a model with the Mode Direct.");
  }
  if (containers.length > 1 && names.length > 0 && names.length < containers.length) {
    throw validationError("ContainerHostname must be given for every container of a pipeline, or for none of them.");
  }
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw validationError(`The ContainerHostname "${twice}" was non-unique within the request.`);
}

function checkData(container: SagemakerInputs["ContainerDefinition"]): void {
  const isMultiModel = container.Mode === "MultiModel";
  if (container.ModelDataUrl !== undefined && container.ModelDataSource !== undefined) {
    throw validationError("ModelDataUrl and ModelDataSource cannot both be given for one container.");
  }
  if (isMultiModel && container.ModelDataSource !== undefined) {
    throw validationError(
      "ModelDataSource is not supported for multi-model containers: give ModelDataUrl, the prefix of the models.",
    );
  }
  if (isMultiModel && container.ModelDataUrl === undefined) {
    throw validationError("ModelDataUrl, the prefix of the models, must be given for a multi-model container.");
  }
  const uri = container.ModelDataSource?.S3DataSource?.S3Uri ?? container.ModelDataUrl;
  if (uri !== undefined && parseS3Uri(uri) === null) throw validationError(`Could not find model data at ${uri}.`);
  const source = container.ModelDataSource?.S3DataSource;
  if (source?.S3DataType === "S3Prefix" && !source.S3Uri.endsWith("/")) {
    throw validationError(`The S3Uri of an S3Prefix has to end with "/": ${source.S3Uri}`);
  }
}

function checkEnvironments(containers: readonly Container[]): void {
  let byteLength = 0;
  for (const container of containers) {
    const pairs = Object.entries(container.Environment ?? {});
    if (pairs.length > environmentPairsMax)
      throw validationError(`Environment has more than ${environmentPairsMax} pairs.`);
    for (const [name, value] of pairs) {
      byteLength += Buffer.byteLength(name) + Buffer.byteLength(value);
      checkVariable(name, value, container.Image ?? null);
    }
  }
  // The limit applies to the sum over all containers.
  if (byteLength > environmentBytesMax)
    throw validationError(`Environment is larger than ${environmentBytesMax} bytes.`);
}
