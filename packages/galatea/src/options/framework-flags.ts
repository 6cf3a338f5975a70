import { switchFlag, textFlag, UsageError } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";

/** The flags of `galatea model`. */
export const frameworkFlags = {
  data: textFlag({
    about:
      "data directory to keep frameworks below, in `frameworks`; servers over all data directories find them (default: " +
      "the machine's, $GALATEA_FRAMEWORKS, else /var/lib/galatea/frameworks for root and ~/.local/share/galatea/frameworks for others)",
  }),
  wheels: textFlag({ about: "directory of wheels to install from, in place of a package index" }),
  "any-build": switchFlag(
    "install other builds of the locked versions, such as CPU builds, from PIP_INDEX_URL or --wheels",
  ),
  python: textFlag({ about: "Python to make the environment with (default: the first one that fits)" }),
};

const verbs = ["add", "remove", "list"] as const;

/** The options of `galatea model`. */
export interface FrameworkOptions extends OptionsOf<typeof frameworkFlags> {
  readonly verb: (typeof verbs)[number];
  /** The name of the framework; "" for `list`. */
  readonly name: string;
}

export function frameworkOptions({
  options,
  positionals: [word = "", name = ""],
}: Parsed<OptionsOf<typeof frameworkFlags>>): FrameworkOptions {
  const verb = verbs.find((each) => each === word);
  if (verb === undefined) throw new UsageError(`galatea model takes ${verbs.join(", ")}, not '${word}'`);
  if ((name === "") !== (verb === "list"))
    throw new UsageError(
      verb === "list" ? "galatea model list takes no name" : `galatea model ${verb} takes a framework`,
    );
  return { ...options, verb, name };
}
