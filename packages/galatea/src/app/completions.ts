import type { Flag, FlagTable } from "../options/index.ts";

/** The name, summary and flags of a command. */
interface Described {
  readonly name: string;
  readonly summary: string;
  readonly flags: FlagTable;
}

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/**
 * Returns the script that completes `galatea` in a shell. It completes commands, flags, and the values of flags with a
 * fixed set of values; elsewhere it completes file names.
 */
export function completionScript(shell: Shell, commands: readonly Described[]): string {
  return scripts[shell](commands);
}

const scripts: Readonly<Record<Shell, (commands: readonly Described[]) => string>> = { bash, zsh, fish };

/** Returns the flags of a command, without those that have no effect. */
function effectiveFlags({ flags }: Described): readonly (readonly [string, Flag])[] {
  return Object.entries(flags).filter(([, flag]) => flag.effect === undefined);
}

/** Returns the spellings of a flag: `--follow`, and `-f` if the flag has a letter. */
function wordsOf(name: string, { short }: Flag): readonly string[] {
  return short === undefined ? [`--${name}`] : [`-${short}`, `--${name}`];
}

/** Returns the values of a flag with a fixed set of values, and an empty list for other flags. */
function choicesOf({ placeholder }: Flag): readonly string[] {
  return placeholder?.includes("|") === true ? placeholder.split("|") : [];
}

function bash(commands: readonly Described[]): string {
  const flags = commands.map(
    (each) =>
      `    ${each.name}) flags="${effectiveFlags(each)
        .flatMap(([name, flag]) => wordsOf(name, flag))
        .join(" ")}" ;;`,
  );
  const values = commands.flatMap((each) =>
    effectiveFlags(each)
      .filter(([, flag]) => choicesOf(flag).length > 0)
      .map(([name, flag]) => `    "${each.name} --${name}") words="${choicesOf(flag).join(" ")}" ;;`),
  );
  return `# bash completion of galatea: source <(galatea completions bash)
_galatea() {
  local current=$2 previous=$3 flags= words=
  # bash treats the = of --flag=value as a separate word.
  if [ "$current" = = ]; then current=; elif [ "$previous" = = ]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  case \${COMP_WORDS[1]} in
${flags.join("\n")}
  esac
  case "\${COMP_WORDS[1]} $previous" in
${values.join("\n")}
    *) case $current in -*) words=$flags ;; esac ;;
  esac
  [ "$COMP_CWORD" -ne 1 ] || words="${commands.map(({ name }) => name).join(" ")}"
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o bashdefault -o default -F _galatea galatea
`;
}

function zsh(commands: readonly Described[]): string {
  const named = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`);
  const argument = (flag: Flag) => {
    if (flag.placeholder === null) return "";
    const choices = choicesOf(flag);
    return choices.length > 0 ? `:value:(${choices.join(" ")})` : ":value:_files";
  };
  const specs = commands.map((each) => {
    const lines = effectiveFlags(each).flatMap(([name, flag]) => {
      const about = flag.about.replaceAll(/[\\[\]:]/g, String.raw`\$&`);
      const rest = `${flag.placeholder === null ? "" : "="}[${about}]${argument(flag)}`;
      return wordsOf(name, flag).map((word) => `      ${quoted(`*${word}${rest}`)}`);
    });
    return `    ${each.name}) specs=(\n${lines.join("\n")}\n    ) ;;`;
  });
  return `# zsh completion of galatea: source <(galatea completions zsh)
_galatea() {
  local -a commands=(
${named.join("\n")}
  ) specs=()
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
${specs.join("\n")}
  esac
  _arguments $specs '*:file:_files'
}
compdef _galatea galatea
`;
}

function fish(commands: readonly Described[]): string {
  const lines = commands.flatMap((each) => [
    `complete -c galatea -n __fish_use_subcommand -f -a ${each.name} -d ${quoted(each.summary)}`,
    ...effectiveFlags(each).map(([name, flag]) => {
      const choices = choicesOf(flag);
      const value = choices.length > 0 ? ` -x -a ${quoted(choices.join(" "))}` : flag.placeholder === null ? "" : " -r";
      const letter = flag.short === undefined ? "" : ` -s ${flag.short}`;
      return `complete -c galatea -n '__fish_seen_subcommand_from ${each.name}'${letter} -l ${name}${value} -d ${quoted(flag.about)}`;
    }),
  ]);
  return `# fish completion of galatea: galatea completions fish | source\n${lines.join("\n")}\n`;
}

/** Quotes a word for bash, zsh and fish. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
