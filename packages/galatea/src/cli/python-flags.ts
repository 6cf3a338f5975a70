import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError, type Flag, type ParsedFlags } from "./flags.ts";

/** What Python models run with; `serve` takes both, `up` the interpreter: packages are asked for by each model's Environment. */
export const pythonFlag: Flag = {
  name: "python",
  kind: "string",
  about: "Python to run models with (default: an environment of our own, made on first use)",
};

export const pythonPackagesFlag: Flag = {
  name: "python-packages",
  kind: "string",
  repeatable: true,
  about:
    "packages for models beside numpy and tokenizers, separated by spaces, as `scipy==1.16.2`; installed once as wheels, from " +
    "where pip's variables say (PIP_FIND_LINKS and PIP_NO_INDEX for a directory of wheels)",
};

const packagesMax = 100;
const version = String.raw`(?:==|!=|~=|<=|>=|<|>)[\w.*+!-]+`;
/** A name, extras and versions: nothing that names files, addresses or options. */
const packageShape = new RegExp(String.raw`^[A-Za-z0-9][\w.-]*(?:\[[\w.,-]+\])?(?:${version}(?:,${version})*)?$`);

export function parsedPackages(texts: readonly string[]): readonly string[] {
  const packages = texts.flatMap((text) => text.split(/\s+/)).filter((word) => word !== "");
  const wrong = packages.find((word) => !packageShape.test(word));
  if (wrong !== undefined)
    throw new UsageError(`'${wrong}' in --python-packages is no package with its versions, such as scipy>=1.16,<2`);
  if (packages.length > packagesMax)
    throw new UsageError(`--python-packages names ${packages.length} packages; ${packagesMax} are allowed`);
  return packages;
}

/** The interpreter of `up` as its containers, which run elsewhere, can find it. */
export function pythonArguments({ values }: ParsedFlags): readonly string[] {
  const python = values.get("python") as string | undefined;
  if (python === undefined) return [];
  if (!python.includes("/")) return [`--python=${python}`];
  const path = resolve(python);
  if (!existsSync(path)) throw new UsageError(`invalid value for --python: '${path}' does not exist`);
  return [`--python=${path}`];
}
