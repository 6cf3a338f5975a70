import type { SimulatedMinute, Simulation } from "./simulate-scaling.ts";
import { activityRows, summaryOf, timeText } from "./told.ts";

const width = 960;
const height = 180;
const margin = { left: 70, right: 10, top: 24, bottom: 22 };
/** Points of a line; of more minutes each point is the most of its part. */
const pointsMax = 2000;

interface Line {
  readonly color: string;
  readonly valueOf: (minute: SimulatedMinute) => number | null;
}

/** One page with everything in it: no script, and nothing that is fetched. */
export function chartPage(simulation: Simulation): string {
  const { metricName, targetValue, minCapacity, maxCapacity } = simulation;
  const charts = [
    chart(simulation, "Asked of all instances", [{ color: "#357", valueOf: ({ load }) => load }], []),
    chart(simulation, metricName, [{ color: "#373", valueOf: ({ metric }) => metric }], [targetValue]),
    chart(
      simulation,
      "Instances: wanted, in service",
      [
        { color: "#c80", valueOf: ({ desired }) => desired },
        { color: "#357", valueOf: ({ running }) => running },
      ],
      [minCapacity, maxCapacity],
    ),
  ];
  const rows = activityRows(simulation).map(
    ({ at, text, cause }) => `<tr><td>${escaped(at)}<td>${escaped(text)}<td>${escaped(cause)}</tr>`,
  );
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Autoscaling simulated</title>
<style>body{font:14px system-ui,sans-serif;max-width:${width}px;margin:2em auto;color:#222}table{border-collapse:collapse}
td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}svg{display:block;margin:1em 0}</style>
<h1>Autoscaling simulated</h1>
<p>${escaped(summaryOf(simulation).join(" "))}</p>
${charts.join("\n")}
<h2>Decided</h2>
<table><tr><th>at<th>what<th>why</tr>
${rows.join("\n")}
</table></html>
`;
}

function chart({ minutes }: Simulation, title: string, lines: readonly Line[], marks: readonly number[]): string {
  const points = pointsOf(minutes);
  const values = lines.flatMap(({ valueOf }) => points.map((part) => mostOf(part, valueOf) ?? 0));
  const top = values.reduce((most, value) => Math.max(most, value), Math.max(0, ...marks)) || 1;
  const endMs = (minutes.at(-1)?.atMs ?? 0) + 60_000;
  const x = (ms: number) => (margin.left + (ms / endMs) * (width - margin.left - margin.right)).toFixed(1);
  const y = (value: number) =>
    (height - margin.bottom - (value / top) * (height - margin.top - margin.bottom)).toFixed(1);
  const drawn = lines.map(({ color, valueOf }) => {
    const path = points.flatMap((part) => {
      const value = mostOf(part, valueOf);
      const [first, last] = [part[0], part.at(-1)];
      if (value === null || first === undefined || last === undefined) return [];
      return [`${x(first.atMs)},${y(value)}`, `${x(last.atMs + 60_000)},${y(value)}`];
    });
    return `<polyline fill="none" stroke="${color}" stroke-width="1.5" points="${path.join(" ")}"/>`;
  });
  const marked = marks.map(
    (mark) =>
      `<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(mark)}" y2="${y(mark)}" stroke="#b33" stroke-dasharray="4 4"/>`,
  );
  const label = (text: string, left: string, low: string, anchor = "end") =>
    `<text x="${left}" y="${low}" text-anchor="${anchor}" font-size="11" fill="#555">${escaped(text)}</text>`;
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">
<text x="0" y="14" font-size="13" font-weight="600">${escaped(title)}</text>
<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(0)}" y2="${y(0)}" stroke="#999"/>
${label(String(Number(top.toPrecision(4))), String(margin.left - 6), y(top))}${label("0", String(margin.left - 6), y(0))}
${label("0", x(0), String(height - 6), "start")}${label(timeText(endMs), x(endMs), String(height - 6))}
${marked.join("")}${drawn.join("")}</svg>`;
}

function pointsOf(minutes: readonly SimulatedMinute[]): readonly (readonly SimulatedMinute[])[] {
  const perPoint = Math.max(1, Math.ceil(minutes.length / pointsMax));
  const points: SimulatedMinute[][] = [];
  for (let at = 0; at < minutes.length; at += perPoint) points.push(minutes.slice(at, at + perPoint));
  return points;
}

function mostOf(part: readonly SimulatedMinute[], valueOf: Line["valueOf"]): number | null {
  const known = part.map(valueOf).filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
