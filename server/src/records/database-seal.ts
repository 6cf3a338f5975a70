import { closeSync, existsSync, fstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { sealLine, soundText } from "../base/index.ts";
import { differingPages, pagesInLog, sumPages, sumPagesAnew, type PageSums } from "./database-pages.ts";
import { sumBeginning, type JournalBeginning } from "./journal-reading.ts";

const formatNumber = 1;
const sealPath = (path: string) => `${path}.seal`;
const logPath = (path: string) => `${path}-wal`;

interface Sealed {
  readonly pages: PageSums;
  readonly beginning: JournalBeginning;
}

/**
 * Whether both copies are what they were written as, by the seal beside them: each page of the database has its checksum, or is one that
 * the write-ahead log holds, and the journal's beginning, which is given, has its own. Null where there is no seal, or it does not hold. To be asked before
 * SQLite opens the database. Whether the log is whole, and the database what the journal's commits come to, their counts tell.
 */
export function checkSeal(path: string, journalPath: string): JournalBeginning | null {
  const sealed = readSeal(path);
  if (sealed === null) return null;
  const now = sumPages(path);
  if (now === null || now.pageBytes !== sealed.pages.pageBytes) return null;
  const differing = differingPages(sealed.pages, now);
  if (differing.length > 0) {
    const inLog = pagesInLog(logPath(path));
    if (!differing.every((page) => inLog.has(page))) return null;
  }
  const { beginning } = sealed;
  const isSame = existsSync(journalPath) && sumBeginning(journalPath, beginning.byteLength) === beginning.sum;
  return isSame ? beginning : null;
}

/** Null where there is none that can be read and is whole. */
function readSeal(path: string): Sealed | null {
  try {
    const bytes = readFileSync(sealPath(path));
    const end = bytes.indexOf(10);
    const text = end < 0 ? null : soundText(bytes.subarray(0, end));
    const table = bytes.subarray(end + 1);
    const line = text === null ? null : (JSON.parse(text) as Partial<SealLine>);
    if (line === null || !isSealLine(line) || table.length % 4 !== 0 || crc32(table) !== line.tableSum) return null;
    const sums = Uint32Array.from({ length: table.length / 4 }, (_, page) => table.readUInt32LE(page * 4));
    return { pages: { pageBytes: line.pageBytes, sums }, beginning: line.beginning };
  } catch {
    // A seal that cannot be read holds for nothing.
    return null;
  }
}

function isSealLine(line: Partial<SealLine>): line is SealLine {
  const { seal, pageBytes, tableSum, beginning } = line;
  const { byteLength, sum, commitCount } = (beginning ?? {}) as Partial<JournalBeginning>;
  const numbers = [pageBytes, tableSum, byteLength, sum, commitCount];
  return seal === formatNumber && numbers.every((number) => Number.isSafeInteger(number) && Number(number) >= 0);
}

interface SealLine {
  readonly seal: typeof formatNumber;
  readonly pageBytes: number;
  readonly tableSum: number;
  readonly beginning: JournalBeginning;
}

/**
 * The checksums of an open database's pages, kept up as SQLite moves commits from the log into the file. The pages that it moves are in the
 * log until the next write, so a seal that a kill leaves behind holds for all the others. It is never synced: one that
 * is old, or torn, does not hold, and the next start reads both copies row by row.
 */
export class DatabaseSeal implements Disposable {
  readonly #path: string;
  readonly #file: number;
  #pages: PageSums | null = null;
  #written: JournalBeginning | null = null;
  #modifiedNs = -1n;

  /** The database is open. */
  constructor(path: string) {
    this.#path = path;
    this.#file = openSync(path, "r");
  }

  /** What a checkpoint may move into the file. */
  pagesInLog(): ReadonlySet<number> {
    return pagesInLog(logPath(this.#path));
  }

  /** After a commit: whether SQLite, or a journal that was begun anew, has made the seal another one. */
  keepUp(beginning: JournalBeginning | null): void {
    const isMoved = fstatSync(this.#file, { bigint: true }).mtimeNs !== this.#modifiedNs;
    if (isMoved || beginning !== this.#written) this.write(beginning, this.pagesInLog());
  }

  /** `pages` may be others than they were; none where the journal is not to be gone on with. */
  write(beginning: JournalBeginning | null, pages: ReadonlySet<number>): void {
    // Before it is read: what is moved meanwhile is looked at again.
    const { mtimeNs } = fstatSync(this.#file, { bigint: true });
    const sums = this.#pages === null ? sumPages(this.#path) : sumPagesAnew(this.#path, this.#pages, pages);
    this.#pages = sums;
    this.#written = beginning;
    this.#modifiedNs = mtimeNs;
    if (sums === null || beginning === null) return rmSync(sealPath(this.#path), { force: true });
    const table = Buffer.alloc(sums.sums.length * 4);
    for (const [page, sum] of sums.sums.entries()) table.writeUInt32LE(sum, page * 4);
    const { pageBytes } = sums;
    const line: SealLine = { seal: formatNumber, pageBytes, tableSum: crc32(table), beginning };
    const aside = `${sealPath(this.#path)}.new`;
    writeFileSync(aside, Buffer.concat([Buffer.from(`${sealLine(JSON.stringify(line))}\n`), table]));
    renameSync(aside, sealPath(this.#path));
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}
