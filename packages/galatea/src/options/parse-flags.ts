import { didYouMean } from "./did-you-mean.ts";
import { UsageError, type Flag, type FlagTable } from "./flag.ts";

type OptionName<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<OptionName<Rest>>}`
  : Name;

/** The options of a command, inferred from its flags. For example, the flag `--http-port` has the option `httpPort`. */
export type OptionsOf<Flags> = {
  readonly [
    Name in keyof Flags & string as Flags[Name] extends Flag<undefined> ? never : OptionName<Name>
  ]: Flags[Name] extends Flag<infer Value> ? Value : never;
};

export interface Parsed<Options = unknown> {
  readonly options: Options;
  /** The values of the flags on the command line, by flag name. */
  readonly given: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
  /** The command line that was parsed. */
  readonly argv: readonly string[];
}

/**
 * Parses `--x=v`, `--x v`, a flag's letter and, for switches, `--x`, as tritonserver's getopt does. Accepts an
 * unambiguous prefix of a flag. For an unknown flag, throws UsageError with the most similar known flags.
 */
export function parseFlags<const Flags extends FlagTable>(
  argv: readonly string[],
  flags: Flags,
): Parsed<OptionsOf<Flags>> {
  const nameOf = new Map(Object.keys(flags).map((name) => [name, name]));
  const letters = new Map<string, string>();
  for (const [name, { alias, short }] of Object.entries<Flag>(flags)) {
    if (alias !== undefined) nameOf.set(alias, name);
    if (short !== undefined) letters.set(`-${short}`, `--${name}`);
  }
  const input = new Map<string, string[]>();
  const positionals: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const written = argv[i] as string;
    const word = letters.get(written) ?? written;
    if (!word.startsWith("--")) {
      positionals.push(word);
      continue;
    }
    const equals = word.indexOf("=");
    const requested = equals === -1 ? word.slice(2) : word.slice(2, equals);
    const name = nameOf.get(requested) ?? abbreviated(word, requested, nameOf);
    const isSwitch = flags[name]!.placeholder === null;
    if (isSwitch && equals !== -1) throw new UsageError(`option '--${requested}' doesn't allow an argument`);
    const text = isSwitch ? "" : equals === -1 ? argv[++i] : word.slice(equals + 1);
    if (text === undefined) throw new UsageError(`option '--${requested}' requires an argument`);
    input.set(name, [...(input.get(name) ?? []), text]);
  }
  return { options: read(flags, input), given: input, positionals, argv };
}

function read<Flags extends FlagTable>(flags: Flags, input: ReadonlyMap<string, readonly string[]>): OptionsOf<Flags> {
  const options: Record<string, unknown> = {};
  for (const [name, { read, partOf, effect }] of Object.entries<Flag>(flags)) {
    if (partOf !== undefined && input.has(partOf)) continue;
    const value = read(input.get(name) ?? [], name);
    if (effect === undefined) options[name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())] = value;
  }
  return options as OptionsOf<Flags>;
}

/**
 * Returns the only flag whose name or alias begins with this prefix. Throws UsageError if there is none or more than
 * one.
 */
function abbreviated(word: string, requested: string, nameOf: ReadonlyMap<string, string>): string {
  const names = [...nameOf.keys()];
  const possible = names.filter((each) => requested !== "" && each.startsWith(requested));
  const [name, another] = new Set(possible.map((each) => nameOf.get(each)!));
  if (name === undefined)
    throw new UsageError(`unrecognized option '--${requested}'${didYouMean(requested, names, "--")}`);
  if (another === undefined) return name;
  const list = possible.map((each) => `'--${each}'`).join(" ");
  throw new UsageError(`option '${word}' is ambiguous; possibilities: ${list}`);
}

/** Returns the options of a command without positional arguments; null for --help. */
export function parseOptions<const Flags extends FlagTable>(
  argv: readonly string[],
  flags: Flags,
): OptionsOf<Flags> | null {
  if (argv.includes("--help") || argv.includes("-h")) return null;
  const { options, positionals } = parseFlags(argv, flags);
  const [extra] = positionals;
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
  return options;
}
