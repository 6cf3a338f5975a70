/** An invalid command line. The command prints the message and exits with 1. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}

/**
 * A command-line flag. `Value` is the type of its option; a flag without effect has no option, and its `Value` is
 * `undefined`.
 */
export interface Flag<Value = unknown> {
  /** The flag's help text, or the reason why it has no effect. */
  readonly about: string;
  /** The placeholder of the value in help texts: its unit or kind. Null for a switch, which has no value. */
  readonly placeholder: string | null;
  /** The default in help texts; absent if `about` describes it. */
  readonly default?: FlagDefault;
  /** Another name of the flag, which Triton also accepts. */
  readonly alias?: string;
  /** A letter that abbreviates the flag: `f` for `-f`. */
  readonly short?: string;
  /** The variable that sets the flag in the environment of a SageMaker container. */
  readonly variable?: string;
  /**
   * Set for a flag without effect. With `none`, any value is accepted. With `not built`, only values that leave the
   * feature disabled are accepted.
   */
  readonly effect?: "none" | "not built";
  /** The switch of this flag's feature. If the switch is given, this flag is ignored. */
  readonly partOf?: string;
  /** Parses the flag's values in the order of the command line. An empty list means the default. Throws UsageError. */
  readonly read: (texts: readonly string[], name: string) => Value;
}

/** The flags of a command, by name. */
export type FlagTable = Readonly<Record<string, Flag>>;

type FlagDefault = string | number | boolean | null;

interface FlagRow<Default extends FlagDefault> extends Pick<Flag, "about" | "alias" | "variable"> {
  /** The unit of the value in help texts, such as seconds or bytes. */
  readonly unit?: string;
  readonly default?: Default;
}

interface NumberRow<Default extends number | null> extends FlagRow<Default> {
  readonly min?: number;
  readonly max?: number;
  /** Words that Triton accepts instead of numbers. */
  readonly words?: ReadonlyMap<string, number>;
}

export const portMax = 65535;

/** Returns a flag whose last value is used. Its option is null if the flag is absent and has no default. */
function singleFlag<Value, Default extends FlagDefault>(
  { unit, ...row }: FlagRow<Default>,
  placeholder: string,
  parse: (text: string, name: string) => Value,
): Flag<Value | Default> {
  const fallback = row.default ?? (null as Default);
  const read = (texts: readonly string[], name: string) =>
    texts.length === 0 ? fallback : (texts.map((text) => parse(text, name)).at(-1) as Value);
  return { ...row, placeholder: unit?.toUpperCase() ?? placeholder, read };
}

export function textFlag<Default extends string | null = null>(row: FlagRow<Default>): Flag<string | (Default & null)> {
  return singleFlag(row, "TEXT", (text) => text) as Flag<string | (Default & null)>;
}

export function integerFlag<Default extends number | null = null>(
  row: NumberRow<Default>,
): Flag<number | (Default & null)> {
  return numeric(row, "an integer", Number.isInteger);
}

export function numberFlag<Default extends number | null = null>(
  row: NumberRow<Default>,
): Flag<number | (Default & null)> {
  return numeric(row, "a number", Number.isFinite);
}

/** Returns a flag for a port number; 0 means any free port. */
export function portFlag<Default extends number | null = null>(
  row: FlagRow<Default> & { readonly min?: number },
): Flag<number | (Default & null)> {
  return integerFlag({ min: 0, max: portMax, ...row });
}

function numeric<Default extends number | null>(
  { min = -Infinity, max = Infinity, words, ...row }: NumberRow<Default>,
  kind: string,
  isValid: (value: number) => boolean,
): Flag<number | (Default & null)> {
  const parse = (text: string, name: string) => {
    const value = words?.get(text.toLowerCase()) ?? Number(text);
    if (text.trim() === "" || !isValid(value)) rejectValue(text, name, kind);
    if (value < min) rejectValue(text, name, `at least ${min}`);
    if (value > max) rejectValue(text, name, `at most ${max}`);
    return value;
  };
  return singleFlag(row, "N", parse) as Flag<number | (Default & null)>;
}

