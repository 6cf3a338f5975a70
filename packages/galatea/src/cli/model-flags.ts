import type { FrameworkOptions } from "../app/index.ts";
import { UsageError, type Flag, type ParsedFlags } from "./flags.ts";

export const modelFlags: readonly Flag[] = [
  {
    name: "data",
    kind: "string",
    about:
      "data directory to keep frameworks below, in `frameworks`; servers over all data directories find them (default: " +
      "the machine's, $GALATEA_FRAMEWORKS, else /var/lib/galatea/frameworks for root and ~/.local/share/galatea/frameworks for others)",
  },
  { name: "wheels", kind: "string", about: "directory of wheels to install from, in place of a package index" },
  {
    name: "any-build",
    kind: "switch",
    about:
      "take other builds of the same versions than the locked files, such as those for the CPU alone: PIP_INDEX_URL says " +
      "whose, or --wheels",
  },
  { name: "python", kind: "string", about: "Python to make the environment with (default: the first one that fits)" },
];

const verbs = ["add", "remove", "list"] as const;

export function modelOptions({ values, given, positionals }: ParsedFlags): FrameworkOptions {
  const [word = "", name = ""] = positionals;
  const verb = verbs.find((each) => each === word);
  if (verb === undefined) throw new UsageError(`galatea model takes ${verbs.join(", ")}, and not '${word}'`);
  if ((name === "") !== (verb === "list"))
    throw new UsageError(
      verb === "list" ? "galatea model list takes no name" : `galatea model ${verb} takes a framework`,
    );
  const text = (flag: string) => (values.get(flag) as string | undefined) ?? null;
  return {
    verb,
    name,
    dataDirectory: text("data"),
    wheels: text("wheels"),
    anyBuild: given.has("any-build"),
    python: text("python"),
  };
}
