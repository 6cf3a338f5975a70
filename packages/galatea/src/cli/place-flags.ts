import type { BackupOptions, EndpointOptions, EventsOptions } from "../app/index.ts";
import { dataDefault, UsageError, type Flag, type ParsedFlags } from "./flags.ts";
import { envFlags, platformPlace } from "./up-flags.ts";

/** Where the platform is, and what it knows its clients by. */
export const placeFlags: readonly Flag[] = envFlags.filter(({ name }) => name !== "proxy" && name !== "unset");

export const eventsFlags: readonly Flag[] = [
  { name: "follow", kind: "switch", about: "go on with what happens from now on, until it is stopped" },
  { name: "after", kind: "integer", min: 0, default: 0, about: "only events behind this cursor of an earlier one" },
  ...placeFlags,
];

export const backupFlags: readonly Flag[] = [
  { name: "data", kind: "string", about: `the platform's data directory (default: ${dataDefault})` },
];

export function backupOptions(command: string, { values, positionals: [file = ""] }: ParsedFlags): BackupOptions {
  if (file === "") throw new UsageError(`galatea ${command} takes a file`);
  return { file, dataDirectory: (values.get("data") as string | undefined) ?? null };
}

const verbs = ["stop", "start"] as const;

export function endpointOptions(parsed: ParsedFlags): EndpointOptions {
  const [word = "", name = ""] = parsed.positionals;
  const verb = verbs.find((each) => each === word);
  if (verb === undefined) throw new UsageError(`galatea endpoint takes ${verbs.join(", ")}, and not '${word}'`);
  if (name === "") throw new UsageError(`galatea endpoint ${verb} takes the name of an endpoint`);
  return { ...platformPlace(parsed), verb, name };
}

export function eventsOptions(parsed: ParsedFlags): EventsOptions {
  const { values } = parsed;
  return { ...platformPlace(parsed), follow: values.get("follow") === true, after: values.get("after") as number };
}
