import {
  agentFlags,
  agentOptions,
  autoscaleFlags,
  autoscaleOptions,
  backendFlags,
  backupFlags,
  backupOptions,
  targetPlatformFlags,
  convertFlags,
  convertOptions,
  endpointOptions,
  envFlags,
  envOptions,
  eventsFlags,
  frameworkFlags,
  frameworkOptions,
  gatewayFlags,
  gatewayOptions,
  imageFlags,
  imageOptions,
  parseFlags,
  recordsFlags,
  recordsOptions,
  restartFlags,
  serveFlags,
  serveOptions,
  upFlags,
  upOptions,
  UsageError,
  type FlagTable,
  type OptionsOf,
  type Parsed,
} from "../options/index.ts";

import { newFlags, newOptions } from "./new-repository/new-flags.ts";
import { deleteFlags, listFlags, logsFlags, named, statusFlags } from "./platform-commands/flags.ts";

/** A command and its flags. Only `cli/command-line.ts` runs it. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  readonly flags: FlagTable;
  /** True for a command that runs until it is stopped. */
  readonly lasting?: true;
  /** Resolves with the exit code. Throws UsageError for an invalid command line. */
  readonly run: (argv: readonly string[]) => Promise<number>;
}

interface CommandRow<Flags extends FlagTable> extends Omit<Command, "run" | "flags"> {
  readonly flags: Flags;
  readonly positionalsMax: number;
  readonly run: (parsed: Parsed<OptionsOf<Flags>>) => Promise<number>;
}

/** Returns a command that parses its flags before it runs. */
export function command<Flags extends FlagTable>({ positionalsMax, run, ...row }: CommandRow<Flags>): Command {
  return {
    ...row,
    async run(argv) {
      const parsed = parseFlags(argv, row.flags);
      const extra = parsed.positionals.length - positionalsMax;
      if (extra > 0) throw new UsageError(`unexpected argument '${parsed.positionals.at(-extra)}'`);
      return await run(parsed);
    },
  };
}

/**
 * All commands. Each imports only the code that it needs: a server does not load the platform, and the platform does
 * not load the server.
 */
