import {
  parseS3Uri,
  type AsyncInferenceConfig,
  type DataCaptureConfig,
  type EndpointConfigRecord,
} from "../definitions/index.ts";
import type { EndpointRecord } from "../endpoints/index.ts";
import { transformOwner, type TransformJobRecord } from "../transforms/index.ts";
import type { OutputFolder } from "./output-folders.ts";

interface OutputConfigs {
  readonly asyncInference?: AsyncInferenceConfig;
  readonly dataCapture?: DataCaptureConfig;
}

/** Returns the outputs of an endpoint: of its configuration, the former one and the one that it is updated to. */
export function endpointOutputs({ name, generations }: EndpointRecord): readonly OutputFolder[] {
  return generations.flatMap((generation) => outputsOf(generation, name));
}

/** Returns the outputs of a configuration: those of deleted endpoints remain there. */
export function configOutputs(config: EndpointConfigRecord): readonly OutputFolder[] {
  return outputsOf(config, null);
}

/** Returns the outputs of a transform job that runs or has run. */
export function transformOutputs({ name, request }: TransformJobRecord): readonly OutputFolder[] {
  return [{ url: request.TransformOutput.S3OutputPath, owner: transformOwner(name) }];
}

function outputsOf({ asyncInference, dataCapture }: OutputConfigs, owner: string | null): readonly OutputFolder[] {
  const { S3OutputPath: output, S3FailurePath: failure } = asyncInference?.OutputConfig ?? {};
  const outputs = [output, failure].flatMap((url) => {
    const place = parseS3Uri(url ?? "");
    // Outputs are written without slashes at the beginning of the key.
    return place === null ? [] : [{ url: `s3://${place.bucket}/${place.key.replace(/^\/+/, "")}`, owner }];
  });
  if (dataCapture === undefined) return outputs;
  const { DestinationS3Uri: url } = dataCapture;
  // Each endpoint's captures lie below its name.
  const own = owner === null ? [] : [{ url: `${url.replace(/\/+$/, "")}/${owner}`, owner }];
  return [...outputs, { url, owner: null }, ...own];
}