/** Returns a flag with a boolean value: true, on, 1, false, off or 0, in upper or lower case. */
export function booleanFlag<Default extends boolean | null = null>(
  row: FlagRow<Default>,
): Flag<boolean | (Default & null)> {
  const parse = (text: string) => {
    const lower = text.toLowerCase();
    if (["true", "on", "1"].includes(lower)) return true;
    if (["false", "off", "0"].includes(lower)) return false;
    throw new UsageError(`invalid value for bool option: ${text}`);
  };
  return singleFlag(row, "true|false", parse) as Flag<boolean | (Default & null)>;
}

/** Returns a flag without a value. Its option is true if the flag is given. */
export function switchFlag(about: string): Flag<boolean> {
  return { about, placeholder: null, read: (texts) => texts.length > 0 };
}

/** Returns a flag whose value is one of the given words. */
export function choiceFlag<const Choice extends string, Default extends Choice | null = null>(
  choices: readonly Choice[],
  row: FlagRow<Default>,
): Flag<Choice | (Default & null)> {
  const parse = (text: string, name: string) =>
    choices.find((each) => each === text) ?? rejectValue(text, name, `one of ${choices.join(", ")}`);
  return singleFlag(row, choices.join("|"), parse) as Flag<Choice | (Default & null)>;
}

/** Returns a flag with a parser of its own, which also parses the default. */
export function parsedFlag<Value, Default extends string | null = null>(
  row: FlagRow<Default>,
  parse: (text: string, name: string) => Value,
): Flag<Value | (Default & null)> {
  const { read, ...flag } = singleFlag(row, "TEXT", parse);
  const texts = typeof row.default === "string" ? [row.default] : [];
  return { ...flag, read: (input, name) => read(input.length === 0 ? texts : input, name) as Value };
}

/** Returns a flag that may be given several times. */
export function listFlag(row: FlagRow<string>): Flag<readonly string[]> {
  return parsedListFlag(row, (texts) => texts);
}

/**
 * Returns a flag that may be given several times and whose values are parsed together. If the flag is absent, its
 * default is parsed.
 */
export function parsedListFlag<Value>(
  { unit, ...row }: FlagRow<string>,
  parse: (texts: readonly string[], name: string) => Value,
): Flag<Value> {
  const absent = row.default === undefined ? [] : [row.default];
  const read = (texts: readonly string[], name: string) => parse(texts.length === 0 ? absent : texts, name);
  return { ...row, placeholder: unit?.toUpperCase() ?? "TEXT", read };
}

/** Returns a flag of Triton that has no effect here. `reason` is its help text. */
export function ignoredFlag(reason: string, { read, ...flag }: Flag): Flag<undefined> {
  return { ...flag, about: reason, effect: "none", read: (texts, name) => void read(texts, name) };
}

/**
 * Returns a flag of a Triton feature that is not implemented. Values in `harmless` leave the feature disabled. All
 * other values are rejected with `reason`.
 */
export function unimplementedFlag(
  reason: string,
  { read, ...flag }: Flag,
  harmless: readonly unknown[],
  partOf?: string,
): Flag<undefined> {
  const refuse = (text: string, name: string) => {
    const value = [read([text], name)].flat()[0];
    if (harmless.includes(value)) return;
    throw new UsageError(`option '--${name}=${String(value)}' is recognized but not implemented: ${reason}`);
  };
  const feature = partOf === undefined ? {} : { partOf };
  const check = (texts: readonly string[], name: string) => texts.forEach((text) => refuse(text, name));
  return { ...flag, ...feature, about: reason, effect: "not built", read: check as Flag<undefined>["read"] };
}

export function rejectValue(text: string, name: string, expected: string): never {
  throw new UsageError(`Invalid option value. Got ${text} for --${name}, expected ${expected}`);
}
