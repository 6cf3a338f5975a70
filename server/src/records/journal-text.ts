import { sealLine, unsealLine } from "../base/index.ts";
import type { SqlValue, Statement } from "./statement.ts";
import type { TableRow } from "./tables.ts";

/** What a journal begins with: the state that its commits go on from. */
export interface JournalHeader {
  readonly commitCount: number;
  readonly rowCount: number;
  readonly migrations: readonly string[];
}

export interface JournalCommit {
  readonly commit: number;
  readonly statements: readonly Statement[];
}

export interface JournalContents {
  readonly header: JournalHeader | null;
  readonly rows: readonly TableRow[];
  readonly commits: readonly JournalCommit[];
  /** Of the last commit, or of the header. */
  readonly commitCount: number;
  /** Lines that could not be read, counted from 1, the first of them; and how many there are. */
  readonly damagedLines: readonly number[];
  readonly damagedCount: number;
  readonly repairedCount: number;
  /** Every row and every commit up to `commitCount` is there. */
  readonly isWhole: boolean;
}

const formatNumber = 1;
const toldMax = 20;

export function headerLine(header: JournalHeader): string {
  return `${sealLine(JSON.stringify({ journal: formatNumber, ...header }))}\n`;
}

export function rowLine(row: TableRow): string {
  return `${sealLine(rowText(row))}\n`;
}

/** Equal for equal rows. */
export function rowText({ table, row }: TableRow): string {
  return JSON.stringify({ table, row: row.map(encodeValue) });
}

export function commitLine({ commit, statements }: JournalCommit): string {
  const encoded = statements.map(({ sql, values }) => [sql, values.map(encodeValue)]);
  return `${sealLine(JSON.stringify({ commit, statements: encoded }))}\n`;
}

type Encoded = string | number | null | { readonly integer: string } | { readonly bytes: string };

/** Equal values give equal text, whether an integer came as a number or as a bigint. */
export function encodeValue(value: SqlValue): Encoded {
  if (typeof value === "bigint") {
    return Number.isSafeInteger(Number(value)) ? Number(value) : { integer: value.toString() };
  }
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("base64") };
  return value;
}

function decodeValue(value: Encoded): SqlValue {
  if (value === null || typeof value !== "object") return value;
  return "integer" in value ? BigInt(value.integer) : Buffer.from(value.bytes, "base64");
}

interface Line {
  readonly journal?: number;
  readonly commitCount?: number;
  readonly rowCount?: number;
  readonly migrations?: readonly string[];
  readonly table?: string;
  readonly row?: readonly Encoded[];
  readonly commit?: number;
  readonly statements?: readonly (readonly [string, readonly Encoded[]])[];
}

export function parseJournal(bytes: Buffer): JournalContents {
  const rows: TableRow[] = [];
  const commits: JournalCommit[] = [];
  const damagedLines: number[] = [];
  let header: JournalHeader | null = null;
  let [damagedCount, repairedCount, number] = [0, 0, 0];
  for (const line of linesOf(bytes)) {
    number += 1;
    const read = readLine(line);
    if (read === null) {
      damagedCount += 1;
      if (damagedLines.length < toldMax) damagedLines.push(number);
      continue;
    }
    if (read.isRepaired) repairedCount += 1;
    const { journal, commitCount, rowCount, migrations, table, row, commit, statements } = read.line;
    if (journal === formatNumber) {
      header = { commitCount: commitCount ?? 0, rowCount: rowCount ?? 0, migrations: migrations ?? [] };
    } else if (table !== undefined) rows.push({ table, row: (row ?? []).map(decodeValue) });
    else if (commit !== undefined) {
      const decoded = (statements ?? []).map(([sql, values]) => ({ sql, values: values.map(decodeValue) }));
      commits.push({ commit, statements: decoded });
    }
  }
  const first = header?.commitCount ?? 0;
  const isWhole =
    damagedCount === 0 &&
    header?.rowCount === rows.length &&
    commits.every(({ commit }, index) => commit === first + index + 1);
  const commitCount = commits.at(-1)?.commit ?? first;
  return { header, rows, commits, commitCount, damagedLines, damagedCount, repairedCount, isWhole };
}

function readLine(bytes: Buffer): { readonly line: Line; readonly isRepaired: boolean } | null {
  const unsealed = unsealLine(bytes);
  if (unsealed === null) return null;
  try {
    return { line: JSON.parse(unsealed.text) as Line, isRepaired: unsealed.isRepaired };
  } catch {
    return null;
  }
}

function* linesOf(bytes: Buffer): Generator<Buffer> {
  let start = 0;
  while (start < bytes.length) {
    const end = bytes.indexOf(10, start);
    yield bytes.subarray(start, end < 0 ? bytes.length : end);
    start = end < 0 ? bytes.length : end + 1;
  }
}
