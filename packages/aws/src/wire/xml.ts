import { XMLParser, XMLValidator } from "fast-xml-parser";
import { AwsError } from "@galatea/base";

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

/** Of a document that is read in pieces: about 2 ms of the event loop. */
const pieceLength = 32 * 1024;

/**
 * A document as nested records of strings and arrays. Document types are refused: nobody needs their entities. A long document that is a
 * list of `repeated` elements is read a piece each turn; any other of megabytes is looked through in one turn and read in another.
 */
export async function readXml(
  body: Buffer,
  root: string,
  { turn }: { readonly turn: () => Promise<void> },
  repeated: string | null = null,
): Promise<Record<string, unknown>> {
  const text = body.toString("utf8");
  const pieces = repeated === null || text.length <= pieceLength ? null : documentsOf(text, root, repeated);
  if (pieces !== null) return await readPieces(pieces, root, turn);
  if (/<!DOCTYPE/i.test(text) || XMLValidator.validate(text) !== true) throw malformed();
  await turn();
  const document = elementOf(text, root);
  return typeof document === "object" && document !== null ? (document as Record<string, unknown>) : {};
}

/** What the documents have in them together, as one document would have it. */
async function readPieces(
  documents: readonly string[],
  root: string,
  turn: () => Promise<void>,
): Promise<Record<string, unknown>> {
  const elements = new Map<string, unknown[]>();
  for (const text of documents) {
    await turn();
    if (XMLValidator.validate(text) !== true) throw malformed();
    const piece = elementOf(text, root);
    if (typeof piece !== "object" || piece === null) continue;
    for (const [name, value] of Object.entries(piece)) {
      const values = elements.get(name) ?? [];
      elements.set(name, values);
      for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) values.push(each);
    }
  }
  return Object.fromEntries([...elements].map(([name, values]) => [name, values.length === 1 ? values[0] : values]));
}

/**
 * A document cut behind `repeated` elements into several with the same root. null for one with comments and the like, in which what looks
 * like the end of an element may be none, and for one whose root is not easily found.
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
    end.lastIndex = start + pieceLength;
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
