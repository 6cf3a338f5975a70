import type {
  AutoscaleOptions,
  BackupOptions,
  ConvertOptions,
  EndpointOptions,
  EnvOptions,
  EventsOptions,
  FrameworkOptions,
  ServeOptions,
  UpOptions,
} from "./options.ts";
import type { ValidateOptions } from "./validate.ts";

// Each command imports only what it needs: a server does not load the platform, nor the platform the server.

export async function runServe(options: ServeOptions): Promise<number> {
  return (await import("./serving/serve.ts")).serve(options);
}

export async function runUp(options: UpOptions): Promise<number> {
  return (await import("./up.ts")).up(options);
}

export async function runEnv(options: EnvOptions): Promise<number> {
  return (await import("./env.ts")).env(options);
}

export async function runAutoscale(options: AutoscaleOptions): Promise<number> {
  return (await import("./autoscale.ts")).autoscale(options);
}

export async function runEndpoint(options: EndpointOptions): Promise<number> {
  return (await import("./endpoint.ts")).endpoint(options);
}

export async function runEvents(options: EventsOptions): Promise<number> {
  return (await import("./events.ts")).events(options);
}

export async function runBackup(options: BackupOptions): Promise<number> {
  return (await import("./backup.ts")).backup(options);
}

export async function runRestore(options: BackupOptions): Promise<number> {
  return (await import("./backup.ts")).restore(options);
}

export async function runValidate(options: ValidateOptions): Promise<number> {
  return (await import("./validate.ts")).validate(options);
}

export async function runModel(options: FrameworkOptions): Promise<number> {
  return (await import("./frameworks.ts")).model(options);
}

export async function runConvert(options: ConvertOptions): Promise<number> {
  return (await import("./convert.ts")).convert(options);
}
