/** Custom metrics of models: the models' own responses, and the scrape. */
import type { Case, Difference, Step } from "../case.ts";
import { differs, get, infer, input } from "../requests.ts";

const run = (code: string, model = "counts"): Step => infer(model, { inputs: [input("CODE", "BYTES", [1], [code])] });
const scrape: Step = get("/metrics", "model-metrics", { port: "metrics" });
/** Removes a case's metrics, which would otherwise be in later scrapes. */
const forget = (...names: string[]): Step => run(`for name in ${JSON.stringify(names)}: globals().pop(name, None)`);

const family = (name: string, kind = "COUNTER", description = "of a case") =>
  `f = MetricFamily(name="${name}", description="${description}", kind=${kind})`;
const metric = (name: string, kind = "COUNTER") => `${family(name, kind)}\nm = f.Metric(labels={"a": "b"})`;
const about = (name: string, ...steps: Step[]): Case => ({ name: `own metrics: ${name}`, fixture: "metrics", steps });

const refused = (row: string, ...includes: string[]): Difference => ({ row, status: 200, includes });
/** A difference in Triton: its error text is equal, but it crashes in half of the cases. */
const refusal = (...includes: string[]): Difference => ({
  ...refused("metrics-refusals", ...includes),
  notAsked: true,
});
const message = (what: string, reason: string) =>
  `TritonModelException: ${what}: Failed to process the request for model 'counts_0_0', message: ${reason}`;

const numbers = [
  "0.1 + 0.2",
  "1 / 3",
  "1e6",
  "123456.5",
  "1e15",
  "1e16",
  "123456789012345678",
  "1e-4",
  "1e-7",
  "1.5e300",
];
const wild = ["float('nan')", "float('inf')"];

const counting: readonly Case[] = [
  about(
    "a counter increases",
    run(`${metric("c")}\nout = m.value()`),
    run("m.increment(1); m.increment(0.5); m.increment(0)\nout = m.value()"),
    run(
      "m.increment(True); m.increment(np.float32(2)); m.increment(np.int64(3)); m.increment(np.array(4.0))\nout = m.value()",
    ),
    scrape,
    forget("m", "f"),
  ),
  about(
    "numbers as they are printed",
    run(`${family("c")}
kept = []
for number in (${[...numbers, ...wild].join(", ")}):
    kept.append(f.Metric(labels={"n": repr(number)}))
    kept[-1].increment(number)
out = [one.value() for one in kept]`),
    scrape,
    forget("kept", "f"),
  ),
  about(
    "a gauge goes up and down",
    run(`${metric("g", "GAUGE")}\nm.increment(2)\nm.increment(-5)\nout = m.value()`),
    run("m.set(7.5); m.increment(-1)\nout = m.value()"),
    scrape,
    run("m.set(float('-inf'))\nout = m.value()"),
    run("m.set(float('nan'))\nout = m.value()"),
    scrape,
    forget("m", "f"),
  ),
  about(
    "a histogram observes",
    run(`${family("h", "HISTOGRAM")}
m = f.Metric(buckets=[0.1, 1, 2.5, 10.0])
n = f.Metric({"a": "b"}, [1, 2])
for value in (0.1, 1.5, 11): m.observe(value)
for value in (-1, 1 / 3, float("nan")): n.observe(value)
e = f.Metric(labels={"buckets": "none"}, buckets=[])
e.observe(2)`),
    scrape,
    forget("m", "n", "e", "f"),
  ),
  about("a metric created in initialize exists", scrape),
  about(
    "labels with any text, in any order, and without labels",
    run(`${family("c")}
kept = [f.Metric(), f.Metric(labels=None), f.Metric(labels={})]
kept[0].increment(1)
kept += [f.Metric(labels={"quote": 'a"b\\\\c\\nd', "uni": "gr\u00fc\u00df\u4e2d", "empty": ""})]
first = f.Metric(labels={"x": "1", "y": "2"})
first.increment(3)
kept += [first, f.Metric(labels={"y": "2", "x": "1"})]
out = [one.value() for one in kept], first is kept[-1]`),
    scrape,
    forget("kept", "first", "f"),
  ),
];

