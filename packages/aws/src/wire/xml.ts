import { XMLParser, XMLValidator } from "fast-xml-parser";
import { AwsError } from "@galatea/base";

/**
 * The content of an element: a text, or child elements in order. An array repeats its element; undefined and null are
 * omitted.
 */
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

/** Escapes a text. Characters that XML 1.0 cannot contain (most control characters, lone surrogates) become U+FFFD. */
export function escapeXml(text: string): string {
  // Avoids the replacements for dates, numbers and names: a response may have a hundred thousand of them.
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

/** Length of the chunks in which a long document is parsed. One chunk takes about 2 ms. */
const chunkLength = 32 * 1024;

/**
 * Parses a document to nested records of strings and arrays. Rejects document type declarations. A long document with a
 * list of `repeated` elements is parsed in chunks, and yields to the event loop between them. Any other document is
 * parsed at once.
 */
export async function readXml(
  body: Buffer,
  root: string,
  { nextTick }: { readonly nextTick: () => Promise<void> },
  repeated: string | null = null,
): Promise<Record<string, unknown>> {
  const text = body.toString("utf8");
  const chunks = repeated === null || text.length <= chunkLength ? null : documentsOf(text, root, repeated);
  if (chunks !== null) return await readPieces(chunks, root, nextTick);
  if (/<!DOCTYPE/i.test(text) || XMLValidator.validate(text) !== true) throw malformedXml();
  await nextTick();
  const document = elementOf(text, root);
  return typeof document === "object" && document !== null ? (document as Record<string, unknown>) : {};
}

/** Parses the documents one per tick, and merges them as if they were one document. */
async function readPieces(
  documents: readonly string[],
  root: string,
  nextTick: () => Promise<void>,
): Promise<Record<string, unknown>> {
  const elements = new Map<string, unknown[]>();
  for (const text of documents) {
    await nextTick();
    if (XMLValidator.validate(text) !== true) throw malformedXml();
    const chunk = elementOf(text, root);
    if (typeof chunk !== "object" || chunk === null) continue;
    for (const [name, value] of Object.entries(chunk)) {
      const values = elements.get(name) ?? [];
      elements.set(name, values);
      for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) values.push(each);
    }
  }
  return Object.fromEntries([...elements].map(([name, values]) => [name, values.length === 1 ? values[0] : values]));
}

/**
 * Splits a document after `repeated` elements into several documents with the same root. Returns null if a split is
 * uncertain: the document has comments or CDATA, or no recognisable root element.
 */
function documentsOf(text: string, root: string, repeated: string): readonly string[] | null {
  const attributes = `(?:\\s+[\\w:.-]+\\s*=\\s*(?:"[^"<>]*"|'[^'<>]*'))*`;
  const opening = new RegExp(`^\\uFEFF?\\s*(?:<\\?xml\\s[^<>]*\\?>)?\\s*<(?:[\\w.-]+:)?${root}${attributes}\\s*>`).exec(
    text.slice(0, 1024),
  )?.[0];
  const closingAt = text.lastIndexOf("</");
  if (opening === undefined || closingAt < opening.length) return null;
  const closing = text.slice(closingAt);
  const inner = text.slice(opening.length, closingAt);
  if (inner.includes("<!") || inner.includes("<?")) return null;
  const end = new RegExp(`</(?:[\\w.-]+:)?${repeated}\\s*>`, "g");
  const documents: string[] = [];
  for (let start = 0; start < inner.length;) {
    end.lastIndex = start + chunkLength;
    const cutAt = end.test(inner) ? end.lastIndex : inner.length;
    documents.push(opening + inner.slice(start, cutAt) + closing);
    start = cutAt;
  }
  return documents;
}

function elementOf(text: string, root: string): unknown {
  try {
    const document = parser.parse(text) as Record<string, unknown>;
    if (Object.hasOwn(document, root)) return document[root];
  } catch (cause) {
    // The parser throws for names such as `__proto__`, and for deeply nested elements.
    throw malformedXml(cause);
  }
  throw malformedXml();
}

export function malformedXml(cause?: unknown): AwsError {
  return new AwsError(
    "MalformedXML",
    "The XML you provided was not well-formed or did not validate against our published schema",
    { cause },
  );
}
