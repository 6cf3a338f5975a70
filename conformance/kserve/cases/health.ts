import type { Case, Step } from "../case.ts";
import { differs, get, post } from "../requests.ts";

/** Newer releases look the model up first, and their error is about the name. */
const lookup = (step: Step, text = "Request for unknown model: "): Step =>
  differs(step, { row: "model-ready-lookup", status: 404, includes: [text] });

export const health: readonly Case[] = [
  { name: "health: live is 200 with an empty body", fixture: "main", steps: [get("/v2/health/live", "bytes")] },
  { name: "health: ready is 200 with an empty body", fixture: "main", steps: [get("/v2/health/ready", "bytes")] },
  { name: "health: a query string is ignored", fixture: "main", steps: [get("/v2/health/live?verbose=1", "bytes")] },
  {
    name: "health: the server is live with a failed model",
    fixture: "partly",
    steps: [get("/v2/health/live", "bytes")],
  },
  {
    name: "health: the server is not ready with a failed model",
    fixture: "partly",
    steps: [get("/v2/health/ready", "bytes")],
  },
  {
    name: "health: without strict readiness the server is ready with a failed model",
    fixture: "lenient",
    steps: [get("/v2/health/ready", "bytes")],
  },
  {
    name: "health: the failed model is unknown or without versions",
    fixture: "partly",
    steps: [lookup(get("/v2/models/raises_in_initialize/ready", "error"))],
  },
  {
    name: "health: the other model responds despite a failed model",
    fixture: "partly",
    steps: [get("/v2/models/add_sub/ready", "bytes")],
  },
  {
    name: "health: the index has the failed model with its reason",
    fixture: "partly",
    steps: [post("/v2/repository/index", undefined)],
  },
  { name: "health: model ready", fixture: "main", steps: [get("/v2/models/add_sub/ready", "bytes")] },
  {
    name: "health: model version ready",
    fixture: "main",
    steps: [get("/v2/models/versions/versions/1/ready", "bytes")],
  },
  { name: "health: ensemble ready", fixture: "main", steps: [get("/v2/models/nested/ready", "bytes")] },
  { name: "health: unknown model", fixture: "main", steps: [lookup(get("/v2/models/nobody/ready", "error"))] },
  {
    name: "health: unknown version",
    fixture: "main",
    steps: [lookup(get("/v2/models/add_sub/versions/7/ready", "error"))],
  },
  { name: "health: version 0", fixture: "main", steps: [lookup(get("/v2/models/add_sub/versions/0/ready", "error"))] },
  {
    name: "health: a version that is not a number is not a route",
    fixture: "main",
    steps: [get("/v2/models/add_sub/versions/x/ready", "error")],
  },
  {
    name: "health: a version beyond 64 bits",
    fixture: "main",
    steps: [get("/v2/models/add_sub/versions/99999999999999999999/ready", "error")],
  },
  { name: "health: POST is not allowed", fixture: "main", steps: [post("/v2/health/live", "{}", "error")] },
  {
    name: "health: HEAD is not allowed",
    fixture: "main",
    steps: [
      differs(
        { request: { method: "HEAD", path: "/v2/health/live" }, compare: "status" },
        { row: "head-without-body", status: 405, includes: [], notAsked: true },
      ),
    ],
  },
  { name: "routes: an unknown path", fixture: "main", steps: [get("/v2/nothing", "error")] },
  { name: "routes: the root", fixture: "main", steps: [get("/", "error")] },
  { name: "routes: a trailing slash after /v2", fixture: "main", steps: [get("/v2/", "status")] },
  { name: "routes: GET of infer", fixture: "main", steps: [get("/v2/models/add_sub/infer", "error")] },
  {
    name: "routes: DELETE of a model",
    fixture: "main",
    steps: [{ request: { method: "DELETE", path: "/v2/models/add_sub" }, compare: "error" }],
  },
];
