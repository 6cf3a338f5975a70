import { median, type PictureResult } from "./picture-results.ts";

export interface PicturePage {
  readonly endpoint: string;
  readonly answers: readonly PictureResult[];
  readonly sentences: readonly {
    readonly text: string;
    readonly nearest: { readonly index: number; readonly cosine: number };
  }[];
  readonly sentencesMs: number;
}

/** Returns a self-contained HTML page with the pictures, their classes and the sentences. */
export function picturePage({ endpoint, answers, sentences, sentencesMs }: PicturePage): string {
  const rows = sentences.map(({ text, nearest }) => {
    const other = sentences[nearest.index]?.text ?? "";
    return `<tr><td>${escaped(text)}<td class="number">${nearest.cosine.toFixed(3)}<td>${escaped(other)}`;
  });
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Galatea: pictures and sentences behind one endpoint</title>
<style>${style}</style>
<h1>Pictures and sentences behind one endpoint</h1>
<p>Two ensembles of the multi-model endpoint <b>${escaped(endpoint)}</b>: DALI decodes and scales a picture and TensorFlow's Inception v3 gives
1,001 classes; a tokenizer, MiniLM and a pooling step embed sentences. The network's weights are of a fixed seed, because trained ones are
not available as a package: its classes are always the same and mean nothing.</p>
<div class="pictures">
${answers.map(figure).join("\n")}
</div>
<h2>Sentences <small>${sentencesMs.toFixed(0)} ms with the load of their models</small></h2>
<table><tr><th>sentence<th>cosine<th>nearest
${rows.join("\n")}
</table>
</html>
`;
}

function figure({ name, jpeg, best, firstMs, warmMs }: PictureResult): string {
  const source = `data:image/jpeg;base64,${Buffer.from(jpeg).toString("base64")}`;
  const bars = best.map(
    ({ label, score }) =>
      `<tr><td>${escaped(label)}<td class="number">${score.toFixed(3)}` +
      `<td class="bar"><i style="width:${(100 * Math.min(1, Math.max(0, score))).toFixed(1)}%"></i>`,
  );
  return `<figure>
<img src="${source}" alt="${escaped(name)}">
<figcaption>${escaped(name)} <small>${firstMs.toFixed(0)} ms at first, ${median(warmMs).toFixed(0)} ms warm</small></figcaption>
<table>${bars.join("\n")}</table>
</figure>`;
}

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; }
img { width: 100%; aspect-ratio: 4 / 3; object-fit: cover; border-radius: .5rem; }
small { opacity: .7; font-weight: normal; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; }
td, th { padding: .1rem .6rem .1rem 0; vertical-align: top; }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { width: 50%; }
.bar i { display: block; height: .6rem; margin-top: .5rem; background: #4a7; border-radius: .3rem; }
`;

/** Escapes a text for HTML, also inside attribute values. */
function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
}
