// Plain JavaScript that any Node can read.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/**
 * Lists the programs that run from a folder of packages, or install into it: `{ pid, command }` of each, without its own child
 * processes, this process and its parents. Empty where the system has no /proc.
 */
export function runningPrograms(packages) {
  const all = new Map(processIds().map((pid) => [pid, readProcess(pid)]));
  const own = new Set();
  for (let pid = process.pid; pid > 0 && !own.has(pid); pid = all.get(pid)?.parentPid ?? 0) own.add(pid);
  const found = new Map(
    [...all].filter(([pid, each]) => each !== null && !own.has(pid) && usesPackages(pid, each, packages)),
  );
  return [...found]
    .filter(([, { parentPid }]) => !found.has(parentPid))
    .map(([pid, { words }]) => ({ pid, command: words.join(" ") }));
}

function usesPackages(pid, { words }, packages) {
  const isBelow = (path) => path.startsWith(`${packages}/`);
  if (isBelow(words[0]) || isBelow(readLink(pid, "exe"))) return true;
  // npm renames its process to its command line, a moment after its start.
  if (/\bnpm(-cli\.js)? ci\b/.test(words.join(" "))) return join(readLink(pid, "cwd"), "node_modules") === packages;
  // A Node from elsewhere has the packages' native libraries in its memory.
  return readText(pid, "maps").includes(` ${packages}/`);
}

function processIds() {
  try {
    return readdirSync("/proc")
      .filter((name) => /^[0-9]+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Null for a process that has ended. */
function readProcess(pid) {
  const stat = readText(pid, "stat");
  const words = readText(pid, "cmdline").split("\0").filter(Boolean);
  if (stat === "" || words.length === 0) return null;
  // State and parent follow the name in parentheses, which may contain any character.
  return { parentPid: Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]), words };
}

/** Empty for a process that has ended or that another user owns. */
function readText(pid, name) {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

function readLink(pid, name) {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return "";
  }
}
