import { csvRows } from "../payloads/csv-rows.ts";
import { type ExampleFeatures, featureTable, TooManyColumns } from "../payloads/feature-table.ts";
import { parseMediaType } from "../payloads/media-type.ts";
import { parseNumber } from "../payloads/number-text.ts";
import {
  AlgorithmRequestError,
  type AlgorithmRequest,
  type FeatureRows,
  payloadText,
} from "../payloads/algorithm-request.ts";
import { recordIoExamples } from "../payloads/record-io.ts";

export type XgboostType = "csv" | "libsvm" | "recordio-protobuf";

const types: ReadonlyMap<string, XgboostType> = new Map([
  ["csv", "csv"],
  ["text/csv", "csv"],
  ["libsvm", "libsvm"],
  ["text/libsvm", "libsvm"],
  ["text/x-libsvm", "libsvm"],
  ["recordio-protobuf", "recordio-protobuf"],
  ["application/x-recordio-protobuf", "recordio-protobuf"],
]);

/** The list of types in the error text of SageMaker's container, which includes types that only training supports. */
const listed =
  "csv, libsvm, parquet, recordio-protobuf, text/csv, text/libsvm, text/x-libsvm, application/x-parquet, application/x-recordio-protobuf";

export interface XgboostRows {
  readonly type: XgboostType;
  readonly rows: FeatureRows;
}

/** Reads a request's rows. Throws AlgorithmRequestError: 400 for more features than the model has, 415 for anything else unreadable. */
export function readXgboostRows({ bytes, contentType }: AlgorithmRequest, featureCount: number): XgboostRows {
  const type = typeOf(contentType);
  try {
    return { type, rows: rowsOf(type, bytes, featureCount + 1) };
  } catch (error) {
    if (error instanceof TooManyColumns) {
      throw new AlgorithmRequestError(
        400,
        `Unable to evaluate payload provided: Feature size of ${type} inference data ${error.columnCount} is larger than ` +
          `feature size of trained model ${featureCount}.`,
      );
    }
    if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
    const words = `Loading ${type} data failed with Exception, please ensure data is in ${type} format:`;
    throw new AlgorithmRequestError(415, `${words}\n <class 'ValueError'>\n ${error.message}`);
  }
}

function typeOf(contentType: string): XgboostType {
  if (contentType === "") return "libsvm";
  const { type, parameters } = parseMediaType(contentType);
  const found = types.get(type);
  const lower = contentType.toLowerCase();
  if (found === undefined) {
    const isParquet = type === "parquet" || type === "application/x-parquet";
    throw new AlgorithmRequestError(
      415,
      isParquet
        ? `Content-type ${contentType} is not supported.`
        : `${lower} is not an accepted ContentType: ${listed}.`,
    );
  }
  const labelSize = parameters.get("label_size") ?? "1";
  if (found === "csv" && labelSize !== "1") {
    const words = "Optional parameter label_size must be equal to 1";
    throw new AlgorithmRequestError(415, `${lower} is not an accepted csv ContentType. ${words}`);
  }
  return found;
}

function rowsOf(type: XgboostType, bytes: Uint8Array, columnsMax: number): FeatureRows {
  if (type === "recordio-protobuf")
    return featureTable(recordIoExamples(bytes), { absent: NaN, columnCount: 0, columnsMax });
  const text = payloadText(bytes).trim();
  if (type === "csv") return csvRows(text, { delimiter: delimiterOf(text), emptyCell: NaN });
  return featureTable(libsvmExamples(text), { absent: NaN, columnCount: 0, columnsMax });
}

const preferredDelimiters = [",", "\t", ";", " ", ":"];
const sniffedCharacters = 512;

/**
 * Returns the delimiter of the first line, like Python's `csv.Sniffer`: a usual delimiter, or else the most frequent character that is
 * neither a letter nor a digit.
 */
function delimiterOf(text: string): string {
  const line = (text.split("\n", 1)[0] ?? "").slice(0, sniffedCharacters);
  const usual = preferredDelimiters.find((each) => line.includes(each));
  if (usual !== undefined) return usual;
  const counts = new Map<string, number>();
  for (const each of line) counts.set(each, (counts.get(each) ?? 0) + 1);
  const [most = ","] = [...counts].toSorted(([a, x], [b, y]) => y - x || (a < b ? 1 : -1))[0] ?? [];
  return /[A-Za-z0-9]/.test(most) ? "," : most;
}

/** Reads libsvm lines. Columns are numbered from 1, or from 0 if one of them is 0. Labels (cells without a colon) are ignored. */
function libsvmExamples(text: string): ExampleFeatures[] {
  const rows = text.split("\n").map((line) => {
    const keys: number[] = [];
    const values: number[] = [];
    for (const item of line.split(" ")) {
      const [key, value = ""] = item.trim().split(":");
      if (!item.includes(":")) continue;
      const number = parseNumber(value);
      if (!/^\d{1,15}$/.test(key ?? "")) throw new RangeError(`invalid literal for int() with base 10: '${key ?? ""}'`);
      if (number === null) throw new RangeError(`could not convert string to float: '${value.slice(0, 50)}'`);
      keys.push(Number(key));
      values.push(number);
    }
    return { keys, values };
  });
  const lowest = rows.reduce((least, { keys }) => keys.reduce((low, key) => Math.min(low, key), least), Infinity);
  const shift = lowest >= 1 ? 1 : 0;
  return rows.map(({ keys, values }) => ({
    kind: "sparse",
    values,
    keys: keys.map((key) => key - shift),
    columnCount: 0,
  }));
}
