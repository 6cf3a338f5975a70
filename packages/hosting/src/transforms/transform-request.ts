import { parseS3Uri } from "../definitions/index.ts";
import { validationError } from "../definitions/index.ts";
import { rowFormatOfType, type DataProcessing } from "./data-processing.ts";
import { parseJsonPath, type JsonPath } from "./json-path.ts";
import type { BatchStrategy } from "./payload-packer.ts";

/** The members of CreateTransformJob that define the work. */
export interface TransformRequest {
  readonly TransformJobName: string;
  readonly ModelName: string;
  readonly MaxConcurrentTransforms?: number;
  readonly MaxPayloadInMB?: number;
  readonly BatchStrategy?: BatchStrategy;
  readonly ModelClientConfig?: {
    readonly InvocationsTimeoutInSeconds?: number;
    readonly InvocationsMaxRetries?: number;
  };
  readonly Environment?: Readonly<Record<string, string>>;
  readonly TransformInput: {
    readonly DataSource: { readonly S3DataSource: { readonly S3DataType: string; readonly S3Uri: string } };
    readonly ContentType?: string;
    readonly CompressionType?: string;
    readonly SplitType?: string;
  };
  readonly TransformOutput: { readonly S3OutputPath: string; readonly Accept?: string; readonly AssembleWith?: string };
  readonly TransformResources: { readonly InstanceType: string; readonly InstanceCount: number };
  readonly DataProcessing?: {
    readonly InputFilter?: string;
    readonly OutputFilter?: string;
    readonly JoinSource?: string;
  };
  readonly [member: string]: unknown;
}

export interface S3Location {
  readonly bucket: string;
  readonly key: string;
}

/** The plan of a job, except for the container's execution parameters. */
export interface TransformPlan {
  readonly source: S3Location & { readonly kind: "prefix" | "manifest" };
  readonly target: S3Location;
  readonly contentType: string | null;
  readonly accept: string | null;
  readonly isGzip: boolean;
  readonly splitType: "None" | "Line" | "RecordIO" | "TFRecord";
  readonly assemblesLines: boolean;
  readonly processing: DataProcessing | null;
  readonly timeoutMs: number;
  readonly retriesMax: number;
}

const timeoutSecondsDefault = 600;
const retriesDefault = 3;
const payloadsMebibytesMax = 100;

/** Returns the plan of a request. Throws ValidationException if the request is invalid or not supported. */
export function transformPlan(request: TransformRequest): TransformPlan {
  const { TransformInput: input, TransformOutput: output, ModelClientConfig: client = {} } = request;
  const { S3DataType: type, S3Uri: uri } = input.DataSource.S3DataSource;
  const source = { ...placeOf(uri), kind: sourceKind(type) } as const;
  const target = placeOf(output.S3OutputPath);
  if (source.kind === "prefix" && source.bucket === target.bucket && target.key.startsWith(source.key)) {
    throw validationError(
      `The S3OutputPath ${output.S3OutputPath} is within the input ${uri}: the job would read its own output.`,
    );
  }
  const { MaxConcurrentTransforms: concurrency = 0, MaxPayloadInMB: mebibytes } = request;
  if (Math.max(1, concurrency) * (mebibytes ?? 1) > payloadsMebibytesMax) {
    throw validationError(`MaxConcurrentTransforms * MaxPayloadInMB cannot exceed ${payloadsMebibytesMax} MB.`);
  }
  const splitType = (input.SplitType ?? "None") as TransformPlan["splitType"];
  return {
    source,
    target,
    contentType: input.ContentType ?? null,
    accept: output.Accept ?? null,
    isGzip: input.CompressionType === "Gzip",
    splitType,
    assemblesLines: output.AssembleWith === "Line",
    processing: processingOf(request, splitType),
    timeoutMs: (client.InvocationsTimeoutInSeconds ?? timeoutSecondsDefault) * 1000,
    retriesMax: client.InvocationsMaxRetries ?? retriesDefault,
  };
}

function placeOf(uri: string): S3Location {
  const location = parseS3Uri(uri);
  if (location === null) throw validationError(`${uri} is not an S3 URI.`);
  return location;
}

function sourceKind(type: string): "prefix" | "manifest" {
  if (type === "S3Prefix") return "prefix";
  if (type === "ManifestFile") return "manifest";
  throw validationError(`S3DataType ${type} is not supported by this platform yet.`);
}

/** Returns the data processing of a job; null if it has none. */
function processingOf(
  { DataProcessing: requested = {}, TransformInput: input, MaxPayloadInMB: mebibytes }: TransformRequest,
  splitType: TransformPlan["splitType"],
): DataProcessing | null {
  const inputFilter = filterOf("InputFilter", requested.InputFilter);
  const outputFilter = filterOf("OutputFilter", requested.OutputFilter);
  const joinsInput = requested.JoinSource === "Input";
  if (inputFilter === null && outputFilter === null && !joinsInput) return null;
  const format = rowFormatOfType(input.ContentType ?? "", splitType === "Line");
  if (format === null || splitType === "RecordIO" || splitType === "TFRecord") {
    throw validationError(
      "DataProcessing needs data of ContentType text/csv, application/json or application/jsonlines with SplitType Line or None.",
    );
  }
  if (mebibytes === 0)
    throw validationError("DataProcessing needs payloads of a bounded length: MaxPayloadInMB above 0.");
  return { format, inputFilter, outputFilter, joinsInput };
}

/** Parses a filter. Returns null for `$`, which selects everything. */
function filterOf(member: string, text: string | undefined): JsonPath | null {
  if (text === undefined || text === "" || text === "$") return null;
  const path = parseJsonPath(text);
  if (path !== null) return path;
  throw validationError(
    `${member} '${text}' is not a supported JSONPath: $, names, indexes, slices and lists of them; only the last one may select several values.`,
  );
}

/** Parameters that a container suggests. They apply if the job does not set them. */
export interface ExecutionParameters {
  readonly MaxConcurrentTransforms?: number;
  readonly BatchStrategy?: BatchStrategy;
  readonly MaxPayloadInMB?: number;
}

/** The size and number of the requests. */
export interface RequestShape {
  readonly concurrency: number;
  readonly strategy: BatchStrategy;
  /** Maximum bytes of a payload. Null: an object is sent as one request of any length. */
  readonly payloadBytesMax: number | null;
}

const mebi = 2 ** 20;
const payloadMebibytesDefault = 6;
const concurrencyMax = 100;

/** Returns the size and concurrency of requests: the job's values, else the container's, else SageMaker's defaults. */
export function chooseRequestShape(request: TransformRequest, container: ExecutionParameters): RequestShape {
  const mebibytes = request.MaxPayloadInMB ?? container.MaxPayloadInMB ?? payloadMebibytesDefault;
  const payloadMebibytes = Math.min(mebibytes, payloadsMebibytesMax);
  const requestCount = request.MaxConcurrentTransforms ?? 0;
  const desired = Math.max(1, requestCount > 0 ? requestCount : (container.MaxConcurrentTransforms ?? 1));
  // The container's values have the same limits as a job's values.
  const concurrency = Math.min(desired, Math.floor(concurrencyMax / Math.max(1, payloadMebibytes)));
  return {
    concurrency: Math.max(1, concurrency),
    strategy: request.BatchStrategy ?? container.BatchStrategy ?? "MultiRecord",
    payloadBytesMax: payloadMebibytes === 0 ? null : payloadMebibytes * mebi,
  };
}
