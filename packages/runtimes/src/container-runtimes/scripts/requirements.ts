import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";

const fileName = "requirements.txt";
const fileBytesMax = 64 * 1024;
const packagesMax = 100;

const version = String.raw`(?:===?|!=|~=|<=|>=|<|>)\s*[\w.*+!-]+`;
/** A name with extras, versions and a marker. Files, URLs, variables and options do not match. */
const requirementShape = new RegExp(
  String.raw`^[A-Za-z0-9][\w.-]*\s*(?:\[[\w., -]+\])?\s*(?:${version}(?:\s*,\s*${version})*)?\s*(?:;[\w\s.<>=!~'"()]+)?$`,
);

/**
 * Parses a script's requirements.txt, in pip's format. Throws InferenceError for anything except names of packages of the index: the file
 * is untrusted, and pip runs with the server's permissions.
 */
export function parseRequirements(text: string): readonly string[] {
  const packages: string[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const requirement = line.replace(/(?:^|\s)#.*$/, "").trim();
    if (requirement === "") continue;
    if (!requirementShape.test(requirement))
      throw refused(
        `line ${index + 1}, '${requirement.slice(0, 200)}', is not a package with its versions, such as scipy>=1.16,<2: options, ` +
          "URLs and files are not supported",
      );
    packages.push(requirement);
  }
  if (packages.length > packagesMax)
    throw refused(`it lists ${packages.length} packages; at most ${packagesMax} are allowed`);
  return packages;
}

/** Returns the requirements of the first directory that has a requirements.txt; [] if none has one. */
export async function readRequirements(directories: readonly string[]): Promise<readonly string[]> {
  for (const directory of directories) {
    const path = join(directory, fileName);
    const found = await stat(path).catch(() => null);
    if (found === null) continue;
    // Reading a symbolic link to a device such as /dev/zero would never end.
    if (!found.isFile() || found.size > fileBytesMax)
      throw refused(`it is not a file of at most ${fileBytesMax} bytes`);
    return parseRequirements(await readFile(path, "utf8"));
  }
  return [];
}

function refused(why: string): InferenceError {
  return new InferenceError("INVALID_ARG", `the script's ${fileName} cannot be installed: ${why}`);
}
