import { switchFlag, UsageError, type OptionsOf, type Parsed } from "../../options/index.ts";
import { templates, type Template } from "./templates.ts";

export const newFlags = {
  python: switchFlag(`${templates.python.about} (the default)`),
  onnx: switchFlag(templates.onnx.about),
  ensemble: switchFlag(templates.ensemble.about),
  script: switchFlag(templates.script.about),
};

/** The options of `galatea new`. */
export interface NewOptions {
  readonly path: string;
  readonly template: Template;
}

export function newOptions({ options, positionals: [path = ""] }: Parsed<OptionsOf<typeof newFlags>>): NewOptions {
  if (path === "") throw new UsageError("galatea new needs the name of a folder to create");
  const names = (["python", "onnx", "ensemble", "script"] as const).filter((each) => options[each]);
  const [name = "python", other] = names;
  if (other !== undefined) throw new UsageError(`--${name} and --${other} cannot be used together`);
  return { path, template: templates[name] };
}
