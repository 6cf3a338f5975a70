import { UsageError } from "./flag.ts";

const packagesMax = 100;
const version = String.raw`(?:==|!=|~=|<=|>=|<|>)[\w.*+!-]+`;
/** Matches a package name with optional extras and versions. Does not match paths, URLs and pip's options. */
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
