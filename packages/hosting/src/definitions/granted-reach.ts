import { folderOf, parseS3Uri } from "./s3-uri.ts";

/** The variable of CreateModel's Environment that lists, separated by commas or blanks, prefixes below which the model's code writes objects. */
const prefixesVariable = "GALATEA_OBJECT_PREFIXES";
/** The variable that lists the other endpoints that the model's code may invoke; `*` for all. */
const endpointsVariable = "GALATEA_INVOKABLE_ENDPOINTS";
const entriesMax = 100;

type Environment = Readonly<Record<string, string>>;

interface ObjectPlace {
  readonly bucket: string;
  readonly key: string;
}

/** Returns the prefixes: each key ends with a slash, or is empty for a whole bucket. Null where the variable is not valid. */
export function objectPrefixes(environment: Environment): readonly ObjectPlace[] | null {
  const entries = entriesOf(environment[prefixesVariable]);
  const places = entries.map((entry) => (entry.startsWith("s3://") ? parseS3Uri(entry) : null));
  if (entries.length > entriesMax || places.includes(null)) return null;
  return places.flatMap((place) => (place === null ? [] : [{ bucket: place.bucket, key: folderOf(place.key) }]));
}

/** Returns the names of endpoints, or null where the variable is not valid. */
export function invokableEndpoints(environment: Environment): readonly string[] | null {
  const entries = entriesOf(environment[endpointsVariable]);
  return entries.length > entriesMax || !entries.every(isInvokableEndpoint) ? null : entries;
}

/** Returns whether a text is an endpoint's name, or `*` for all endpoints. */
export function isInvokableEndpoint(text: string): boolean {
  return text === "*" || /^[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}$/.test(text);
}

/** Returns the sentence with which CreateModel rejects one of the two variables, or null. */
export function refusedGrant(name: string, value: string): string | null {
  const refusal = (what: string) =>
    `Environment has to name in ${name} ${what}, up to ${entriesMax}, separated by commas.`;
  const environment = { [name]: value };
  if (objectPrefixes(environment) === null) return refusal("prefixes such as s3://bucket/results/");
  return invokableEndpoints(environment) === null ? refusal("names of endpoints, or * for all") : null;
}

const entriesOf = (text = ""): readonly string[] => text.split(/[,\s]+/).filter((entry) => entry !== "");
