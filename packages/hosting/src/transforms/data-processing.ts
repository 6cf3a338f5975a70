import type { YieldOptions } from "@galatea/base";
import { splitCsvRow } from "./csv-row.ts";
import { parseJsonExactly } from "./exact-json.ts";
import { isJsonObject, selectJsonPath, type JsonPath } from "./json-path.ts";
import { stripLineEnd } from "./line-splitter.ts";
import { ChunkedRows } from "./chunked-rows.ts";
import { transformClientError } from "./transform-error.ts";

/** The format of rows. `json`: a payload is one document. `jsonlines` and `csv`: each line is a row. */
export type RowFormat = "json" | "jsonlines" | "csv";

export interface DataProcessing {
  readonly format: RowFormat;
  /** The selection from each input row; null: the complete row. */
  readonly inputFilter: JsonPath | null;
  readonly outputFilter: JsonPath | null;
  readonly joinsInput: boolean;
}

/** Returns the row format of a content type; null if the type cannot be filtered. */
export function rowFormatOfType(contentType: string, isSplit: boolean): RowFormat | null {
  const type = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  if (type === "text/csv") return "csv";
  if (type === "application/jsonlines") return "jsonlines";
  if (type === "application/json") return isSplit ? "jsonlines" : "json";
  return null;
}

/** Returns the filtered rows, which are sent to the container, and their number. */
export async function filterRows(
  payload: Buffer,
  processing: DataProcessing,
  of: YieldOptions,
): Promise<{ readonly body: Buffer; readonly recordCount: number }> {
  const rows = new ChunkedRows(of, "latin1");
  let recordCount = 0;
  for (const row of nonEmptyLines(payload)) {
    recordCount += 1;
    if (rows.add(`${filterRow(row, processing).toString("latin1")}\n`, row.length)) await rows.next();
  }
  return { body: rows.whole(), recordCount };
}

/** Returns the filtered row, which is sent to the container. */
export function filterRow(row: Buffer, { format, inputFilter }: DataProcessing): Buffer {
  if (inputFilter === null) return row;
  return Buffer.from(picked(row.toString("utf8"), format, inputFilter));
}

/**
 * Returns the output for a container's response: one row for each row of the payload. If requested, each row is joined
 * with its unfiltered input row (`rows`). Each row ends with a line feed; a document does not. Rejects with
 * TransformError if the response has another number of rows. Yields to the event loop between rows, but not within a
 * document.
 */
export async function processResponse(
  response: Buffer,
  rows: Buffer | null,
  processing: DataProcessing,
  of: YieldOptions,
): Promise<Buffer> {
  const { format, joinsInput } = processing;
  if (format === "json") {
    return Buffer.from(processedRow(stripLineEnd(response).toString("utf8"), rows, processing));
  }
  const originals = joinsInput ? nonEmptyLines(rows ?? Buffer.alloc(0)) : null;
  const processed = new ChunkedRows(of, "utf8");
  let answeredCount = 0;
  for (const line of nonEmptyLines(response)) {
    answeredCount += 1;
    const row = originals?.next();
    if (row?.done === true) continue;
    const original = row?.value ?? null;
    const text = `${processedRow(line.toString("utf8"), original, processing)}\n`;
    if (processed.add(text, line.length + (original?.length ?? 0))) await processed.next();
  }
  if (originals === null) return processed.whole();
  const rowCount = countOf(nonEmptyLines(rows ?? Buffer.alloc(0)));
  if (answeredCount !== rowCount) {
    throw transformClientError(
      `the container returned ${answeredCount} rows for ${rowCount}: the input cannot be joined to its output`,
    );
  }
  return processed.whole();
}

function countOf(lines: Iterable<Buffer>): number {
  let count = 0;
  for (const _ of lines) count += 1;
  return count;
}

/**
 * Yields non-empty lines one at a time, because objects for all lines together would need more memory than the text.
 */
export function* nonEmptyLines(text: Buffer): Generator<Buffer, void> {
  for (let from = 0; from < text.length;) {
    const at = text.indexOf(0x0a, from);
    const end = at < 0 ? text.length : at + 1;
    const line = stripLineEnd(text.subarray(from, end));
    if (line.length > 0) yield line;
    from = end;
  }
}

function processedRow(response: string, row: Buffer | null, processing: DataProcessing): string {
  const { format, outputFilter, joinsInput } = processing;
  const joined = joinsInput && row !== null ? joinedRow(row.toString("utf8"), response, format) : response;
  return outputFilter === null ? joined : picked(joined, format, outputFilter);
}

/**
 * Joins a row and its response. CSV: the response's columns are appended. JSON object: the response is an additional
 * attribute. Any other JSON value is wrapped in an object.
 */
function joinedRow(row: string, result: string, format: RowFormat): string {
  if (format === "csv") return `${row},${result}`;
  const input = parsed(row, "the input");
  const output = parsed(result, "the container's response");
  const joined = isJsonObject(input)
    ? { ...input, SageMakerOutput: output }
    : { SageMakerInput: input, SageMakerOutput: output };
  return JSON.stringify(joined);
}

function picked(row: string, format: RowFormat, path: JsonPath): string {
  if (format !== "csv") return JSON.stringify(selectJsonPath(path, parsed(row, "a row")));
  const value = selectJsonPath(path, splitCsvRow(row));
  return Array.isArray(value) ? value.join(",") : String(value);
}

function parsed(text: string, what: string): unknown {
  try {
    return parseJsonExactly(text);
  } catch (error) {
    throw transformClientError(`${what} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
