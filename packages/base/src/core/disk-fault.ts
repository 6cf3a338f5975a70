import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/**
 * A fault of the machine's disk, of a directory or of the database with the records. An operator can repair it; it is
 * not a bug.
 */
export type DiskFault = "full" | "file-too-large" | "read-only" | "forbidden" | "no-directory" | "unreachable";

const faultOfCode: Readonly<Record<string, DiskFault>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  // The size exceeds RLIMIT_FSIZE or the file system's maximum file size.
  EFBIG: "file-too-large",
  EROFS: "read-only",
  EACCES: "forbidden",
  EPERM: "forbidden",
  ENOTDIR: "no-directory",
  // This code is Galatea's own; no system call returns it.
  EDATABASE: "unreachable",
};

/** Calls on sockets and processes fail with some of the codes that file calls use, but do not report disk faults. */
const otherCalls = /^(listen|bind|connect|spawn|kill|setuid)/;

const causesMax = 5;

/** Returns the disk fault that an error or one of its causes reports; null for any other error. */
export function diskFaultOf(thrown: unknown): DiskFault | null {
  let error = thrown as NodeJS.ErrnoException | null | undefined;
  for (let i = 0; i < causesMax && error instanceof Error; i++) {
    const fault = faultOfCode[error.code ?? ""];
    if (fault !== undefined && !otherCalls.test(error.syscall ?? "")) return fault;
    error = error.cause as NodeJS.ErrnoException | undefined;
  }
  return null;
}

/** Texts for users. `what` is a path in quotes, or words such as "the platform's data". */
const describeByFault: Readonly<Record<DiskFault, (what: string) => string>> = {
  full: (what) => `the disk that holds ${what} is full`,
  "file-too-large": (what) => `${what} would be larger than a file may be`,
  "read-only": (what) => `the disk that holds ${what} is read-only`,
  forbidden: (what) => `this user may not write ${what}`,
  "no-directory": (what) => `a parent of ${what} is not a directory`,
  unreachable: (what) => `the database that holds ${what} cannot be reached`,
};

export function describeDiskFault(fault: DiskFault, what: string): string {
  return describeByFault[fault](what);
}

/** A failed write. The message is one sentence with the reason; `code` is the code of the cause. */
export class DiskError extends Error {
  readonly code: string | undefined;

  constructor(fault: DiskFault, what: string, cause: unknown) {
    super(describeDiskFault(fault, what), { cause });
    this.name = "DiskError";
    this.code = (cause as NodeJS.ErrnoException).code;
  }
}

/** Converts a disk fault to a DiskError about `what`; returns every other error unchanged. */
export function asDiskError(thrown: unknown, what: string): unknown {
  if (thrown instanceof DiskError) return thrown;
  const fault = diskFaultOf(thrown);
  return fault === null ? thrown : new DiskError(fault, what, thrown);
}

/**
 * Makes a directory and its missing parents. Throws DiskError with the directory's path if a disk fault prevents it.
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw asDiskError(await firstDirectoryError(resolve(path), error), `'${path}'`);
  }
}

/**
 * Returns the error of making the first missing directory. On a read-only disk, Node reports ENOENT for the last
 * directory, which hides the reason. Making the first one reports EROFS.
 */
async function firstDirectoryError(path: string, thrown: unknown): Promise<unknown> {
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
