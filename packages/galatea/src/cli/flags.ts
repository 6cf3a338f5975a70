import { didYouMean } from "./did-you-mean.ts";

/** Known, not built yet: refused unless its value asks for nothing. */
export interface UnbuiltFlag {
  readonly refused: string;
  /** Values that ask for nothing that is not there, the default in the first place. */
  readonly harmless: readonly FlagValue[];
  /** A flag that switches the whole feature: where it is given and off, this one asks for nothing whatever its value. */
  readonly partOf?: string;
}

/** One command-line flag as data. `status` says what becomes of one that has no effect, `accepted` for which reason: none is silently ignored. */
export interface Flag {
  readonly name: string;
  readonly kind: "string" | "integer" | "number" | "boolean" | "switch";
  readonly repeatable?: true;
  readonly default?: string | number | boolean;
  readonly about: string;
  readonly status?: { readonly accepted: string } | UnbuiltFlag;
  /** Names Triton also takes. */
  readonly alias?: string;
  readonly min?: number;
  readonly max?: number;
  /** Words that Triton takes for numbers. */
  readonly words?: ReadonlyMap<string, number>;
}

export const portMax = 65535;

/** Where `--data` is when it is not given, for help texts. */
export const dataDefault = "$GALATEA_DATA, else $XDG_DATA_HOME/galatea, else ~/.local/share/galatea";

/** Of `serve` and of `up`. */
export const requestMemoryFlag: Flag = {
  name: "request-memory-bytes",
  kind: "integer",
  min: 1024 * 1024,
  about:
    "memory for requests and answers in flight, tensors included; beyond it they are answered 503 (default: a quarter of the memory of the cgroup or the machine)",
};

export type FlagValue = string | number | boolean;

export interface ParsedFlags {
  /** Last value given, else the default. */
  readonly values: ReadonlyMap<string, FlagValue>;
  readonly lists: ReadonlyMap<string, readonly string[]>;
  /** Flags that stood on the command line. */
  readonly given: ReadonlySet<string>;
  readonly positionals: readonly string[];
  /** What all this was parsed from. */
  readonly argv: readonly string[];
}

/** What the user got wrong; the message is printed as it is, exit code 1. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}

/**
 * Parses `--x=v`, `--x v` and, for switches, `--x`, as tritonserver's getopt does; a beginning that only one flag has stands for
 * it. Booleans take true/on/1 and false/off/0 in any case. Unknown flags are answered with the nearest known ones.
 */
export function parseFlags(argv: readonly string[], flags: readonly Flag[]): ParsedFlags {
  const byName = new Map<string, Flag>();
  for (const flag of flags) {
    byName.set(flag.name, flag);
    if (flag.alias !== undefined) byName.set(flag.alias, flag);
  }
  const values = new Map<string, FlagValue>();
  const lists = new Map<string, string[]>();
  const given = new Set<string>();
  const positionals: string[] = [];
  for (const flag of flags) if (flag.default !== undefined) values.set(flag.name, flag.default);
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string;
    if (!word.startsWith("--")) {
      positionals.push(word);
      continue;
    }
    const equals = word.indexOf("=");
    const name = equals === -1 ? word.slice(2) : word.slice(2, equals);
    const flag = byName.get(name) ?? abbreviated(word, name, byName);
    given.add(flag.name);
    if (flag.kind === "switch") {
      if (equals !== -1) throw new UsageError(`option '--${name}' doesn't allow an argument`);
      values.set(flag.name, true);
      continue;
    }
    const text = equals === -1 ? argv[++i] : word.slice(equals + 1);
    if (text === undefined) throw new UsageError(`option '--${name}' requires an argument`);
    if (flag.repeatable) lists.set(flag.name, [...(lists.get(flag.name) ?? []), text]);
    else values.set(flag.name, parseValue(flag, text));
  }
  for (const flag of flags) refuseUnbuilt(flag, { values, lists, given });
  return { values, lists, given, positionals, argv };
}

/** The one flag whose name, or other name, begins like this. */
function abbreviated(word: string, name: string, byName: ReadonlyMap<string, Flag>): Flag {
  const names = [...byName.keys()];
  const possible = names.filter((each) => name !== "" && each.startsWith(name));
  const [flag, another] = new Set(possible.map((each) => byName.get(each)!));
  if (flag === undefined) throw new UsageError(`unrecognized option '--${name}'${didYouMean(name, names, "--")}`);
  if (another === undefined) return flag;
  const list = possible.map((each) => `'--${each}'`).join(" ");
  throw new UsageError(`option '${word}' is ambiguous; possibilities: ${list}`);
}

/** Refuses a flag of something that is not built, given with a value that asks for it. */
function refuseUnbuilt(flag: Flag, parsed: Pick<ParsedFlags, "values" | "lists" | "given">): void {
  const { status } = flag;
  if (status === undefined || "accepted" in status || !parsed.given.has(flag.name)) return;
  const { harmless, partOf } = status;
  if (partOf !== undefined && parsed.given.has(partOf) && parsed.values.get(partOf) === false) return;
  const asked = flag.repeatable ? (parsed.lists.get(flag.name) ?? []) : [parsed.values.get(flag.name) as FlagValue];
  const [wrong] = asked.filter((value) => !harmless.includes(value));
  if (wrong === undefined) return;
  throw new UsageError(`option '--${flag.name}=${wrong}' is known but not built yet: ${status.refused}`);
}

/** The values of a program that takes flags and nothing else, by name; null where its help is asked for. */
export function parseOptions(argv: readonly string[], flags: readonly Flag[]): ReadonlyMap<string, FlagValue> | null {
  if (argv.includes("--help") || argv.includes("-h")) return null;
  const { values, positionals } = parseFlags(argv, flags);
  const [extra] = positionals;
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
  return values;
}

function parseValue(flag: Flag, text: string): FlagValue {
  if (flag.kind === "boolean") {
    const lower = text.toLowerCase();
    if (["true", "on", "1"].includes(lower)) return true;
    if (["false", "off", "0"].includes(lower)) return false;
    throw new UsageError(`invalid value for bool option: ${text}`);
  }
  if (flag.kind === "string") return text;
  const number = flag.words?.get(text.toLowerCase()) ?? Number(text);
  const whole = flag.kind === "integer";
  if (text.trim() === "" || !Number.isFinite(number) || (whole && !Number.isInteger(number)))
    throw new UsageError(
      `Invalid option value. Got ${text} for --${flag.name}, expected ${whole ? "an integer" : "a number"}`,
    );
  if (flag.min !== undefined && number < flag.min)
    throw new UsageError(`Invalid option value. Got ${text} for --${flag.name}, expected at least ${flag.min}`);
  if (flag.max !== undefined && number > flag.max)
    throw new UsageError(`Invalid option value. Got ${text} for --${flag.name}, expected at most ${flag.max}`);
  return number;
}
