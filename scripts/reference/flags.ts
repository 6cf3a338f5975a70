import { commands, type Command } from "galatea/app/index.ts";
import type { Flag } from "galatea/options/index.ts";
import { codeSpan, markdownTable, referencePage } from "./markdown.ts";

/** Returns the page of every command and its flags, from the table that the command line is parsed with. */
export function flagsPage(): string {
  return referencePage(
    "Commands and flags",
    "Every command takes `--help`. A flag is written `--name=value` or `--name value`, and may be shortened to a beginning that no other flag has.",
    commands.map(commandSection),
  );
}

function commandSection({ name, summary, usage, flags }: Command): string {
  const withEffect = (effect?: Flag["effect"]) =>
    Object.entries<Flag>(flags).filter(([, flag]) => flag.effect === effect);
  const [built, inert, unbuilt] = [withEffect(), withEffect("none"), withEffect("not built")];
  const reasons = (rows: typeof inert) =>
    markdownTable(
      ["flag", "reason"],
      rows.map(([flag, { about }]) => [codeSpan(`--${flag}`), about]),
    );
  return [
    `## galatea ${name}`,
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    `\`\`\`text\ngalatea ${usage}\n\`\`\``,
    ...(built.length === 0 ? [] : [markdownTable(["flag", "default", "effect"], built.map(flagRow))]),
    ...(inert.length === 0 ? [] : ["Accepted without effect:", reasons(inert)]),
    ...(unbuilt.length === 0
      ? []
      : ["Recognized but not implemented, an error unless the value leaves the feature off:", reasons(unbuilt)]),
  ].join("\n\n");
}

function flagRow([name, flag]: readonly [string, Flag]): readonly string[] {
  const { placeholder, alias, default: fallback } = flag;
  const written = codeSpan(placeholder === null ? `--${name}` : `--${name}=${placeholder}`);
  const names = alias === undefined ? written : `${written}, ${codeSpan(`--${alias}`)}`;
  return [names, fallback === undefined || fallback === null ? "" : codeSpan(String(fallback)), flag.about];
}