const runs: readonly Case[] = [
  about(
    "a deleted metric stays as long as its family",
    run(`${metric("c")}\nm.increment(5)\nm = None`),
    scrape,
    run('m = f.Metric(labels={"a": "b"})\nout = m.value()'),
    run("f = None"),
    scrape,
    run("m.increment(1)"),
    run("out = m.value()"),
    run(`g = ${family("c").slice(4)}\nout = m.value()`),
    run('k = g.Metric(labels={"a": "b"})\nout = k.value()'),
    forget("m", "k", "g", "f"),
  ),
  about(
    "models of one repository share families with equal names, with the description of the first",
    run(`${metric("c")}\nm.increment(1)\nout = m.value()`),
    run(`${metric("c").replace("of a case", "another")}\nm.increment(10)\nout = m.value()`, "counts_too"),
    run("out = m.value()"),
    scrape,
    run("m = f = None", "counts_too"),
    forget("m", "f"),
  ),
  about(
    "instances of one model count together",
    ...Array.from({ length: 4 }, () =>
      run(
        `if "m" not in globals():\n    ${metric("twice").replace("\n", "\n    ")}\nm.increment(1)\nout = m.value()`,
        "counts_twice",
      ),
    ),
    scrape,
  ),
  about(
    "the first of two families with one name is deleted",
    differs(
      run(`${metric("c")}
m.increment(1)
g = ${family("c").slice(4)}
k = g.Metric(labels={"a": "b"})
k.increment(1)
f = m = None
out = k.value()`),
      { ...refused("metrics-two-families", '"data":["2.0"]'), notAsked: true },
    ),
    differs(forget("k", "g", "f", "m"), { ...refused("metrics-two-families"), notAsked: true }),
  ),
  about(
    "several threads",
    differs(
      run(`import threading
${metric("c")}
def work():
    for _ in range(100): m.increment(1)
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
out = m.value()`),
      { ...refused("metrics-refusals", '"data":["400.0"]'), notAsked: true },
    ),
    differs(forget("m", "f"), { ...refused("metrics-refusals"), notAsked: true }),
  ),
];

/** Errors of the model's own process. */
const said: readonly (readonly [what: string, code: string])[] = [
  ["labels that are a list", 'f.Metric(labels=["a"])'],
  ["labels that are bytes", 'f.Metric(labels={"a": b"b"})'],
  ["buckets of a counter", "f.Metric(buckets=[1.0])"],
  ["no buckets of a counter", "f.Metric(buckets=[])"],
  ["buckets that are a tuple", "f.Metric(buckets=(1.0,))"],
  ["a histogram without buckets", `${family("h", "HISTOGRAM")}\nf.Metric()`],
  ["a text as the increment", 'm.increment("1")'],
  ["an integer above the range of doubles", "m.increment(10**400)"],
  ["a kind that is a number", 'MetricFamily(name="c", description="", kind=1)'],
  ["a name that is a number", 'MetricFamily(name=1, description="", kind=COUNTER)'],
];

const setTo = (kind: string) => `TRITONSERVER_METRIC_KIND_${kind}`;
const histogram = `${family("h", "HISTOGRAM")}\nm = f.Metric(buckets=[1])\n`;
const gauge = `${metric("g", "GAUGE")}\n`;
/** Errors of the server. */
const refusals: readonly (readonly [what: string, code: string, told: string])[] = [
  [
    "a counter goes down",
    "m.increment(-1)",
    message(
      "Failed to increment metric value",
      `${setTo("COUNTER")} can only be incremented monotonically by non-negative values.`,
    ),
  ],
  ["a counter is set", "m.set(1)", message("Failed to set metric value", `${setTo("COUNTER")} does not support Set`)],
  [
    "a counter observes",
    "m.observe(1)",
    message("Failed to observe metric value", `${setTo("COUNTER")} does not support Observe`),
  ],
  [
    "a gauge observes",
    `${gauge}m.observe(1)`,
    message("Failed to observe metric value", `${setTo("GAUGE")} does not support Observe`),
  ],
  [
    "a histogram is incremented",
    `${histogram}m.increment(1)`,
    message("Failed to increment metric value", `${setTo("HISTOGRAM")} does not support Increment`),
  ],
  [
    "a histogram is set",
    `${histogram}m.set(1)`,
    message("Failed to set metric value", `${setTo("HISTOGRAM")} does not support Set`),
  ],
  [
    "a histogram's value",
    `${histogram}m.value()`,
    message("Failed to get metric value", `${setTo("HISTOGRAM")} does not support Value`),
  ],
  [
    "a family of another kind",
    family("c", "GAUGE"),
    message("Error when creating MetricFamily", "Family name already exists with different type"),
  ],
  ...["", "a b", "1a", "__a", "a-b", "x.y", "gr\u00fc"].map(
    (name) =>
      [
        `a family named '${name}'`,
        family(name),
        message("Error when creating MetricFamily", "Invalid metric name"),
      ] as const,
  ),
  ...["", "a b", "1a", "__a", "a:b", "gr\u00fc"].map(
    (name) =>
      [
        `a label named '${name}'`,
        `f.Metric(labels={"${name}": ""})`,
        message("Error when creating Metric", "Invalid label name"),
      ] as const,
  ),
  [
    "a label that is a number",
    'f.Metric(labels={"a": 1})',
    message("Error when creating Metric", "attempt to access JSON non-string as string"),
  ],
  [
    "decreasing buckets",
    `${histogram}f.Metric({"a": "b"}, [2, 1])`,
    message("Error when creating Metric", "Bucket Boundaries must be strictly sorted"),
  ],
  [
    "two equal buckets",
    `${histogram}f.Metric({"a": "b"}, [1, 1])`,
    message("Error when creating Metric", "Bucket Boundaries must be strictly sorted"),
  ],
];

