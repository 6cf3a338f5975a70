import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** What a disk or a directory refuses: circumstances of the machine, which people mend, and no bug. */
export type DiskFault = "full" | "file-too-large" | "read-only" | "forbidden" | "no-directory";

const faultOfCode: Readonly<Record<string, DiskFault>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  // RLIMIT_FSIZE, or a file system whose files have a largest size.
  EFBIG: "file-too-large",
  EROFS: "read-only",
  EACCES: "forbidden",
  EPERM: "forbidden",
  ENOTDIR: "no-directory",
};

/** Sockets and processes are refused with codes that files have too. */
const otherCalls = /^(listen|bind|connect|spawn|kill|setuid)/;

const causesMax = 5;

/** What of a disk an error or one of its causes tells; null where it tells something else. */
export function diskFault(thrown: unknown): DiskFault | null {
  let error = thrown as NodeJS.ErrnoException | null | undefined;
  for (let i = 0; i < causesMax && error instanceof Error; i++) {
    const fault = faultOfCode[error.code ?? ""];
    if (fault !== undefined && !otherCalls.test(error.syscall ?? "")) return fault;
    error = error.cause as NodeJS.ErrnoException | undefined;
  }
  return null;
}

/** `what`: a path in quotes, or words such as "the platform's data". */
const textOfFault: Readonly<Record<DiskFault, (what: string) => string>> = {
  full: (what) => `the disk that holds ${what} is full`,
  "file-too-large": (what) => `${what} would be larger than a file may be`,
  "read-only": (what) => `the disk that holds ${what} is read-only`,
  forbidden: (what) => `this user may not write ${what}`,
  "no-directory": (what) => `${what} is not below a directory`,
};

export function diskText(fault: DiskFault, what: string): string {
  return textOfFault[fault](what);
}

/** What could not be written and why, in one sentence; `code` is that of the cause. */
export class DiskError extends Error {
  readonly code: string | undefined;

  constructor(fault: DiskFault, what: string, cause: unknown) {
    super(diskText(fault, what), { cause });
    this.name = "DiskError";
    this.code = (cause as NodeJS.ErrnoException).code;
  }
}

/** The error as a sentence about `what` where a disk is at fault, else as it is. */
export function asDiskError(thrown: unknown, what: string): unknown {
  if (thrown instanceof DiskError) return thrown;
  const fault = diskFault(thrown);
  return fault === null ? thrown : new DiskError(fault, what, thrown);
}

/** Makes a directory and those above it. Throws DiskError with the directory's path where the disk does not let it. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw asDiskError(await firstRefusal(resolve(path), error), `'${path}'`);
  }
}

/** Why the first directory that is missing cannot be made: of a read-only disk Node says ENOENT about the last one. */
async function firstRefusal(path: string, thrown: unknown): Promise<unknown> {
  let missing = path;
  while (missing !== dirname(missing) && (await isMissing(dirname(missing)))) missing = dirname(missing);
  try {
    await mkdir(missing);
    return thrown;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EEXIST"
      ? Object.assign(new Error(`${missing} exists`, { cause: thrown }), { code: "ENOTDIR" })
      : error;
  }
}

async function isMissing(path: string): Promise<boolean> {
  try {
    await stat(path);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
