import { isOpen, parseMediaType } from "../payloads/media-type.ts";
import {
  type AlgorithmResponse,
  type AlgorithmRequest,
  AlgorithmRequestError,
  payloadText,
  textResponse,
} from "../payloads/algorithm-request.ts";
import { memberOf } from "./bundle-attributes.ts";
import { type DataSchema, dataSchemaOf, parsedDataSchema } from "./data-schema.ts";
import type { LeapStep } from "./leap-step.ts";
import { LeapFailure, LeapRow } from "./leap-values.ts";
import { columnValue, printedElements, printedScalar } from "./spark-values.ts";

const csvType = "text/csv";
const linesType = "application/jsonlines";
/** Variant of JSON Lines for text algorithms. */
const textLinesType = "application/jsonlines;data=text";
const acceptTypes = [csvType, linesType, textLinesType] as const;
type AcceptType = (typeof acceptTypes)[number];

/** A SparkML container: its pipeline, and the value of SAGEMAKER_SPARKML_SCHEMA, "" if it is not set. */
export interface SparkServing {
  readonly model: LeapStep;
  readonly schemaText: string;
}

/** Handles a request as SageMaker's SparkML container does. Throws AlgorithmRequestError. */
export function predictSpark(serving: SparkServing, request: AlgorithmRequest): AlgorithmResponse {
  const { type } = parseMediaType(request.contentType);
  const read = readers.get(type);
  if (read === undefined) {
    throw new AlgorithmRequestError(415, '{"status":415,"error":"Unsupported Media Type","path":"/invocations"}');
  }
  if (request.bytes.length === 0) {
    throw new AlgorithmRequestError(400, '{"status":400,"error":"Bad Request","path":"/invocations"}');
  }
  try {
    const accept = acceptOf(request.accept);
    return read(payloadText(request.bytes), { serving, accept });
  } catch (error) {
    if (error instanceof LeapFailure || error instanceof SyntaxError || error instanceof TypeError) {
      throw new AlgorithmRequestError(400, error.message);
    }
    throw error;
  }
}

/** Returns the response type. Types are compared as written, without normalization, as in SageMaker's container. */
function acceptOf(accept: string): AcceptType {
  if (isOpen(accept)) return csvType;
  const found = acceptTypes.find((each) => each === accept);
  if (found !== undefined) return found;
  throw new LeapFailure("Accept value passed via request or environment variable is not valid");
}

interface Reading {
  readonly serving: SparkServing;
  readonly accept: AcceptType;
}

const readers: ReadonlyMap<string, (text: string, reading: Reading) => AlgorithmResponse> = new Map([
  [csvType, transformCsv],
  ["application/json", transformJson],
  [linesType, transformLines],
]);

/** Handles a CSV body: only the first row is used, and each column is a scalar. */
function transformCsv(text: string, { serving, accept }: Reading): AlgorithmResponse {
  const schema = schemaOf(undefined, serving);
  const input = schema.input.map((column) => ({ ...column, struct: "basic" as const }));
  return printed(serving, { schema: { ...schema, input }, data: firstRecord(text) }, accept);
}

function transformJson(text: string, { serving, accept }: Reading): AlgorithmResponse {
  const document: unknown = JSON.parse(text);
  return printed(serving, { schema: schemaOf(document, serving), data: dataOf(document) }, accept);
}

/**
 * Handles a JSON Lines body: each line has one row or a list of rows, and the first line may have a schema. The response is printed like a
 * Java list of lists.
 */
function transformLines(text: string, { serving, accept }: Reading): AlgorithmResponse {
  const documents = text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "")
    .map((line): unknown => JSON.parse(line));
  const schema = schemaOf(documents[0], serving);
  const rows = documents.flatMap((document) => {
    const data = dataOf(document);
    return data.length > 0 && data.every(Array.isArray) ? (data as readonly (readonly unknown[])[]) : [data];
  });
  const bodies = rows.map((data) => `[${printedBody(serving, { schema, data }, accept)}]`);
  return textResponse(typeOf(accept), `[${bodies.join(", ")}]`);
}

/** Returns the schema of the request, or that of the container if the request has none. */
function schemaOf(document: unknown, { schemaText }: SparkServing): DataSchema {
  const own = memberOf(document, "schema") ?? null;
  if (own !== null) return dataSchemaOf(own);
  if (schemaText !== "") return parsedDataSchema(schemaText);
  throw new LeapFailure("Input schema has to be provided either via environment variable or via the request");
}

function dataOf(document: unknown): readonly unknown[] {
  const data = memberOf(document, "data");
  if (!Array.isArray(data)) throw new LeapFailure("the request has no list of data");
  return data;
}

interface SparkRecord {
  readonly schema: DataSchema;
  readonly data: readonly unknown[];
}

function printed(serving: SparkServing, record: SparkRecord, accept: AcceptType): AlgorithmResponse {
  return textResponse(typeOf(accept), printedBody(serving, record, accept));
}

function typeOf(accept: AcceptType): string {
  return accept === csvType ? csvType : linesType;
}

function printedBody({ model }: SparkServing, { schema, data }: SparkRecord, accept: AcceptType): string {
  const row = new LeapRow();
  for (const [index, column] of schema.input.entries()) {
    if (index >= data.length) throw new LeapFailure(`Index ${index} out of bounds for length ${data.length}`);
    row.set(column.name, columnValue(column, data[index]));
  }
  model(row);
  const value = row.get(schema.output.name);
  if (schema.output.struct === "basic") return printedScalar(value, schema.output);
  const elements = printedElements(value, schema.output);
  switch (accept) {
    case csvType:
      return elements.join(",");
    case linesType:
      return `{"features":[${elements.map((each) => jsonElement(each, value.kind === "list" && value.base === "string")).join(",")}]}`;
    default:
      return `{"source":${JSON.stringify(elements.join(" "))}}`;
  }
}

/** Prints an element like Jackson: NaN and infinities are strings. */
function jsonElement(element: string, isText: boolean): string {
  return isText || /^(NaN|-?Infinity)$/.test(element) ? JSON.stringify(element) : element;
}

/** Returns the fields of the first record of a CSV. Fields may be quoted. */
function firstRecord(text: string): string[] {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    let field = "";
    if (text[at] === '"') {
      at += 1;
      for (;;) {
        const quote = text.indexOf('"', at);
        if (quote === -1) throw new LeapFailure("the record has a quote that does not end");
        field += text.slice(at, quote);
        at = quote + 1;
        if (text[at] !== '"') break;
        field += '"';
        at += 1;
      }
    } else {
      const end = /[,\r\n]|$/g;
      end.lastIndex = at;
      const found = end.exec(text);
      field = text.slice(at, found?.index ?? text.length);
      at = found?.index ?? text.length;
    }
    fields.push(field);
    if (text[at] !== ",") return fields;
    at += 1;
  }
}