export const commands: readonly Command[] = [
  command({
    name: "serve",
    summary: "serve model repositories (drop-in for tritonserver)",
    usage: "serve --model-repository DIR [options]",
    flags: serveFlags,
    positionalsMax: 0,
    lasting: true,
    run: async (parsed) => (await import("./serving/serve.ts")).serve(serveOptions(parsed, process.env)),
  }),
  command({
    name: "up",
    summary: "start the hosting platform (drop-in for SageMaker hosting and the services around it)",
    usage: "up [options]",
    flags: upFlags,
    positionalsMax: 0,
    lasting: true,
    run: async (parsed) => (await import("./up.ts")).up(upOptions(parsed)),
  }),
  command({
    name: "agent",
    summary: "run instances of a platform on this machine",
    usage: "agent --listen ADDRESS:PORT --tls-cert FILE --tls-key FILE --tls-ca FILE --objects URL [options]",
    flags: agentFlags,
    positionalsMax: 0,
    lasting: true,
    run: async (parsed) => (await import("./agent/agent.ts")).agent(agentOptions(parsed)),
  }),
  command({
    name: "gateway",
    summary: "serve the API of platforms with --records, while they restart or take over from each other",
    usage: "gateway --records URL [options]",
    flags: gatewayFlags,
    positionalsMax: 0,
    lasting: true,
    run: async (parsed) => (await import("./gateway/gateway.ts")).gateway(gatewayOptions(parsed)),
  }),
  command({
    name: "new",
    summary: "write a first model to a new folder, and print the commands that run it",
    usage: "new NAME [--python | --onnx | --ensemble | --script]",
    flags: newFlags,
    positionalsMax: 1,
    run: async (parsed) => (await import("./new-repository/new-repository.ts")).newRepository(newOptions(parsed)),
  }),
  command({
    name: "validate",
    summary: "check a model repository and say what is wrong, with file and line",
    usage: "validate <repository> [options]",
    flags: backendFlags,
    positionalsMax: 1,
    run: async ({ options, positionals: [directory] }) => {
      if (directory === undefined) throw new UsageError("galatea validate needs the directory of a model repository");
      return (await import("./validate.ts")).validate(directory, options);
    },
  }),
  command({
    name: "model",
    summary: "set up the frameworks that models run in: PyTorch, TensorFlow, DALI",
    usage: "model add FRAMEWORK [options] | model remove FRAMEWORK | model list",
    flags: frameworkFlags,
    positionalsMax: 2,
    run: async (parsed) => (await import("./frameworks.ts")).model(frameworkOptions(parsed)),
  }),
  command({
    name: "image",
    summary: "load images of your own to the container engine of `galatea up --container-engine`",
    usage: "image load FILE.tar [--container-engine URL]",
    flags: imageFlags,
    positionalsMax: 2,
    run: async (parsed) => (await import("./image.ts")).image(imageOptions(parsed)),
  }),
  command({
    name: "convert",
    summary: "make an ONNX model of an encoder's weights (BERT and its family)",
    usage: "convert DIRECTORY (FILE.onnx | --repository DIR --name NAME) [options]",
    flags: convertFlags,
    positionalsMax: 2,
    run: async (parsed) => (await import("./convert.ts")).convert(convertOptions(parsed)),
  }),
  command({
    name: "status",
    summary: "print what runs on a platform or a server, and what has failed and why",
    usage: "status [--url URL] [options]",
    flags: statusFlags,
    positionalsMax: 0,
    run: async ({ options }) => (await import("./platform-commands/status.ts")).status(options),
  }),
  command({
    name: "list",
    summary: "list the endpoints of a running platform, or its models",
    usage: "list [--models] [options]",
    flags: listFlags,
    positionalsMax: 0,
    run: async ({ options }) => (await import("./platform-commands/list.ts")).list(options),
  }),
  command({
    name: "logs",
    summary: "print the last log lines of an endpoint, inference component or transform job",
    usage: "logs NAME [-f] [options]",
    flags: logsFlags,
    positionalsMax: 1,
    run: async (parsed) => (await import("./platform-commands/logs.ts")).logs(named("logs", parsed)),
  }),
  command({
    name: "delete",
    summary: "delete an endpoint, and wait until its instances have ended",
    usage: "delete NAME [options]",
    flags: deleteFlags,
    positionalsMax: 1,
    run: async (parsed) => (await import("./platform-commands/delete.ts")).deleteEndpoint(named("delete", parsed)),
  }),
  command({
    name: "endpoint",
    summary: "stop an endpoint of a running platform, and start it again",
    usage: "endpoint stop NAME | endpoint start NAME [options]",
    flags: targetPlatformFlags,
    positionalsMax: 2,
    run: async (parsed) => (await import("./endpoint.ts")).endpoint(endpointOptions(parsed)),
  }),
  command({
    name: "events",
    summary: "print the state changes of endpoints, as lines of JSON",
    usage: "events [options]",
    flags: eventsFlags,
    positionalsMax: 0,
    run: async ({ options }) => (await import("./events.ts")).events(options),
  }),
  command({
    name: "autoscale",
    summary: "show what an autoscaling policy would do, over a plan of requests or a recorded metric",
    usage: "autoscale simulate --policy FILE (--plan 0-5m:10rps,5m-20m:200rps | --series FILE) [options]",
    flags: autoscaleFlags,
    positionalsMax: 1,
    run: async (parsed) => (await import("./autoscale.ts")).autoscale(autoscaleOptions(parsed)),
  }),
  command({
    name: "restart",
    summary: "replace a running platform process with the installed program; its instances keep running",
    usage: "restart [options]",
    flags: restartFlags,
    positionalsMax: 0,
    run: async ({ options }) => (await import("./restart.ts")).restart(options),
  }),
  command({
    name: "backup",
    summary: "copy a platform's records (endpoints, models, roles, alarms) to a file, while it runs",
    usage: "backup FILE [options]",
    flags: backupFlags,
    positionalsMax: 1,
    run: async (parsed) => (await import("./backup.ts")).backup(backupOptions("backup", parsed)),
  }),
  command({
    name: "restore",
    summary: "replace the records of a stopped platform by those of a backup or snapshot",
    usage: "restore FILE [options]",
    flags: backupFlags,
    positionalsMax: 1,
    run: async (parsed) => (await import("./backup.ts")).restore(backupOptions("restore", parsed)),
  }),
  command({
    name: "records",
    summary: "copy a platform's records between a data directory and a PostgreSQL database",
    usage: "records copy --from DIR|URL --to DIR|URL",
    flags: recordsFlags,
    positionalsMax: 1,
    run: async (parsed) => (await import("./copy-records.ts")).copyRecordsCommand(recordsOptions(parsed)),
  }),
  command({
    name: "env",
    summary: "print the environment that points AWS clients at a running platform",
    usage: "env [options]",
    flags: envFlags,
    positionalsMax: 0,
    run: async (parsed) => (await import("./env.ts")).env(envOptions(parsed)),
  }),
  command({
    name: "completions",
    summary: "print a script that completes commands and flags in bash, zsh or fish",
    usage: "completions bash|zsh|fish",
    flags: {},
    positionalsMax: 1,
    run: async ({ positionals: [name] }) => {
      const { completionScript, shells } = await import("./completions.ts");
      const shell = shells.find((each) => each === name);
      if (shell === undefined) throw new UsageError(`galatea completions takes one of ${shells.join(", ")}`);
      process.stdout.write(completionScript(shell, commands));
      return 0;
    },
  }),
];
