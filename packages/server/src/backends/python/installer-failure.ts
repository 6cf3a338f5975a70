/**
 * Known causes of failures in the output of venv, pip and uv, whose exit codes do not distinguish the causes. The first match is reported.
 */
const circumstances: readonly (readonly [
  words: RegExp,
  sentence: (location: Location, found: readonly string[]) => string,
])[] = [
  [/No space left on device|Disk quota exceeded|\[Errno (28|122)\]/, () => "the disk is full"],
  [/Read-only file system|\[Errno 30\]/, () => "the disk is read-only"],
  [
    /\[Errno 13\]|Permission denied/,
    ({ directory }) => `permission denied for a file or directory; the environment's directory is '${directory}'`,
  ],
  [
    /Failed to establish a new connection|NewConnectionError|ConnectTimeout|name resolution|dns error|error sending request|Could not connect|No solution found/i,
    ({ packages }) =>
      `no package index provided ${packages.join(", ")}; name an index with PIP_INDEX_URL, or an interpreter that has them with --python`,
  ],
  [
    /No matching distribution found for ([^\s(]+)/,
    (_, [, name]) =>
      `No matching distribution found for ${name}; name an index that has one for this Python with PIP_INDEX_URL, or an interpreter that has it with --python`,
  ],
];

interface Location {
  readonly directory: string;
  readonly packages: readonly string[];
}

export interface InstallerEnd extends Location {
  readonly command: string;
  readonly args: readonly string[];
  /** Description of how the program ended, such as "exit code 1". */
  readonly end: string;
  /** The last lines of the program's output. The log contains all lines. */
  readonly words: readonly string[];
}

const shownCharsMax = 300;

/**
 * Returns one sentence: what failed, the cause, and how the program ended. The cause is a known one if the output shows one, otherwise the
 * last line of the output.
 */
export function installerErrorText({ command, args, end, words, ...location }: InstallerEnd): string {
  const text = words.join("\n");
  const [known] = circumstances.flatMap(([pattern, sentence]) => {
    const found = pattern.exec(text);
    return found === null ? [] : [sentence(location, found)];
  });
  const last = words.findLast((line) => line.trim() !== "")?.trim() ?? "it wrote nothing";
  return `making the Python environment failed: ${known ?? last.slice(0, shownCharsMax)} (${command} ${args.join(" ")}: ${end})`;
}
