import { fileURLToPath } from "node:url";
import type { AwsCaller } from "./client.ts";
import { JavaScriptCaller } from "./javascript-caller.ts";
import { PythonCaller } from "./python-caller.ts";

const program = (name: string) => fileURLToPath(new URL(name, import.meta.url));

type Variables = Readonly<Record<string, string>>;

interface CallerRow {
  readonly name: string;
  /** Operations that the client does not have. */
  readonly lacks: readonly string[];
  /** With the variables of `galatea env`. */
  readonly open: (variables: Variables) => AwsCaller | Promise<AwsCaller>;
}

export const openCli = (variables: Variables): Promise<AwsCaller> =>
  PythonCaller.open({ name: "cli", program: program("cli_lines.py"), environment: "aws-cli", variables });

/** Each kind of client that has all operations. */
export const callers: readonly CallerRow[] = [
  {
    name: "boto3",
    lacks: [],
    open: (variables) =>
      PythonCaller.open({ name: "boto3", program: program("boto3_lines.py"), environment: "clients", variables }),
  },
  {
    name: "cli",
    // Its own `logs start-live-tail` is a process that lasts.
    lacks: ["sagemaker-runtime.InvokeEndpointWithResponseStream", "logs.StartLiveTail"],
    open: openCli,
  },
  { name: "javascript", lacks: [], open: (variables) => new JavaScriptCaller(variables) },
];
