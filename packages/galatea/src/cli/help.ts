import { styleText } from "node:util";
import type { Command } from "../app/index.ts";
import { platformDefaults, serveFlags, type Flag } from "../options/index.ts";

const columnWidth = 34;

export function programHelp(commands: readonly Command[]): string {
  const ports = (["http-port", "grpc-port", "metrics-port"] as const).map((name) => serveFlags[name].default);
  const { host, port } = platformDefaults;
  const rows = commands.map((each) => `  ${bold(each.name.padEnd(10))} ${each.summary}`);
  return [
    `${bold("Galatea")}: a model server and hosting platform on your own machine.`,
    "",
    `Usage: galatea <command> [options]`,
    "",
    ...rows,
    "",
    "Start here:",
    "  galatea new first                              a first model, and the commands that serve and call it",
    `  galatea serve --model-repository ./models      a Triton model repository, served on ports ${ports.join(", ")}`,
    `  galatea up                                     S3, SageMaker and CloudWatch APIs on http://${host}:${port}`,
    '  eval "$(galatea env)"                          points boto3, the AWS CLI and the sagemaker SDK at it',
    "",
    "`galatea <command> --help` lists the options of a command; `galatea --version` prints the version.",
    "",
  ].join("\n");
}

export function commandHelp(command: Command): string {
  const withEffect = (effect?: Flag["effect"]) =>
    Object.entries(command.flags).filter(([, flag]) => flag.effect === effect);
  const [built, inert, unbuilt] = [withEffect(), withEffect("none"), withEffect("not built")];
  const names = (flags: typeof inert) => flags.map(([name]) => `--${name}`).join(" ");
  const lines = [`${bold(`galatea ${command.name}`)}: ${command.summary}`, "", `Usage: galatea ${command.usage}`, ""];
  if (built.length > 0) lines.push(...built.map(flagRow), "");
  if (inert.length > 0) lines.push("Accepted without effect:", `  ${names(inert)}`, "");
  if (unbuilt.length > 0)
    lines.push(
      "Recognized but not implemented (an error unless the value leaves the feature off):",
      `  ${names(unbuilt)}`,
      "",
    );
  return lines.join("\n");
}

/** Returns the line of a flag in a help text. */
export function flagRow([name, { placeholder, about, short, default: fallback = "" }]: readonly [
  string,
  Flag,
]): string {
  const letter = short === undefined ? "" : `-${short}, `;
  const word = `${letter}--${name}${placeholder === null ? "" : `=${placeholder}`}`;
  const shown = fallback === "" ? "" : dim(` (${String(fallback)})`);
  return `  ${word.padEnd(columnWidth)} ${about}${shown}`;
}

function bold(text: string): string {
  return styleText("bold", text, { stream: process.stdout });
}

function dim(text: string): string {
  return styleText("dim", text, { stream: process.stdout });
}
