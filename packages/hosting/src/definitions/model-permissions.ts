import { folderPrefix, parseS3Uri } from "./s3-uri.ts";

/** Environment variable of a model: S3 prefixes below which the model's code may write objects, separated by commas or spaces. */
const prefixesVariable = "GALATEA_OBJECT_PREFIXES";
/** Environment variable of a model: names of the endpoints that the model's code may invoke; `*` for all. */
const endpointsVariable = "GALATEA_INVOKABLE_ENDPOINTS";
const entriesMax = 100;

type Environment = Readonly<Record<string, string>>;

interface ObjectPrefix {
  readonly bucket: string;
  readonly key: string;
}

/** Returns the S3 prefixes below which a model's code may write. Each key ends with a slash or is empty for a whole bucket. Null if the variable is invalid. */
export function parseObjectPrefixes(environment: Environment): readonly ObjectPrefix[] | null {
  const entries = entriesOf(environment[prefixesVariable]);
  const locations = entries.map((entry) => (entry.startsWith("s3://") ? parseS3Uri(entry) : null));
  if (entries.length > entriesMax || locations.includes(null)) return null;
  return locations.flatMap((location) =>
    location === null ? [] : [{ bucket: location.bucket, key: folderPrefix(location.key) }],
  );
}

/** Returns the names of the endpoints that a model's code may invoke; null if the variable is invalid. */
export function parseInvokableEndpoints(environment: Environment): readonly string[] | null {
  const entries = entriesOf(environment[endpointsVariable]);
  return entries.length > entriesMax || !entries.every(isInvokableEndpoint) ? null : entries;
}

/** Returns whether a text is a valid endpoint name, or `*` for all endpoints. */
export function isInvokableEndpoint(text: string): boolean {
  return text === "*" || /^[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}$/.test(text);
}

/** Returns CreateModel's error text for an invalid value of one of the two variables; null if the value is valid. */
export function grantVariableError(name: string, value: string): string | null {
  const refusal = (what: string) =>
    `Environment variable ${name} must contain ${what}, up to ${entriesMax}, separated by commas.`;
  const environment = { [name]: value };
  if (parseObjectPrefixes(environment) === null) return refusal("prefixes such as s3://bucket/results/");
  return parseInvokableEndpoints(environment) === null ? refusal("names of endpoints, or * for all") : null;
}

const entriesOf = (text = ""): readonly string[] => text.split(/[,\s]+/).filter((entry) => entry !== "");
