import {
  parseS3Uri,
  type AsyncInferenceConfig,
  type DataCaptureConfig,
  type EndpointConfigRecord,
} from "../definitions/index.ts";
import type { EndpointRecord } from "../endpoints/index.ts";
import { transformOwnerName, type TransformJobRecord } from "../transforms/index.ts";
import type { OutputFolder } from "./output-folders.ts";

interface OutputConfigs {
  readonly asyncInference?: AsyncInferenceConfig;
  readonly dataCapture?: DataCaptureConfig;
}

/** Returns the output folders of all generations of an endpoint: the current configuration and the one of an update in progress. */
export function endpointOutputFolders({ name, generations }: EndpointRecord): readonly OutputFolder[] {
  return generations.flatMap((generation) => outputsOf(generation, name));
}

/** Returns the output folders of an endpoint configuration. They also contain the outputs of deleted endpoints. */
export function configOutputFolders(config: EndpointConfigRecord): readonly OutputFolder[] {
  return outputsOf(config, null);
}

/** Returns the output folder of a transform job. */
export function transformOutputFolders({ name, request }: TransformJobRecord): readonly OutputFolder[] {
  return [{ url: request.TransformOutput.S3OutputPath, owner: transformOwnerName(name) }];
}

function outputsOf({ asyncInference, dataCapture }: OutputConfigs, owner: string | null): readonly OutputFolder[] {
  const { S3OutputPath: output, S3FailurePath: failure } = asyncInference?.OutputConfig ?? {};
  const outputs = [output, failure].flatMap((url) => {
    const location = parseS3Uri(url ?? "");
    // Leading slashes are removed because the writers of outputs remove them, too.
    return location === null ? [] : [{ url: `s3://${location.bucket}/${location.key.replace(/^\/+/, "")}`, owner }];
  });
  if (dataCapture === undefined) return outputs;
  const { DestinationS3Uri: url } = dataCapture;
  // Captured data of an endpoint is written below a folder with the endpoint's name.
  const own = owner === null ? [] : [{ url: `${url.replace(/\/+$/, "")}/${owner}`, owner }];
  return [...outputs, { url, owner: null }, ...own];
}