const ownWay: readonly Case[] = [
  about(
    "a description of two lines",
    run(`f = MetricFamily(name="c", description="one\\nnv_count 2\\\\", kind=COUNTER)\nm = f.Metric()`),
    differs(scrape, refused("metrics-help", "# HELP c one\\nnv_count 2\\\\\n# TYPE c counter\nc 0\n")),
    forget("m", "f"),
  ),
  about(
    "a bucket of +Inf",
    run(`${family("h", "HISTOGRAM")}\nm = f.Metric(buckets=[1, float("inf")])\nm.observe(2)`),
    differs(scrape, refused("metrics-buckets", 'h_sum 2\nh_bucket{le="1"} 0\nh_bucket{le="+Inf"} 1\n')),
    forget("m", "f"),
  ),
  about(
    "a bucket that is not a number",
    differs(
      run(`${family("h", "HISTOGRAM")}\nm = f.Metric(buckets=[float("nan"), 1])`),
      refused("metrics-buckets", "Bucket Boundaries must be strictly sorted"),
    ),
    forget("m", "f"),
  ),
  about(
    "a histogram with a label le",
    differs(
      run(`${family("h", "HISTOGRAM")}\nm = f.Metric(labels={"le": "1"}, buckets=[1])`),
      refused("metrics-le", "Invalid label name"),
    ),
    forget("m", "f"),
  ),
  about(
    "a name of a metric of the server",
    differs(run(family("nv_inference_request_success")), {
      ...refused("metrics-own-names", "Metrics of the name 'nv_inference_request_success' are the server's own"),
      notAsked: true,
    }),
  ),
  about(
    "a name with the prefix of the server's metrics",
    run(`${metric("nv_of_a_model")}\nout = m.value()`),
    scrape,
    forget("m", "f"),
  ),
  // This case is last, because Triton keeps printing the metrics of the dead worker.
  about(
    "a worker that dies",
    run(`${metric("of_the_dead")}\nm.increment(5)\nout = m.value()`, "counts_and_dies"),
    differs(run("import os; os._exit(3)", "counts_and_dies"), {
      row: "metrics-outlive",
      status: 500,
      includes: ["is not healthy"],
      notAsked: true,
    }),
    differs(run(`${metric("of_the_dead")}\nout = m.value()`, "counts_and_dies"), {
      ...refused("metrics-outlive", '"data":["0.0"]'),
      notAsked: true,
    }),
  ),
];

export const modelMetrics: readonly Case[] = [
  ...counting,
  ...runs,
  ...said.map(([what, code]) => about(what, run(`${metric("c")}\n${code}`), forget("m", "f"))),
  ...refusals.map(([what, code, message]) =>
    about(
      what,
      run(metric("c")),
      differs(run(code), refusal(JSON.stringify(message).slice(1, -1))),
      differs(forget("m", "f"), refusal()),
    ),
  ),
  ...ownWay,
];
