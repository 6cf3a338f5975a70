import { XMLParser, XMLValidator } from "fast-xml-parser";
import { AwsError } from "../../base/index.ts";

/** Text, or elements in order; an array repeats its element, undefined and null are left out. */
export type XmlContent = string | number | boolean | XmlElements;
export interface XmlElements {
  readonly [name: string]: XmlContent | readonly XmlContent[] | null | undefined;
}

export const xmlDeclaration = '<?xml version="1.0" encoding="UTF-8"?>\n';

export function writeXml(name: string, content: XmlContent, namespace: string | null): string {
  return `${xmlDeclaration}${element(name, content, namespace)}`;
}

function element(name: string, content: XmlContent, namespace: string | null): string {
  const open = namespace === null ? name : `${name} xmlns="${escapeXml(namespace)}"`;
  if (typeof content === "string") return `<${open}>${escapeXml(content)}</${name}>`;
  if (typeof content !== "object") return `<${open}>${content}</${name}>`;
  let inner = "";
  for (const [child, value] of Object.entries(content)) {
    if (value === null || value === undefined) continue;
    if (Array.isArray(value)) for (const item of value as readonly XmlContent[]) inner += element(child, item, null);
    else inner += element(child, value as XmlContent, null);
  }
  return inner === "" ? `<${open}/>` : `<${open}>${inner}</${name}>`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\r": "&#13;",
};

/** What XML 1.0 cannot hold at all (other control characters, lone surrogates) becomes U+FFFD. */
export function escapeXml(text: string): string {
  // Most texts are dates, numbers and names, of which an answer may hold a hundred thousand.
  if (/^[\w .:/+-]*$/.test(text)) return text;
  return (
    text
      .toWellFormed()
      .replace(/[&<>"\r]/g, (char) => entities[char] ?? "")
      // oxlint-disable-next-line no-control-regex -- these are the characters XML 1.0 has no form for
      .replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g, "\uFFFD")
  );
}

const parser = new XMLParser({
  ignoreAttributes: true,
  removeNSPrefix: true,
  parseTagValue: false,
  trimValues: false,
  processEntities: true,
  htmlEntities: true,
  ignoreDeclaration: true,
});

/**
 * A document as nested records of strings and arrays. Document types are refused: nobody needs their entities. A document of megabytes is
 * looked through in one turn and read in another.
 */
export async function readXml(
  body: Buffer,
  root: string,
  { turn }: { readonly turn: () => Promise<void> },
): Promise<Record<string, unknown>> {
  const text = body.toString("utf8");
  if (/<!DOCTYPE/i.test(text) || XMLValidator.validate(text) !== true) throw malformed();
  await turn();
  const document = elementOf(text, root);
  return typeof document === "object" && document !== null ? (document as Record<string, unknown>) : {};
}

function elementOf(text: string, root: string): unknown {
  try {
    const document = parser.parse(text) as Record<string, unknown>;
    if (Object.hasOwn(document, root)) return document[root];
  } catch (cause) {
    // The parser throws at names such as `__proto__`, and at elements nested deeper than it likes.
    throw malformed(cause);
  }
  throw malformed();
}

export function malformed(cause?: unknown): AwsError {
  return new AwsError(
    "MalformedXML",
    "The XML you provided was not well-formed or did not validate against our published schema",
    { cause },
  );
}
