import { parseS3Uri, type DataCaptureConfig } from "../definitions/index.ts";

/** The captured share of an endpoint's requests, and the destination. */
export interface CaptureSettings {
  /** Percentage of requests that are captured; greater than 0. */
  readonly percentage: number;
  readonly bucket: string;
  /** Prefix of object keys. Ends with a slash, unless it is empty. */
  readonly prefix: string;
  readonly input: boolean;
  readonly output: boolean;
  /** Media types in lower case, whose bodies are captured as text. */
  readonly csvTypes: ReadonlySet<string>;
  readonly jsonTypes: ReadonlySet<string>;
}

/** Returns the capture settings of an endpoint configuration; null if nothing is captured. */
export function captureSettings(config: DataCaptureConfig | null): CaptureSettings | null {
  if (config === null || config.EnableCapture === false || config.InitialSamplingPercentage <= 0) return null;
  const location = parseS3Uri(config.DestinationS3Uri);
  if (location === null) return null;
  const modes = config.CaptureOptions.map(({ CaptureMode: mode }) => mode);
  const has = (mode: "Input" | "Output") => modes.some((each) => each === mode || each === "InputAndOutput");
  const prefix = location.key.replace(/\/+$/, "");
  const { CsvContentTypes: csv = [], JsonContentTypes: json = [] } = config.CaptureContentTypeHeader ?? {};
  return {
    percentage: config.InitialSamplingPercentage,
    bucket: location.bucket,
    prefix: prefix === "" ? "" : `${prefix}/`,
    input: has("Input"),
    output: has("Output"),
    csvTypes: new Set(csv.map((type) => type.toLowerCase())),
    jsonTypes: new Set(json.map((type) => type.toLowerCase())),
  };
}
