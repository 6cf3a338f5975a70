import type { Command } from "../packages/galatea/src/app/index.ts";
import type { Flag } from "../packages/galatea/src/options/index.ts";

/** Returns the manual page galatea(1), in roff, of some commands. */
export function manPage(commands: readonly Command[], version: string): string {
  return [
    `.TH GALATEA 1 "" "galatea ${version}" "User Commands"`,
    // Lines are not justified, because a long flag would leave large gaps.
    ".ad l",
    ".SH NAME",
    "galatea \\- model server and hosting platform",
    ".SH SYNOPSIS",
    ".B galatea",
    ".I command",
    "[options]",
    ".SH COMMANDS",
    ...commands.flatMap(commandLines),
    "",
  ].join("\n");
}

function commandLines({ name, summary, usage, flags }: Command): readonly string[] {
  const effective = Object.entries(flags).filter(([, flag]) => flag.effect === undefined);
  return [
    `.SS ${name}`,
    line(`${summary}.`),
    ".PP",
    `.B ${escaped(`galatea ${usage}`)}`,
    ...effective.flatMap(flagLines),
  ];
}

function flagLines([name, { placeholder, about, default: fallback = "" }]: readonly [string, Flag]): readonly string[] {
  const value = placeholder === null ? "" : `=\\fI${escaped(placeholder)}\\fR`;
  const shown = fallback === "" || fallback === null ? "" : ` (${String(fallback)})`;
  return [".TP", `\\fB${escaped(`--${name}`)}\\fR${value}`, line(`${about}${shown}`)];
}

/** A line of text. A line that begins with a period or an apostrophe would be a roff request, so it is escaped. */
function line(text: string): string {
  return escaped(text).replace(/^[.']/, "\\&$&");
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
}
