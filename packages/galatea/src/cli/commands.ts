import {
  runAutoscale,
  runBackup,
  runConvert,
  runEndpoint,
  runEnv,
  runEvents,
  runModel,
  runRestore,
  runServe,
  runUp,
  runValidate,
} from "../app/index.ts";
import { autoscaleFlags, autoscaleOptions } from "./autoscale-flags.ts";
import { convertFlags, convertOptions } from "./convert-flags.ts";
import { servedOptions } from "./container-options.ts";
import { backupFlags, backupOptions, endpointOptions, eventsFlags, eventsOptions, placeFlags } from "./place-flags.ts";
import type { Flag, ParsedFlags } from "./flags.ts";
import { modelFlags, modelOptions } from "./model-flags.ts";
import { serveFlags } from "./serve-flags.ts";
import { envFlags, envOptions, upFlags, upOptions } from "./up-flags.ts";

/** A command as data; only `command-line.ts` runs it. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  readonly flags: readonly Flag[];
  readonly positionalsMax: number;
  /** Runs until it is stopped. */
  readonly lasting?: true;
  run(parsed: ParsedFlags): Promise<number>;
}

const backendDirectoryFlag = "backend-directory";

export const commands: readonly Command[] = [
  {
    name: "serve",
    summary: "serve model repositories (drop-in for tritonserver)",
    usage: "serve --model-repository DIR [options]",
    flags: serveFlags,
    positionalsMax: 0,
    lasting: true,
    run: (parsed) => runServe(servedOptions(parsed)),
  },
  {
    name: "up",
    summary: "start the hosting platform (drop-in for SageMaker hosting and the services around it)",
    usage: "up [--host 127.0.0.1] [--port 8770] [--data DIR] [--credentials FILE | --open]",
    flags: upFlags,
    positionalsMax: 0,
    lasting: true,
    run: (parsed) => runUp(upOptions(parsed)),
  },
  {
    name: "validate",
    summary: "check a model repository and say what is wrong, with file and line",
    usage: "validate <repository> [--backend-directory DIR]",
    flags: serveFlags.filter(({ name }) => name === backendDirectoryFlag),
    positionalsMax: 1,
    run: ({ positionals: [directory], values }) =>
      runValidate({ directory, backendDirectory: (values.get(backendDirectoryFlag) as string | undefined) ?? null }),
  },
  {
    name: "model",
    summary: "set up the frameworks that models run in: PyTorch, TensorFlow, DALI",
    usage: "model add FRAMEWORK [--wheels DIR] [--any-build] | model remove FRAMEWORK | model list",
    flags: modelFlags,
    positionalsMax: 2,
    run: (parsed) => runModel(modelOptions(parsed)),
  },
  {
    name: "convert",
    summary: "make an ONNX model of an encoder's weights (BERT and its family), or a TensorRT plan",
    usage:
      "convert DIRECTORY (FILE.onnx | FILE.plan | --repository DIR --name NAME) | convert FILE.onnx FILE.plan [options]",
    flags: convertFlags,
    positionalsMax: 2,
    run: (parsed) => runConvert(convertOptions(parsed)),
  },
  {
    name: "endpoint",
    summary: "stop an endpoint of a running platform, and start it again",
    usage: "endpoint stop NAME | endpoint start NAME [--data DIR] [--host HOST] [--port PORT]",
    flags: placeFlags,
    positionalsMax: 2,
    run: (parsed) => runEndpoint(endpointOptions(parsed)),
  },
  {
    name: "events",
    summary: "print the state changes of endpoints, as lines of JSON",
    usage: "events [--follow] [--after CURSOR] [--data DIR] [--host HOST] [--port PORT]",
    flags: eventsFlags,
    positionalsMax: 0,
    run: (parsed) => runEvents(eventsOptions(parsed)),
  },
  {
    name: "autoscale",
    summary: "show what an autoscaling policy would do, over a plan of requests or a recorded metric",
    usage: "autoscale simulate --policy FILE (--plan 0-5m:10rps,5m-20m:200rps | --series FILE) [options]",
    flags: autoscaleFlags,
    positionalsMax: 1,
    run: (parsed) => runAutoscale(autoscaleOptions(parsed)),
  },
  {
    name: "backup",
    summary: "copy a platform's records (endpoints, models, roles, alarms) to a file, while it runs",
    usage: "backup FILE [--data DIR]",
    flags: backupFlags,
    positionalsMax: 1,
    run: (parsed) => runBackup(backupOptions("backup", parsed)),
  },
  {
    name: "restore",
    summary: "replace the records of a stopped platform by those of a backup or snapshot",
    usage: "restore FILE [--data DIR]",
    flags: backupFlags,
    positionalsMax: 1,
    run: (parsed) => runRestore(backupOptions("restore", parsed)),
  },
  {
    name: "env",
    summary: "print the environment that points AWS clients at a running platform",
    usage: "env [--data DIR] [--host HOST] [--port PORT] [--proxy | --unset]",
    flags: envFlags,
    positionalsMax: 0,
    run: (parsed) => runEnv(envOptions(parsed)),
  },
];
