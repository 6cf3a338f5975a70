/** The deep module: models by name, loaded, scheduled, counted. Protocols see this door only. */
export type {
  DurationStatistics,
  Engine,
  IndexEntry,
  LoadOverride,
  ModelMetadata,
  ModelStatistics,
  NamespaceSource,
  ServerMetadata,
  TensorMetadata,
} from "./engine.ts";
