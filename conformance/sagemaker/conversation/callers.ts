import { fileURLToPath } from "node:url";
import { cacheDirectory, ensureEnvironment, ensurePackages, type EnvironmentName } from "../../environments/index.ts";
import type { AwsCaller } from "./client.ts";
import { LineCaller } from "./line-caller.ts";

const programs = {
  boto3: fileURLToPath(new URL("boto3_lines.py", import.meta.url)),
  cli: fileURLToPath(new URL("cli_lines.py", import.meta.url)),
  javascript: fileURLToPath(new URL("javascript-lines.ts", import.meta.url)),
};

type Variables = Readonly<Record<string, string>>;

interface CallerRow {
  readonly name: string;
  /** Operations that the client does not have. */
  readonly lacks: readonly string[];
  /** Starts the client with the variables of `galatea env`. */
  readonly open: (variables: Variables) => Promise<AwsCaller>;
}

async function openPython(name: "boto3" | "cli", environment: EnvironmentName, variables: Variables) {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), environment);
  return LineCaller.open({ name, command: [python, "-B", programs[name]], variables });
}

export const openBoto3 = (variables: Variables): Promise<AwsCaller> => openPython("boto3", "clients", variables);
export const openCli = (variables: Variables): Promise<AwsCaller> => openPython("cli", "aws-cli", variables);

async function openJavaScript(variables: Variables): Promise<AwsCaller> {
  const packages = await ensurePackages(cacheDirectory(process.env), "javascript-sdk");
  return LineCaller.open({
    name: "javascript",
    command: [process.execPath, programs.javascript, packages],
    variables,
  });
}

/** Clients that have all operations, except the listed ones. */
export const callers: readonly CallerRow[] = [
  { name: "boto3", lacks: [], open: openBoto3 },
  {
    name: "cli",
    // The CLI's `logs start-live-tail` does not end by itself, so it has its own test.
    lacks: ["sagemaker-runtime.InvokeEndpointWithResponseStream", "logs.StartLiveTail"],
    open: openCli,
  },
  { name: "javascript", lacks: [], open: openJavaScript },
];
