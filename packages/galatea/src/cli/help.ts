import { styleText } from "node:util";
import type { Command } from "./commands.ts";
import type { Flag } from "./flags.ts";

const columnWidth = 34;

export function programHelp(commands: readonly Command[]): string {
  const rows = commands.map((each) => `  ${bold(each.name.padEnd(10))} ${each.summary}`);
  return [
    `${bold("Galatea")} brings models to life: a model server and hosting platform on your own machine.`,
    "",
    `Usage: galatea <command> [options]`,
    "",
    ...rows,
    "",
    "Start here:",
    "  galatea serve --model-repository ./models      a Triton model repository, served on ports 8000 to 8002",
    "  galatea up                                     S3, SageMaker and CloudWatch APIs on http://127.0.0.1:8770",
    '  eval "$(galatea env)"                          points boto3, the AWS CLI and the sagemaker SDK at it',
    "",
    "`galatea <command> --help` tells the rest; `galatea --version` prints the version.",
    "",
  ].join("\n");
}

export function commandHelp(command: Command): string {
  const built = command.flags.filter((flag) => flag.status === undefined);
  const accepted = command.flags.filter((flag) => flag.status !== undefined && "accepted" in flag.status);
  const refused = command.flags.filter((flag) => flag.status !== undefined && "refused" in flag.status);
  const lines = [`${bold(`galatea ${command.name}`)}: ${command.summary}`, "", `Usage: galatea ${command.usage}`, ""];
  if (built.length > 0) lines.push(...built.map(flagRow), "");
  if (accepted.length > 0) lines.push("Accepted without effect:", `  ${names(accepted)}`, "");
  if (refused.length > 0)
    lines.push("Known, not built yet (refused unless they ask for nothing):", `  ${names(refused)}`, "");
  return lines.join("\n");
}

/** A flag in a help text, on one line. */
export function flagRow(flag: Flag): string {
  const value = { string: "=TEXT", integer: "=N", number: "=N", boolean: "=true|false", switch: "" }[flag.kind];
  const fallback = flag.default === undefined || flag.default === "" ? "" : dim(` (${String(flag.default)})`);
  return `  ${`--${flag.name}${value}`.padEnd(columnWidth)} ${flag.about}${fallback}`;
}

function names(flags: readonly Flag[]): string {
  return flags.map((flag) => `--${flag.name}`).join(" ");
}

function bold(text: string): string {
  return styleText("bold", text, { stream: process.stdout });
}

function dim(text: string): string {
  return styleText("dim", text, { stream: process.stdout });
}
