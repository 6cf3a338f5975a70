import { integerFlag, textFlag } from "./flag.ts";

/** Where `--data` is when it is not given, for help texts. */
export const dataDefault = "$GALATEA_DATA, else $XDG_DATA_HOME/galatea, else ~/.local/share/galatea";

/** Of `serve` and of `up`. */
export const sharedFlags = {
  "request-memory-bytes": integerFlag({
    unit: "bytes",
    min: 1024 * 1024,
    about:
      "memory for requests and answers in flight, tensors included; beyond it they are answered 503 (default: a quarter of the memory of the cgroup or the machine)",
  }),
  python: textFlag({
    about: "Python to run models with (default: an environment of our own, made on first use)",
  }),
};
