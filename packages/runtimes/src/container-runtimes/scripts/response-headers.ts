import { InferenceError } from "@galatea/base";

const headersMax = 64;
/** Maximum length of all names and values together; the platform's HTTP client accepts response headers of at most 16 KiB. */
const charactersMax = 8 * 1024;
const nameShape = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
/** Characters that HTTP does not allow in header values. */
const unsafe = /[^\t\x20-\x7e\x80-\xff]/g;

/** Headers that the server sets itself, in lower case: they describe the transfer, or follow from the content type and the status. */
const ownNames: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "content-type",
  "date",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Returns the headers that a script set, as a flat list of names and values. `text` is a JSON object from the script's process, which is
 * untrusted. Throws InferenceError (INTERNAL) for an invalid header. Omits headers that the server sets, as multi-model-server does.
 */
export function responseHeaders(text: string): readonly string[] {
  const entries = entriesOf(text);
  if (entries.length > headersMax) throw refused(`it has ${entries.length} headers; up to ${headersMax} are sent`);
  const headers: string[] = [];
  let characters = 0;
  for (const [name, value] of entries) {
    if (!nameShape.test(name)) throw refused(`${JSON.stringify(name.slice(0, 100))} is not a valid header name`);
    if (ownNames.has(name.toLowerCase())) continue;
    const message = String(value).replace(unsafe, " ");
    characters += name.length + message.length;
    if (characters > charactersMax) throw refused(`its headers are longer than ${charactersMax} characters`);
    headers.push(name, message);
  }
  return headers;
}

function entriesOf(text: string): readonly [string, unknown][] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return Object.entries(parsed);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw refused("its headers are not a JSON object");
}

function refused(why: string): InferenceError {
  return new InferenceError("INTERNAL", `the script's response cannot be sent: ${why}`);
}
